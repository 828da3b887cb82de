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

// Why a one-time link does not sign in.
var (
	ErrLinkUnknown = errors.New("there is no such link")
	ErrLinkUsed    = errors.New("the link was used already")
	ErrLinkExpired = errors.New("the link has expired")
)

// tokenBytes makes 256 bits of a link's token: too many to guess.
const tokenBytes = 32

// tokenLength is the length of the token's text.
var tokenLength = base64.RawURLEncoding.EncodedLen(tokenBytes)

// AddLink makes a one-time link with a limited life, stores it in the Secret of that name, and
// returns its token. Only the token's hash is stored. The Secret must be there.
func AddLink(ctx context.Context, secrets SecretClient, name string, clk clock.Clock, valid time.Duration) (token string, err error) {
	random := make([]byte, tokenBytes)
	_, _ = rand.Read(random) // it never fails
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

// HasLink reports whether there is such a link, good or not, as far as this replica has
// heard: it asks memory alone. A link that was made a moment ago may still be unknown.
func (m *Manager) HasLink(token string) bool {
	_, found := m.store.current.Load().links[hashOf(token)]
	return found
}

// CheckLink says whether a link would sign in; it uses nothing up. The error is one of the
// three above, or says why it cannot be known.
func (m *Manager) CheckLink(ctx context.Context, token string) error {
	if len(token) != tokenLength {
		return ErrLinkUnknown
	}
	hash := hashOf(token)
	if known, found := m.store.current.Load().links[hash]; found {
		return known.check(m.clock.Now())
	}
	// It may have been made a moment ago.
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

// UseLink uses a link up. Of all tries with one token, over all replicas, one returns nil.
// It returns the errors of CheckLink.
func (m *Manager) UseLink(ctx context.Context, token string) error {
	if len(token) != tokenLength {
		return ErrLinkUnknown
	}
	hash := hashOf(token)
	if known, found := m.store.current.Load().links[hash]; found {
		// A link that is over stays so: nothing needs to be asked, however often it is tried.
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
