// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package state

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"
)

// ErrNoContainer says that there is no such container, or that it belongs to somebody else.
var ErrNoContainer = errors.New("no such container")

// Container is what was handed to a platform to be published by a later call. Nobody sees it.
type Container struct {
	Key
	AccountID string `json:"account_id"`
	Stamp     Stamp  `json:"stamp"`
	Text      string `json:"text"`
	Link      string `json:"link,omitempty"`
	InReplyTo string `json:"in_reply_to,omitempty"`
	// Root is the id of the first post of the chain; empty when the container answers nothing.
	Root string `json:"root,omitempty"`
	// Media are the files that came with it, in their order.
	Media []Media `json:"media,omitempty"`
	// Source is the address of a file that the platform has yet to fetch; empty when it waits for none.
	Source string `json:"source,omitempty"`
	// Detail is what only the platform's own simulator understands.
	Detail json.RawMessage `json:"detail,omitempty"`
	// ReadyAt is when the platform has finished its work on it.
	ReadyAt time.Time `json:"ready_at"`
	// Failure is how that work ends; empty when it ends well.
	Failure string `json:"failure,omitempty"`
	// PostID is the post that came of it, if any. Posts tell it, so that one line of the journal makes the post and says
	// so.
	PostID string `json:"-"`
}

// CreatedAt is when the container was made, to the millisecond.
func (c Container) CreatedAt() time.Time { return c.Stamp.Time() }

// PublishedError says that a container has become a post already.
type PublishedError struct{ Container, Post string }

// Error names both.
func (e *PublishedError) Error() string {
	return fmt.Sprintf("container %s was published as %s", e.Container, e.Post)
}

// CreateContainer keeps a container for an account and fills in what the caller cannot know. processing is the platform's
// default for Settings.Processing; newID makes the platform's id of what is created at that stamp.
func (s *Store) CreateContainer(key Key, c Container, processing time.Duration, newID func(Stamp) string) (Container, error) {
	s.change.RLock()
	defer s.change.RUnlock()
	account, ok := s.Account(key)
	if !ok {
		return Container{}, ErrNoAccount
	}
	if account.Settings.Processing != nil {
		processing = *account.Settings.Processing
	}
	now := s.clock.Now()
	c.AccountID, c.Stamp = key.ID, s.stamps.next(now)
	c.Key = Key{Platform: key.Platform, ID: newID(c.Stamp)}
	c.ReadyAt = now.Add(processing).UTC()
	c.Failure = cmp.Or(c.Failure, account.Settings.ProcessingError)
	if err := s.commit(record{Op: opContainer, Container: &c}); err != nil {
		return Container{}, err
	}
	return c, nil
}

// ChangeContainer lets edit change what is kept of a container. What was published from it stays published.
func (s *Store) ChangeContainer(platform, id string, edit func(*Container)) (Container, error) {
	s.change.Lock() // the look-up and the change are one step, and changes are rare
	defer s.change.Unlock()
	c, ok := s.Container(platform, id)
	if !ok {
		return Container{}, ErrNoContainer
	}
	edit(&c)
	err := s.commit(record{Op: opContainer, Container: &c})
	return c, err
}

func (s *Store) applyContainer(c Container) {
	s.stamps.seen(c.Stamp)
	s.mu.Lock()
	defer s.mu.Unlock()
	if before := s.containers[c.Key]; before != nil {
		c.PostID = before.PostID
	}
	s.containers[c.Key] = &c
}

// Container returns one container.
func (s *Store) Container(platform, id string) (Container, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	c := s.containers[Key{Platform: platform, ID: id}]
	if c == nil {
		return Container{}, false
	}
	return *c, true
}

// checkContainers says whether an account can publish from what a draft names. Call it with the account's lock held: it
// keeps a second publication away.
func (s *Store) checkContainers(owner Key, d Draft) error {
	for _, id := range append([]string{d.Container}, d.Parts...) {
		if err := s.checkContainer(owner, id); err != nil {
			return err
		}
	}
	return nil
}

// checkContainer says whether an account can publish from a container; no container is fine.
func (s *Store) checkContainer(owner Key, id string) error {
	if id == "" {
		return nil
	}
	c, ok := s.Container(owner.Platform, id)
	switch {
	case !ok || c.AccountID != owner.ID:
		return ErrNoContainer
	case c.PostID != "":
		return &PublishedError{Container: id, Post: c.PostID}
	default:
		return nil
	}
}

// everyContainer returns all containers in order of creation. Call it with mu held, or at the start, when nothing else
// runs.
func (s *Store) everyContainer() []*Container {
	out := make([]*Container, 0, len(s.containers))
	for _, c := range s.containers {
		out = append(out, c)
	}
	slices.SortFunc(out, func(l, r *Container) int { return l.Stamp.Compare(r.Stamp) })
	return out
}

// ContainersMade returns how many containers an account has made in the last 24 hours.
func (s *Store) ContainersMade(key Key) int {
	from, made := s.clock.Now().Add(-QuotaWindow), 0
	s.mu.RLock()
	defer s.mu.RUnlock()
	for _, c := range s.containers {
		if c.Platform == key.Platform && c.AccountID == key.ID && c.CreatedAt().After(from) {
			made++
		}
	}
	return made
}

// Unfetched returns the containers of a platform that wait for a file, in order of creation.
func (s *Store) Unfetched(platform string) []Container {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Container
	for _, c := range s.everyContainer() {
		if c.Platform == platform && c.Source != "" {
			out = append(out, *c)
		}
	}
	return out
}
