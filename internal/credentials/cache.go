// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
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
	// many are held. An account in use costs a read of its Secret each minute.
	cacheFor = time.Minute
	cacheMax = 10_000
	// loadTimeout bounds one read of a Secret.
	loadTimeout = 10 * time.Second
)

// Loader reads the token of a Connection.
type Loader interface {
	Load(ctx context.Context, conn *v1alpha1.Connection) (Credentials, error)
}

// Cache holds the tokens in use, so that a thousand posts over one Connection read
// its Secret once. It reads a token again when the Connection's status names another
// version of the credentials, when the Connection refers to another Secret, and
// after a minute.
//
// It may be used from many goroutines at once.
type Cache struct {
	loader Loader
	loads  singleflight.Group
	// held are the tokens, by the UID of their Connection.
	held *cache.LRUExpireCache
	// forgets counts calls of Forget: a token whose read began before one is not
	// held. Its lock is for that comparison.
	mu      sync.Mutex
	forgets uint64
}

// stamp says which Secret, and which version of it, a token was read for.
type stamp struct{ secret, version string }

type entry struct {
	stamp
	token Token
}

// NewCache returns an empty Cache.
func NewCache(loader Loader, c clock.PassiveClock) *Cache {
	return &Cache{loader: loader, held: cache.NewLRUExpireCacheWithClock(cacheMax, c)}
}

// Token returns the token of a Connection. Errors are those of the Loader, or
// of ctx; they are not held.
func (c *Cache) Token(ctx context.Context, conn *v1alpha1.Connection) (Token, error) {
	wanted := stamp{secret: conn.Spec.CredentialsSecretRef.Name, version: conn.Status.CredentialsVersion}
	c.mu.Lock()
	forgets := c.forgets
	c.mu.Unlock()
	found, _ := c.held.Get(conn.UID)
	if held, ok := found.(entry); ok && held.stamp == wanted {
		return held.token, nil
	}
	// Many callers wait for one read, so it must not end with the caller that
	// began it.
	loading := c.loads.DoChan(string(conn.UID)+"/"+wanted.secret+"/"+wanted.version, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), loadTimeout)
		defer cancel()
		found, err := c.loader.Load(ctx, conn)
		if err != nil {
			return Token{}, err
		}
		c.hold(conn.UID, entry{stamp: wanted, token: found.Token}, forgets)
		return found.Token, nil
	})
	select {
	case <-ctx.Done():
		return Token{}, ctx.Err()
	case result := <-loading:
		token, _ := result.Val.(Token)
		return token, result.Err
	}
}

// Forget drops the token of a Connection, after the platform refused it or the
// Connection was deleted.
func (c *Cache) Forget(conn *v1alpha1.Connection) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held.Remove(conn.UID)
	c.forgets++
}

func (c *Cache) hold(uid types.UID, e entry, forgets uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgets == forgets {
		c.held.Add(uid, e, cacheFor)
	}
}
