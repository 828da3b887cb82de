// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// ErrNoPost says that there is no such post, or that it belongs to another account.
var ErrNoPost = errors.New("no such post")

// Media is one file of a post, as it arrived.
type Media struct {
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"bytes"`
	MIMEType string `json:"mime_type"`
}

// Post is one post on a simulated platform.
type Post struct {
	Key
	AccountID string `json:"account_id"`
	Stamp     Stamp  `json:"stamp"`
	// Text is exactly what the client sent.
	Text  string  `json:"text"`
	Title string  `json:"title,omitempty"`
	Media []Media `json:"media,omitempty"`
	// InReplyTo is the id of the post that this one answers, if any.
	InReplyTo string `json:"in_reply_to,omitempty"`
	// Root is the id of the first post of the chain: the post's own when it answers nothing.
	Root    string `json:"root"`
	Privacy string `json:"privacy,omitempty"`
	// Container is the id of what the post was published from, if anything.
	Container string `json:"container,omitempty"`
	// Parts are the ids of further containers that went into the post and into no other.
	Parts []string `json:"parts,omitempty"`
	// Free says that the post does not count against the account's quota.
	Free bool `json:"free,omitempty"`
	// Draft says that the post lies in the account's inbox and is not visible.
	Draft bool `json:"draft,omitempty"`
	// Deleted says that the post is gone. It stays in the account's list: it goes on counting against the quota.
	Deleted bool `json:"deleted,omitempty"`
	// Detail is what only the platform's own simulator understands.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// CreatedAt is when the post was made, to the millisecond.
func (p Post) CreatedAt() time.Time { return p.Stamp.Time() }

// Draft is a post that is about to be made.
type Draft struct {
	Text, Title string
	Media       []Media
	InReplyTo   string
	// Root is empty when the post answers nothing.
	Root    string
	Privacy string
	Detail  json.RawMessage
	// Container is the id of what is published; empty when the post comes of itself.
	Container string
	// Parts are the ids of further containers that go into the post; none may have gone into another.
	Parts []string
	// Free takes the post out of the account's quota.
	Free bool
	// Inbox makes the post one that the account's owner has yet to publish.
	Inbox bool
	// DuplicateWindow refuses a text that the account has posted, without media, less than this ago; 0 refuses nothing.
	DuplicateWindow time.Duration
	// Repeats, when there is one, refuses the post if it says so about the newest one that is visible.
	Repeats func(newest Post) bool
	// NewID makes the platform's id of the post created at that stamp.
	NewID func(Stamp) string
}

// DuplicateError says that the account has posted the same already.
type DuplicateError struct{ ID string }

// Error names the earlier post.
func (e *DuplicateError) Error() string { return "the same was posted as " + e.ID }

// QuotaWindow is the time over which Settings.Quota counts posts.
const QuotaWindow = 24 * time.Hour

// QuotaError says that the account has used up its posts.
type QuotaError struct {
	Quota int
	// Resets is when the account may post again.
	Resets time.Time
}

// Error tells the quota and when it frees up.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("all %d posts of %s are used until %s", e.Quota, QuotaWindow, e.Resets.Format(time.RFC3339))
}

// Publish makes a post. It fails with ErrNoAccount, ErrNoContainer, a *PublishedError, a *DuplicateError, a *QuotaError,
// or because it could not be saved; in each case nothing was made.
func (s *Store) Publish(key Key, d Draft) (Post, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[key]
	if a == nil {
		return Post{}, ErrNoAccount
	}
	now := s.clock.Now()
	if err := s.checkContainers(key, append([]string{d.Container}, d.Parts...)); err != nil {
		return Post{}, err
	}
	if err := a.checkDuplicate(d, now); err != nil {
		return Post{}, err
	}
	if !d.Free {
		if err := a.checkQuota(now); err != nil {
			return Post{}, err
		}
	}
	post := Post{
		AccountID: key.ID, Stamp: s.stamp(), Text: d.Text, Title: d.Title, Media: d.Media, InReplyTo: d.InReplyTo,
		Privacy: d.Privacy, Container: d.Container, Parts: d.Parts, Free: d.Free, Draft: d.Inbox, Detail: d.Detail,
	}
	post.Key = Key{Platform: key.Platform, ID: d.NewID(post.Stamp)}
	post.Root = cmp.Or(d.Root, post.ID)
	if err := s.save(post.entry()); err != nil {
		return Post{}, err
	}
	s.addPost(a, post)
	return post, nil
}

func (p Post) entry() entry { return entry{bucketPosts, p.Stamp.key(), p} }

// checkDuplicate returns a *DuplicateError when the account has posted the same already, as the draft understands it.
func (a *account) checkDuplicate(d Draft, now time.Time) error {
	if earlier := a.latest[textKey(d.Text)]; earlier != nil && now.Sub(earlier.CreatedAt()) < d.DuplicateWindow {
		return &DuplicateError{ID: earlier.ID}
	}
	if d.Repeats == nil {
		return nil
	}
	for _, newest := range slices.Backward(a.posts) {
		switch {
		case newest.Draft, newest.Deleted:
		case d.Repeats(*newest):
			return &DuplicateError{ID: newest.ID}
		default:
			return nil
		}
	}
	return nil
}

// checkQuota returns a *QuotaError when the account may not post now.
func (a *account) checkQuota(now time.Time) error {
	quota := a.info.Settings.Quota
	if quota == nil {
		return nil
	}
	counted := a.counted(now)
	if len(counted) < *quota {
		return nil
	}
	resets := now.Add(QuotaWindow)
	if *quota > 0 {
		resets = counted[len(counted)-*quota].CreatedAt().Add(QuotaWindow)
	}
	return &QuotaError{Quota: *quota, Resets: resets}
}

// counted are the posts of the window that count against the quota, oldest first.
func (a *account) counted(now time.Time) []*Post {
	since := now.Add(-QuotaWindow)
	first := sort.Search(len(a.posts), func(i int) bool { return a.posts[i].CreatedAt().After(since) })
	return slices.DeleteFunc(slices.Clone(a.posts[first:]), func(post *Post) bool { return post.Free })
}

// QuotaUsed returns how many posts the account made in the last 24 hours that count against its quota.
func (s *Store) QuotaUsed(key Key) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.accounts[key]; a != nil {
		return len(a.counted(s.clock.Now()))
	}
	return 0
}

// addPost puts a new post of an account into the maps.
func (s *Store) addPost(a *account, post Post) {
	s.seen(post.Stamp)
	a.posts = append(a.posts, &post)
	if post.Deleted {
		a.deleted++
	}
	if len(post.Media) == 0 && !post.Deleted {
		a.latest[textKey(post.Text)] = &post
	}
	s.posts[post.Key] = &post
	for _, id := range append([]string{post.Container}, post.Parts...) {
		if from := s.containers[Key{Platform: post.Platform, ID: id}]; from != nil {
			from.PostID = post.ID
		}
	}
	if post.Root != post.ID {
		chain := Key{Platform: post.Platform, ID: post.Root}
		s.replies[chain] = append(s.replies[chain], &post)
	}
}

// textKey is what two texts share when a platform takes them for the same.
func textKey(text string) string { return strings.TrimSpace(norm.NFC.String(text)) }

// Post returns one post, unless it was deleted.
func (s *Store) Post(platform, id string) (Post, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	post := s.posts[Key{Platform: platform, ID: id}]
	if post == nil || post.Deleted {
		return Post{}, false
	}
	return *post, true
}

// Delete removes a post of an account, or fails with ErrNoPost. What it was published from stays used.
func (s *Store) Delete(owner Key, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.posts[Key{Platform: owner.Platform, ID: id}]
	if found == nil || found.Deleted || found.AccountID != owner.ID {
		return ErrNoPost
	}
	post := *found
	post.Deleted = true
	if err := s.save(post.entry()); err != nil {
		return err
	}
	*found = post
	a := s.accounts[owner]
	a.deleted++
	if a.latest[textKey(post.Text)] == found {
		delete(a.latest, textKey(post.Text)) // the same may be said again
	}
	return nil
}

// SetDetail changes what a post keeps for its platform's simulator, or fails with ErrNoPost.
func (s *Store) SetDetail(platform, id string, detail json.RawMessage) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.posts[Key{Platform: platform, ID: id}]
	if found == nil || found.Deleted {
		return ErrNoPost
	}
	post := *found
	post.Detail = detail
	if err := s.save(post.entry()); err != nil {
		return err
	}
	*found = post
	return nil
}

// Posts returns the posts that are not deleted in order of creation. An empty platform or account does not narrow.
func (s *Store) Posts(platform, accountID string) []Post {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Post
	for key, a := range s.accounts {
		if (platform == "" || key.Platform == platform) && (accountID == "" || key.ID == accountID) {
			for _, post := range a.posts {
				if !post.Deleted {
					out = append(out, *post)
				}
			}
		}
	}
	slices.SortFunc(out, func(l, r Post) int { return l.Stamp.Compare(r.Stamp) })
	return out
}
