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
	// cacheFor is how long a token is held in memory at most, which is how long one
	// is used after its Secret was deleted: Secrets are not watched. cacheMax is how
	// many are held. An account in use costs a read of two Secrets each minute.
	cacheFor = time.Minute
	cacheMax = 10_000
	// loadTimeout bounds one read of a Secret, and the request that follows from it.
	loadTimeout = 10 * time.Second
	// rememberFor is how long it is known of a token that the platform confirmed it, after
	// it was last read.
	rememberFor = 24 * time.Hour
)

// Loader reads the token of a Connection.
type Loader interface {
	Load(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error)
}

// ExaminationRequester asks for an examination of a Connection whose credentials are, in a version, what the
// platform has not confirmed, or whose input is another one.
type ExaminationRequester func(ctx context.Context, conn *v1alpha1.Connection, version string) error

// Cache holds the tokens in use, so that a thousand posts over one Connection read
// its Secret once. It reads a token again when the Connection's status names another
// version of the credentials, when the Connection refers to another Secret, and
// after a minute.
//
// It hands out nothing but what the platform confirmed: a Secret can be replaced at any
// time, by another account's tokens too, and nobody watches it. Until the status says that
// those were confirmed, there is an error Unverified. A Secret in which something else
// changed, such as a label, still holds the token that was confirmed.
//
// It may be used from many goroutines at once.
type Cache struct {
	loader             Loader
	requestExamination ExaminationRequester
	loads              singleflight.Group
	// tokens are the tokens, known digests of those that were confirmed, and others the hashes of
	// the inputs that were told of, by the UID of their Connection.
	tokens, digests, reported *cache.LRUExpireCache
	// forgets counts calls of Forget: a token whose read began before one is not
	// held. Its lock is for that comparison.
	mu         sync.Mutex
	generation uint64
}

// stamp says what the Connection said when a token was read for it: which Secret, which
// version of it was examined, and whether the platform confirmed that.
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

// entry is a token, or that what was read is not verified.
type entry struct {
	stamp

	token Token
	err   error
}

// digest is that of a confirmed access token: whoever holds memory for longer than the token
// is needed holds no token. In which Secret it is says nothing, as the account of a Connection
// never changes.
type digest [sha256.Size]byte

func digestOf(token Token) digest { return sha256.Sum256([]byte(token.Access)) }

// NewCache returns an empty Cache. A nil Asker asks for nothing.
func NewCache(loader Loader, c clock.PassiveClock, ask ExaminationRequester) *Cache {
	if ask == nil {
		ask = func(context.Context, *v1alpha1.Connection, string) error { return nil }
	}
	return &Cache{
		loader: loader, requestExamination: ask,
		tokens: cache.NewLRUExpireCacheWithClock(cacheMax, c), digests: cache.NewLRUExpireCacheWithClock(cacheMax, c),
		reported: cache.NewLRUExpireCacheWithClock(cacheMax, c),
	}
}

// Token returns the token of a Connection. Errors are those of the Loader, an *Error with
// Unverified, or of ctx. Those of the Loader are not held.
func (c *Cache) Token(ctx context.Context, conn *v1alpha1.Connection) (Token, error) {
	wanted := stampOf(conn)
	c.mu.Lock()
	forgets := c.generation
	c.mu.Unlock()
	found, _ := c.tokens.Get(conn.UID)
	if held, ok := found.(entry); ok && held.stamp == wanted {
		return held.token, held.err
	}
	// Many callers wait for one read, so it must not end with the caller that
	// began it.
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

// load reads a token, and holds what came of that.
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
	// What was examined, or is looked for, as it is needs no other request. Of a disabled
	// connection no credentials are examined.
	if wanted.version != "" && wanted.version != found.Version && !conn.Spec.Disabled {
		if failed := c.requestExamination(ctx, conn, found.Version); failed != nil {
			return Token{}, err
		}
	}
	c.add(conn.UID, entry{stamp: wanted, err: err}, forgets)
	return Token{}, err
}

// confirmed reports whether the platform confirmed what was read: it is what the status
// speaks of, or the token that was read for that before.
func (c *Cache) confirmed(uid types.UID, wanted stamp, found Credentials) bool {
	if !wanted.confirmed {
		return false
	}
	known, _ := c.digests.Get(uid)
	return found.Version == wanted.version || known == any(digestOf(found.Token))
}

// requestExaminationOnce asks for an examination, once, when the input is another one than the working copy is
// from: new tokens are taken over when they have proved good, and the status says what becomes
// of others.
func (c *Cache) requestExaminationOnce(ctx context.Context, conn *v1alpha1.Connection, found Credentials) {
	told, _ := c.reported.Get(conn.UID)
	if found.Other == "" || told == any(found.Other) || conn.Spec.Disabled || c.requestExamination(ctx, conn, found.Version) != nil {
		return
	}
	c.reported.Add(conn.UID, found.Other, rememberFor)
}

// Renewed says that a token was renewed by itself: where the old one was confirmed the new one
// is of the same account, before a status says so.
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

// Forget drops the token of a Connection, after the platform refused it or the
// Connection was deleted.
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
	c.tokens.Add(uid, e, cacheFor)
	if e.err == nil {
		c.digests.Add(uid, digestOf(e.token), rememberFor)
	}
}
