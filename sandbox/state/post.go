// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/text/unicode/norm"
)

// ErrNoPost says that there is no such post, or that it belongs to somebody else.
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
	// Link is the address that the post shows beside its text, if any.
	Link string `json:"link,omitempty"`
	// Container is the id of what the post was published from, if anything.
	Container string `json:"container,omitempty"`
	// Parts are the ids of further containers that went into the post and into no other.
	Parts []string `json:"parts,omitempty"`
	// Free says that the post does not count against the account's quota.
	Free bool `json:"free,omitempty"`
	// Draft says that the post lies in the account's inbox and is not visible.
	Draft bool `json:"draft,omitempty"`
	// Detail is what only the platform's own simulator understands.
	Detail  json.RawMessage `json:"detail,omitempty"`
	Deleted bool            `json:"deleted,omitempty"`
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
	Link    string
	Detail  json.RawMessage
	// Container is the id of what is published; empty when the post comes of itself.
	Container string
	// Parts are the ids of further containers that go into the post; none may have gone into another.
	Parts []string
	// Free takes the post out of the account's quota.
	Free bool
	// Inbox makes the post one that the account's owner has yet to publish.
	Inbox bool
	// DuplicateWindow refuses a text that the account has posted less than this ago; 0 refuses nothing.
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

// Publish makes a post. It fails with ErrNoAccount, ErrNoContainer, a *PublishedError, a *DuplicateError, a *QuotaError,
// or because the journal could not be written; in each case nothing was made.
func (s *Store) Publish(key Key, d Draft) (Post, error) {
	s.change.RLock()
	defer s.change.RUnlock()
	a := s.lookup(key)
	if a == nil {
		return Post{}, ErrNoAccount
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	now := s.clock.Now()
	if err := s.checkContainers(key, d); err != nil {
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
	post := &Post{
		AccountID: key.ID, Stamp: s.stamps.next(now), Text: d.Text, Title: d.Title, Media: d.Media, InReplyTo: d.InReplyTo,
		Privacy: d.Privacy, Link: d.Link, Container: d.Container, Parts: d.Parts, Free: d.Free, Draft: d.Inbox, Detail: d.Detail,
	}
	post.Key = Key{Platform: key.Platform, ID: d.NewID(post.Stamp)}
	post.Root = cmp.Or(d.Root, post.ID)
	if err := s.journal.append(record{Op: opPost, Post: post}); err != nil {
		return Post{}, err
	}
	s.insert(a, post)
	return *post, nil
}

// checkDuplicate returns a *DuplicateError when the account has posted the same already, as the draft understands it.
// Call it with the lock held.
func (a *account) checkDuplicate(d Draft, now time.Time) error {
	if earlier := a.latest[textKey(d.Text)]; earlier != nil && now.Sub(earlier.CreatedAt()) < d.DuplicateWindow {
		return &DuplicateError{ID: earlier.ID}
	}
	if d.Repeats == nil {
		return nil
	}
	for _, newest := range slices.Backward(a.posts) {
		if newest.Deleted || newest.Draft {
			continue
		}
		if d.Repeats(*newest) {
			return &DuplicateError{ID: newest.ID}
		}
		return nil
	}
	return nil
}

// insert adds a post to the indexes. Call it with the account's lock held.
func (s *Store) insert(a *account, post *Post) {
	a.posts = append(a.posts, post)
	if !post.Deleted {
		a.live++
		a.latest[textKey(post.Text)] = post
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.posts[post.Key] = post
	for _, id := range append([]string{post.Container}, post.Parts...) {
		if from := s.containers[Key{Platform: post.Platform, ID: id}]; from != nil {
			from.PostID = post.ID
		}
	}
	if post.Root != post.ID {
		chain := Key{Platform: post.Platform, ID: post.Root}
		s.replies[chain] = append(s.replies[chain], post)
	}
}

func (s *Store) applyPost(post *Post) error {
	a := s.lookup(Key{Platform: post.Platform, ID: post.AccountID})
	if a == nil {
		return fmt.Errorf("post %s: %w %s", post.ID, ErrNoAccount, post.AccountID)
	}
	s.stamps.seen(post.Stamp)
	a.mu.Lock()
	defer a.mu.Unlock()
	s.insert(a, post)
	return nil
}

// textKey is what two texts share when a platform takes them for the same.
func textKey(text string) string { return strings.TrimSpace(norm.NFC.String(text)) }

// Post returns one post that is not deleted.
func (s *Store) Post(platform, id string) (Post, bool) {
	s.mu.RLock()
	post := s.posts[Key{Platform: platform, ID: id}]
	s.mu.RUnlock()
	if post == nil {
		return Post{}, false
	}
	a := s.lookup(Key{Platform: platform, ID: post.AccountID})
	a.mu.RLock()
	defer a.mu.RUnlock()
	return *post, !post.Deleted
}

// Delete removes a post of that account, or fails with ErrNoPost.
func (s *Store) Delete(owner Key, id string) error {
	s.change.Lock() // deletions are rare
	defer s.change.Unlock()
	if post, ok := s.Post(owner.Platform, id); !ok || post.AccountID != owner.ID {
		return ErrNoPost
	}
	return s.commit(record{Op: opDelete, Key: &owner, ID: id})
}

func (s *Store) applyDelete(platform, id string) error {
	s.mu.RLock()
	post := s.posts[Key{Platform: platform, ID: id}]
	s.mu.RUnlock()
	if post == nil {
		return fmt.Errorf("delete %s: %w", id, ErrNoPost)
	}
	a := s.lookup(Key{Platform: platform, ID: post.AccountID})
	a.mu.Lock()
	defer a.mu.Unlock()
	post.Deleted = true
	a.live--
	if key := textKey(post.Text); a.latest[key] == post {
		delete(a.latest, key)
	}
	return nil
}

// SetDetail changes what a post keeps for its platform's simulator, or fails with ErrNoPost.
func (s *Store) SetDetail(platform, id string, detail json.RawMessage) error {
	s.change.Lock() // the look-up and the change are one step, and changes are rare
	defer s.change.Unlock()
	if _, ok := s.Post(platform, id); !ok {
		return ErrNoPost
	}
	return s.commit(record{Op: opDetail, Key: &Key{Platform: platform}, ID: id, Detail: detail})
}

func (s *Store) applyDetail(platform, id string, detail json.RawMessage) error {
	s.mu.RLock()
	post := s.posts[Key{Platform: platform, ID: id}]
	s.mu.RUnlock()
	if post == nil {
		return fmt.Errorf("change %s: %w", id, ErrNoPost)
	}
	a := s.lookup(Key{Platform: platform, ID: post.AccountID})
	a.mu.Lock()
	defer a.mu.Unlock()
	post.Detail = detail
	return nil
}

// Posts returns the posts that are not deleted in order of creation. An empty platform or account does not narrow.
func (s *Store) Posts(platform, accountID string) []Post {
	var out []Post
	for _, a := range s.allAccounts() {
		a.mu.RLock()
		if (platform == "" || a.info.Platform == platform) && (accountID == "" || a.info.ID == accountID) {
			for _, post := range a.posts {
				if !post.Deleted {
					out = append(out, *post)
				}
			}
		}
		a.mu.RUnlock()
	}
	slices.SortFunc(out, func(l, r Post) int { return l.Stamp.Compare(r.Stamp) })
	return out
}

// everyPost returns all posts, deleted ones included, in order of creation. It is for the start, when nothing else runs.
func (s *Store) everyPost() []*Post {
	out := make([]*Post, 0, len(s.posts))
	for _, post := range s.posts {
		out = append(out, post)
	}
	slices.SortFunc(out, func(l, r *Post) int { return l.Stamp.Compare(r.Stamp) })
	return out
}
