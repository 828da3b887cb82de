// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"crypto/sha256"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// cacheFor is the TTL of a token in memory. Since Secrets are not watched, a token can be used for that long after its
	// Secret was deleted. cacheMax is the maximum number of cached tokens. An account in use costs up to three
	// reads of each of its Secrets a minute.
	cacheFor = time.Minute
	cacheMax = 10_000
	// loadTimeout bounds one read of a Secret, and the request that follows from it.
	loadTimeout = 10 * time.Second
	// rememberFor is how long the digest of a confirmed token is kept after it was last read.
	rememberFor = 24 * time.Hour
)

// Loader reads a Connection's token.
type Loader interface {
	Load(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error)
}

// ExaminationRequester requests an examination of a Connection because its credentials have a version that the platform
// has not confirmed, or because its input has changed.
type ExaminationRequester func(ctx context.Context, conn *v1alpha1.Connection, version string) error

// Cache holds the tokens in use, so that a thousand posts through one Connection read its Secret once. It reads a token
// again when the Connection's status names a different version of the credentials, when the Connection refers to a
// different Secret, and after a minute.
//
// It returns only confirmed tokens: Secrets are not watched, and can be replaced at any time, even with another
// account's tokens. Until the status confirms the new tokens, Token returns an error with reason Unverified. Changing
// anything else in the Secret, such as a label, does not affect the confirmed token.
//
// It is safe for concurrent use.
type Cache struct {
	loader             Loader
	requestExamination ExaminationRequester
	clock              clock.PassiveClock
	loads              singleflight.Group
	// All three are keyed by the Connection's UID: tokens caches tokens, digests the hashes of confirmed tokens, and
	// reported the hashes of inputs whose examination was requested.
	tokens, digests, reported *cache.LRUExpireCache
	// generation counts calls of Forget: a token whose read started earlier is not cached. mu guards that comparison.
	mu         sync.Mutex
	generation uint64
}

// stamp describes a Connection when its token was read: Secret, examined version, and the platform's confirmation.
type stamp struct {
	secret, version string
	confirmed       bool
}

func stampOf(conn *v1alpha1.Connection) stamp {
	return stamp{conn.Spec.CredentialsSecretRef.Name, conn.Status.CredentialsVersion, conn.Status.Confirmed()}
}

func (s stamp) key(uid types.UID) string {
	return fmt.Sprintf("%s/%s/%s/%t", uid, s.secret, s.version, s.confirmed)
}

type entry struct {
	stamp

	token Token
	err   error
	// expiresAt is the end of its TTL.
	expiresAt time.Time
}

// digest is the hash of a confirmed access token. The token itself should not remain in memory longer than it is used.
// The Secret's name is not part of the digest, since a Connection's account never changes.
type digest [sha256.Size]byte

func digestOf(token Token) digest { return sha256.Sum256([]byte(token.Access)) }

// NewCache returns an empty Cache. It does not request examinations if ask is nil.
func NewCache(loader Loader, c clock.PassiveClock, ask ExaminationRequester) *Cache {
	if ask == nil {
		ask = func(context.Context, *v1alpha1.Connection, string) error { return nil }
	}
	return &Cache{
		loader: loader, requestExamination: ask, clock: c,
		tokens: cache.NewLRUExpireCacheWithClock(cacheMax, c), digests: cache.NewLRUExpireCacheWithClock(cacheMax, c),
		reported: cache.NewLRUExpireCacheWithClock(cacheMax, c),
	}
}

// Token returns a Connection's token. The error comes from the Loader or from ctx, or is an *Error with reason
// Unverified. Errors of the Loader are not cached.
func (c *Cache) Token(ctx context.Context, conn *v1alpha1.Connection) (Token, error) {
	return c.tokenUntil(ctx, conn, time.Time{})
}

// Prefetch reads a Connection's token, unless the cached one can be used until the given time. It returns the same errors
// as Token.
func (c *Cache) Prefetch(ctx context.Context, conn *v1alpha1.Connection, until time.Time) error {
	_, err := c.tokenUntil(ctx, conn, until)
	return err
}

