// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// Life is how long a session lasts, whether or not it is used.
	Life = 12 * time.Hour
	// keyAge is the interval between new keys.
	keyAge = 7 * 24 * time.Hour
	// margin is the maximum clock skew between replicas.
	margin = time.Hour
	// linkRetention is how long a link is kept after it expires, so that the error can explain why it does not work.
	// maxLinks limits the number of links.
	linkRetention = 24 * time.Hour
	maxLinks      = 100
)

// Keys of the Secret's data.
const (
	keysField      = "keys"
	linksField     = "links"
	signedOutField = "signedOut"
	lastingField   = "lasting"
)

// state is the state that all replicas share. It is immutable once stored.
type state struct {
	// keys are the keys of the Sealer, oldest first.
	keys []SealingKey
	// lasting is the key of Manager.Sign, which is never rotated.
	lasting []byte
	// links are the one-time links by their hashes.
	links map[string]link
	// signedOut contains the marks of users who signed out everywhere, by name.
	signedOut map[string]signOut
}

// link is a one-time link. Its token is not stored.
type link struct {
	Until time.Time `json:"until"`
	Used  bool      `json:"used,omitempty"`
}

// signOut ends all of a user's sessions that do not carry its mark. It uses a mark rather than a time, because the
// clocks of two replicas differ.
type signOut struct {
	Mark string    `json:"mark"`
	At   time.Time `json:"at"`
}

func parse(secret *corev1.Secret) (*state, error) {
	s := &state{links: map[string]link{}, signedOut: map[string]signOut{}}
	for field, into := range map[string]any{keysField: &s.keys, lastingField: &s.lasting, linksField: &s.links, signedOutField: &s.signedOut} {
		text := secret.Data[field]
		if len(text) == 0 {
			continue
		}
		if err := json.Unmarshal(text, into); err != nil {
			// The text is secret, and a decoder's error may contain part of it.
			return nil, fmt.Errorf("its key %q does not contain Herald's JSON; remove that key, and Herald creates it again", field)
		}
	}
	s.keys = slices.DeleteFunc(s.keys, func(k SealingKey) bool { return !k.valid() })
	if s.links == nil {
		s.links = map[string]link{}
	}
	if s.signedOut == nil {
		s.signedOut = map[string]signOut{}
	}
	return s, nil
}

// store writes the state into the Secret, and keeps its other keys.
func (s *state) store(secret *corev1.Secret) error {
	data := maps.Clone(secret.Data)
	if data == nil {
		data = map[string][]byte{}
	}
	for field, from := range map[string]any{keysField: s.keys, lastingField: s.lasting, linksField: s.links, signedOutField: s.signedOut} {
		text, err := json.Marshal(from)
		if err != nil {
			return fmt.Errorf("encode the %s of sessions: %w", field, err)
		}
		data[field] = text
	}
	secret.Data = data
	return nil
}

// keyDue reports whether a new key is needed, because there is none or the newest is too old.
func (s *state) keyDue(now time.Time) bool {
	return len(s.keys) == 0 || now.Sub(newest(s.keys).CreatedAt) >= keyAge
}

func (s *state) lacksSigningKey() bool { return len(s.lasting) != keyBytes }

func newest(keys []SealingKey) SealingKey {
	return slices.MaxFunc(keys, func(a, b SealingKey) int { return a.CreatedAt.Compare(b.CreatedAt) })
}

// prune drops keys, links and marks that no longer have an effect.
func (s *state) prune(now time.Time) {
	slices.SortStableFunc(s.keys, func(a, b SealingKey) int { return a.CreatedAt.Compare(b.CreatedAt) })
	// A key seals until its successor has settled, and the sealed strings last as long as a session.
	for len(s.keys) > 1 && now.Sub(s.keys[1].CreatedAt) > settle+Life+margin {
		s.keys = s.keys[1:]
	}
	maps.DeleteFunc(s.links, func(_ string, l link) bool { return now.Sub(l.Until) > linkRetention })
	for len(s.links) > maxLinks {
		delete(s.links, s.oldestLink())
	}
	// All earlier sessions have expired.
	maps.DeleteFunc(s.signedOut, func(_ string, o signOut) bool { return now.Sub(o.At) > Life+margin })
}

func (s *state) oldestLink() (hash string) {
	for candidate, l := range s.links {
		if hash == "" || l.Until.Before(s.links[hash].Until) {
			hash = candidate
		}
	}
	return hash
}

func (s *state) signOutEverywhere(name string, now time.Time) {
	s.signedOut[name] = signOut{Mark: rand.Text(), At: now.UTC()}
}

// hashOf returns the hash that is stored in place of a link's token.
func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
