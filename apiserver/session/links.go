// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// Reasons why a one-time link does not sign anyone in.
var (
	ErrLinkUnknown = errors.New("there is no such link")
	ErrLinkUsed    = errors.New("the link has already been used")
	ErrLinkExpired = errors.New("the link has expired")
)

// tokenBytes is the length of a link's token: 256 bits cannot be guessed.
const tokenBytes = 32

var tokenLength = base64.RawURLEncoding.EncodedLen(tokenBytes)

// AddLink creates a one-time link with a TTL, stores it in the named Secret, and returns its token. Only the token's
// hash is stored. The Secret must exist.
func AddLink(ctx context.Context, secrets SecretClient, name string, clk clock.Clock, valid time.Duration) (token string, err error) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // crypto/rand.Read never returns an error
	token = base64.RawURLEncoding.EncodeToString(random)
	err = newStore(secrets, name, clk, slog.New(slog.DiscardHandler)).update(ctx, func(next *state) error {
		next.links[hashOf(token)] = link{Until: clk.Now().Add(valid).UTC()}
		return nil
	})
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: is Herald installed in this namespace, with its web application?", err)
	}
	return token, err
}

// HasLink reports whether a link exists, valid or not, according to the cache. A link that was just created may still
// be missing.
func (m *Manager) HasLink(token string) bool {
	_, found := m.store.current.Load().links[hashOf(token)]
	return found
}

// CheckLink returns nil if the link would sign someone in; it does not use the link. The error is one of the three
// above, or an error from the Kubernetes API.
func (m *Manager) CheckLink(ctx context.Context, token string) error {
	if len(token) != tokenLength {
		return ErrLinkUnknown
	}
	hash := hashOf(token)
	if known, found := m.store.current.Load().links[hash]; found {
		return known.check(m.clock.Now())
	}
	// The link may be newer than the cache.
	err := m.store.update(ctx, func(live *state) error {
		found, ok := live.links[hash]
		if !ok {
			return ErrLinkUnknown
		}
		if err := found.check(m.clock.Now()); err != nil {
			return err
		}
		return errUnchanged
	})
	return err
}

// UseLink marks a link as used. Of all attempts with one token, across all replicas, only one returns nil. Its errors
// are those of CheckLink.
func (m *Manager) UseLink(ctx context.Context, token string) error {
	if len(token) != tokenLength {
		return ErrLinkUnknown
	}
	hash := hashOf(token)
	if known, found := m.store.current.Load().links[hash]; found {
		// A used or expired link never becomes valid again, so no request to the Kubernetes API is needed.
		if err := known.check(m.clock.Now()); err != nil {
			return err
		}
	}
	return m.store.update(ctx, func(live *state) error {
		found, ok := live.links[hash]
		if !ok {
			return ErrLinkUnknown
		}
		if err := found.check(m.clock.Now()); err != nil {
			return err
		}
		found.Used = true
		live.links[hash] = found
		return nil
	})
}

func (l link) check(now time.Time) error {
	switch {
	case l.Used:
		return ErrLinkUsed
	case !now.Before(l.Until):
		return ErrLinkExpired
	default:
		return nil
	}
}