// tokenUntil returns the cached token if it does not expire before the given time, and otherwise reads it.
func (c *Cache) tokenUntil(ctx context.Context, conn *v1alpha1.Connection, until time.Time) (Token, error) {
	wanted := stampOf(conn)
	c.mu.Lock()
	forgets := c.generation
	c.mu.Unlock()
	found, _ := c.tokens.Get(conn.UID)
	if cached, ok := found.(entry); ok && cached.stamp == wanted && !cached.expiresAt.Before(until) {
		return cached.token, cached.err
	}
	if err := ctx.Err(); err != nil {
		return Token{}, err
	}
	// Many callers wait for one read, so cancelling the first caller must not cancel it.
	loading := c.loads.DoChan(wanted.key(conn.UID), func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		return c.load(ctx, conn, wanted, forgets)
	})
	select {
	case <-ctx.Done():
		return Token{}, ctx.Err()
	case result := <-loading:
		token, _ := result.Val.(Token)
		return token, result.Err
	}
}

func (c *Cache) load(ctx context.Context, conn *v1alpha1.Connection, wanted stamp, forgets uint64) (Token, error) {
	found, err := c.loader.Load(ctx, conn)
	if err != nil {
		return Token{}, err
	}
	if c.confirmed(conn.UID, wanted, found) {
		c.requestExaminationOnce(ctx, conn, found)
		c.add(conn.UID, entry{stamp: wanted, token: found.Token}, forgets)
		return found.Token, nil
	}
	err = unverified(wanted.secret)
	// A version that was already examined does not need a request, nor does any version while the status has none. The
	// credentials of a disabled connection are not examined.
	if wanted.version != "" && wanted.version != found.Version && !conn.Spec.Disabled {
		if failed := c.requestExamination(ctx, conn, found.Version); failed != nil {
			return Token{}, err
		}
	}
	c.add(conn.UID, entry{stamp: wanted, err: err}, forgets)
	return Token{}, err
}

// confirmed reports whether the platform has confirmed these credentials: their version is the one in the status, or
// the token has not changed since it was confirmed.
func (c *Cache) confirmed(uid types.UID, wanted stamp, found Credentials) bool {
	if !wanted.confirmed {
		return false
	}
	known, _ := c.digests.Get(uid)
	return found.Version == wanted.version || known == any(digestOf(found.Token))
}

// requestExaminationOnce requests a single examination if the working copy was not made from the current input. The
// manager adopts new tokens after the platform accepts them; the status shows the result.
func (c *Cache) requestExaminationOnce(ctx context.Context, conn *v1alpha1.Connection, found Credentials) {
	reported, _ := c.reported.Get(conn.UID)
	if found.Other == "" || reported == any(found.Other) || conn.Spec.Disabled || c.requestExamination(ctx, conn, found.Version) != nil {
		return
	}
	c.reported.Add(conn.UID, found.Other, rememberFor)
}

// Renewed records that a token was renewed. If the old one was confirmed, the new one belongs to the same account, even
// before the status has the new version.
func (c *Cache) Renewed(old, renewed Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, is := digestOf(old), digestOf(renewed)
	for _, uid := range c.digests.Keys() {
		if known, _ := c.digests.Get(uid); known == any(was) {
			c.digests.Add(uid, is, rememberFor)
		}
	}
}

// Forget drops a Connection's token, after the platform refused it or the Connection was deleted.
func (c *Cache) Forget(conn *v1alpha1.Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens.Remove(conn.UID)
	c.digests.Remove(conn.UID)
	c.generation++
}

func (c *Cache) add(uid types.UID, e entry, forgets uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.generation != forgets {
		return
	}
	e.expiresAt = c.clock.Now().Add(cacheFor)
	c.tokens.Add(uid, e, cacheFor)
	if e.err == nil {
		c.digests.Add(uid, digestOf(e.token), rememberFor)
	}
}
