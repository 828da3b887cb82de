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

// ErrNoContainer says that there is no such container, or that it belongs to another account.
var ErrNoContainer = errors.New("no such container")

// Container is what was handed to a platform to be published by a later call. It is not visible.
type Container struct {
	Key
	AccountID string `json:"account_id"`
	Stamp     Stamp  `json:"stamp"`
	Text      string `json:"text"`
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
	// PostID is the post that came of it, if any. It is kept with the post, so that one write makes the post and says so.
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
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.accounts[key]
	if a == nil {
		return Container{}, ErrNoAccount
	}
	settings := a.info.Settings
	c.AccountID, c.Stamp = key.ID, s.stamp()
	c.Key = Key{Platform: key.Platform, ID: newID(c.Stamp)}
	c.ReadyAt = s.clock.Now().Add(settings.Work(processing)).UTC()
	c.Failure = cmp.Or(c.Failure, settings.ProcessingError)
	if err := s.save(c.entry()); err != nil {
		return Container{}, err
	}
	s.addContainer(c)
	return c, nil
}

func (c Container) entry() entry { return entry{bucketContainers, c.String(), c} }

// ChangeContainer lets edit change what is kept of a container. What was published from it stays published.
func (s *Store) ChangeContainer(platform, id string, edit func(*Container)) (Container, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := s.containers[Key{Platform: platform, ID: id}]
	if found == nil {
		return Container{}, ErrNoContainer
	}
	c := *found
	edit(&c)
	if err := s.save(c.entry()); err != nil {
		return Container{}, err
	}
	*found = c
	return c, nil
}

// addContainer puts a new container into the map.
func (s *Store) addContainer(c Container) {
	s.seen(c.Stamp)
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

// checkContainers says whether an account can publish from these containers; an empty id stands for none.
func (s *Store) checkContainers(owner Key, ids []string) error {
	for _, id := range ids {
		c := s.containers[Key{Platform: owner.Platform, ID: id}]
		switch {
		case id == "":
		case c == nil || c.AccountID != owner.ID:
			return ErrNoContainer
		case c.PostID != "":
			return &PublishedError{Container: id, Post: c.PostID}
		}
	}
	return nil
}

// Unfetched returns the containers of a platform that wait for a file, in order of creation.
func (s *Store) Unfetched(platform string) []Container {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Container
	for _, c := range s.containers {
		if c.Platform == platform && c.Source != "" {
			out = append(out, *c)
		}
	}
	slices.SortFunc(out, func(l, r Container) int { return l.Stamp.Compare(r.Stamp) })
	return out
}
