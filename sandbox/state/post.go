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

// ErrNoPost is returned for a post that does not exist or belongs to another account.
var ErrNoPost = errors.New("no such post")

// Media is one file of a post, as received.
type Media struct {
	SHA256   string `json:"sha256"`
	Bytes    int64  `json:"bytes"`
	MIMEType string `json:"mime_type"`
	// AltText describes the file for people who cannot see it; empty if the client sent no description.
	AltText string `json:"alt_text,omitempty"`
}

// Described returns the file with an alt text.
func (m Media) Described(altText string) Media {
	m.AltText = altText
	return m
}

// Post is one post on a simulated platform.
type Post struct {
	Key
	AccountID string `json:"account_id"`
	Stamp     Stamp  `json:"stamp"`
	// Text is the text exactly as sent.
	Text  string  `json:"text"`
	Title string  `json:"title,omitempty"`
	Media []Media `json:"media,omitempty"`
	// InReplyTo is the id of the post that this one replies to, if any.
	InReplyTo string `json:"in_reply_to,omitempty"`
	// Root is the id of the first post of the chain; the post's own id if it is not a reply.
	Root    string `json:"root"`
	Privacy string `json:"privacy,omitempty"`
	// Container is the id of the container that the post was published from, if any.
	Container string `json:"container,omitempty"`
	// Parts are the ids of the post's other containers. A container is part of at most one post.
	Parts []string `json:"parts,omitempty"`
	// Free excludes the post from the account's quota.
	Free bool `json:"free,omitempty"`
	// Draft means that the post is in the account's inbox and not visible.
	Draft bool `json:"draft,omitempty"`
	// Deleted marks a deleted post. It remains in the account's list because it still counts against the quota.
	Deleted bool `json:"deleted,omitempty"`
	// Detail is opaque data of the platform's simulator.
	Detail json.RawMessage `json:"detail,omitempty"`
}

// CreatedAt returns the creation time, to the millisecond.
func (p Post) CreatedAt() time.Time { return p.Stamp.Time() }

// Draft is the input of Publish.
type Draft struct {
	Text, Title string
	Media       []Media
	InReplyTo   string
	// Root is empty if the post is not a reply.
	Root    string
	Privacy string
	Detail  json.RawMessage
	// Container is the id of the container to publish; empty if there is none.
	Container string
	// Parts are the ids of the post's other containers. None may be part of another post.
	Parts []string
	// Free excludes the post from the account's quota.
	Free bool
	// Inbox creates the post in the inbox, for the account's owner to publish.
	Inbox bool
	// DuplicateWindow is the period for rejecting a repeated text without media; 0 disables the check.
	DuplicateWindow time.Duration
	// Repeats reports whether the draft repeats the newest visible post, which rejects it. It may be nil.
	Repeats func(newest Post) bool
	// NewID returns the platform's id for a stamp.
	NewID func(Stamp) string
}

// DuplicateError is returned for a post that the account has already published.
type DuplicateError struct{ ID string }

// Error implements error. The message contains the id of the earlier post.
func (e *DuplicateError) Error() string { return "the same was posted as " + e.ID }

// QuotaWindow is the period over which Settings.Quota counts posts.
const QuotaWindow = 24 * time.Hour

// QuotaError is returned if the account's quota is used up.
type QuotaError struct {
	Quota int
	// Resets is the time of the next permitted post.
	Resets time.Time
}

// Error returns a message with the quota and its reset time.
func (e *QuotaError) Error() string {
	return fmt.Sprintf("all %d posts of %s are used until %s", e.Quota, QuotaWindow, e.Resets.Format(time.RFC3339))
}

// Publish creates a post. It fails with ErrNoAccount, ErrNoContainer, *PublishedError, *DuplicateError, *QuotaError, or
// a write error. After an error, no post exists.
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

// checkDuplicate returns a *DuplicateError if the draft repeats a post, by its DuplicateWindow or Repeats.
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

// checkQuota returns a *QuotaError if the quota is used up.
func (a *account) checkQuota(now time.Time) error {
	quota := a.info.Settings.Quota
	if quota == nil {
		return nil
	}
	counted := a.postsInWindow(now)
	if len(counted) < *quota {
		return nil
	}
	resets := now.Add(QuotaWindow)
	if *quota > 0 {
		resets = counted[len(counted)-*quota].CreatedAt().Add(QuotaWindow)
	}
	return &QuotaError{Quota: *quota, Resets: resets}
}

// postsInWindow returns the posts within the window that count against the quota, oldest first.
func (a *account) postsInWindow(now time.Time) []*Post {
	since := now.Add(-QuotaWindow)
	first := sort.Search(len(a.posts), func(i int) bool { return a.posts[i].CreatedAt().After(since) })
	return slices.DeleteFunc(slices.Clone(a.posts[first:]), func(post *Post) bool { return post.Free })
}

// QuotaUsed returns the number of posts in the last 24 hours that count against the account's quota.
func (s *Store) QuotaUsed(key Key) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if a := s.accounts[key]; a != nil {
		return len(a.postsInWindow(s.clock.Now()))
	}
	return 0
}

// addPost adds a new post to the maps.
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

// textKey returns the same key for text that a platform considers equal.
func textKey(text string) string { return strings.TrimSpace(norm.NFC.String(text)) }

// Post returns one post unless it is deleted.
func (s *Store) Post(platform, id string) (Post, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	post := s.posts[Key{Platform: platform, ID: id}]
	if post == nil || post.Deleted {
		return Post{}, false
	}
	return *post, true
}

// Delete deletes an account's post. It returns ErrNoPost if there is none. The post's containers remain used.
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
		delete(a.latest, textKey(post.Text)) // the text may be posted again
	}
	return nil
}

// SetDetail replaces the Detail of a post. It returns ErrNoPost if there is none.
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

// Posts returns the posts in order of creation, without deleted ones. An empty platform or account matches all.
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
