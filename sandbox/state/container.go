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

// ErrNoContainer is returned for a container that does not exist or belongs to another account.
var ErrNoContainer = errors.New("no such container")

// Container is content that a later call publishes. It is not visible.
type Container struct {
	Key
	AccountID string `json:"account_id"`
	Stamp     Stamp  `json:"stamp"`
	Text      string `json:"text"`
	InReplyTo string `json:"in_reply_to,omitempty"`
	// Root is the id of the first post of the chain; empty if the container is not a reply.
	Root string `json:"root,omitempty"`
	// Media are the container's files, in order.
	Media []Media `json:"media,omitempty"`
	// AltText describes the container's only file. Media has it too once the file has arrived.
	AltText string `json:"alt_text,omitempty"`
	// Source is the address of a file that the platform has not fetched yet; empty without one.
	Source string `json:"source,omitempty"`
	// Detail is opaque data of the platform's simulator.
	Detail json.RawMessage `json:"detail,omitempty"`
	// ReadyAt is the end of the platform's processing.
	ReadyAt time.Time `json:"ready_at"`
	// Failure is the error that the processing ends with; empty for success.
	Failure string `json:"failure,omitempty"`
	// PostID is the published post's ID, if any. It is stored with the post, so a single write creates the post and marks the container as
	// used.
	PostID string `json:"-"`
}

// CreatedAt returns the creation time, to the millisecond.
func (c Container) CreatedAt() time.Time { return c.Stamp.Time() }

// PublishedError is returned for a container that was already published.
type PublishedError struct{ Container, Post string }

// Error returns a message with both ids.
func (e *PublishedError) Error() string {
	return fmt.Sprintf("container %s was published as %s", e.Container, e.Post)
}

// CreateContainer stores a container for an account and sets its stamp, id and processing. processing is the
// platform's default for Settings.Processing; newID returns the platform's id for a stamp.
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

// ChangeContainer applies edit to a stored container. A post that was published from it does not change.
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

// addContainer adds a new container to the map.
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

// checkContainers returns an error unless the account can publish from all of the containers. It skips empty ids.
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

// Unfetched returns the platform's containers that wait for a file, in order of creation.
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
