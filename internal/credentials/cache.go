// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// cacheFor is how long a token is held in memory at most, and cacheMax how
	// many are.
	cacheFor = 5 * time.Minute
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
// after five minutes.
//
// It may be used from many goroutines at once.
type Cache struct {
	loader Loader
	clock  clock.PassiveClock
	loads  singleflight.Group

	mu      sync.Mutex
	entries map[types.UID]entry
	// forgets counts calls of Forget: a token whose read began before one is not
	// held.
	forgets uint64
}

// stamp says which Secret, and which version of it, a token was read for.
type stamp struct{ secret, version string }

type entry struct {
	stamp
	token Token
	until time.Time
}

// NewCache returns an empty Cache.
func NewCache(loader Loader, c clock.PassiveClock) *Cache {
	return &Cache{loader: loader, clock: c, entries: map[types.UID]entry{}}
}

// Token returns the token of a Connection. Errors are those of the Loader, or
// of ctx; they are not held.
func (c *Cache) Token(ctx context.Context, conn *v1alpha1.Connection) (Token, error) {
	wanted := stamp{secret: conn.Spec.CredentialsSecretRef.Name, version: conn.Status.CredentialsVersion}
	c.mu.Lock()
	held, ok := c.entries[conn.UID]
	forgets := c.forgets
	c.mu.Unlock()
	if ok && held.stamp == wanted && c.clock.Now().Before(held.until) {
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
	delete(c.entries, conn.UID)
	c.forgets++
}

func (c *Cache) hold(uid types.UID, e entry, forgets uint64) {
	now := c.clock.Now()
	e.until = now.Add(cacheFor)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.forgets != forgets {
		return
	}
	if _, there := c.entries[uid]; !there && len(c.entries) >= cacheMax {
		c.makeRoom(now)
	}
	c.entries[uid] = e
}

// makeRoom drops the tokens that are held too long, or else the oldest one.
func (c *Cache) makeRoom(now time.Time) {
	var oldest types.UID
	for uid, e := range c.entries {
		if !now.Before(e.until) {
			delete(c.entries, uid)
			continue
		}
		if first, ok := c.entries[oldest]; !ok || e.until.Before(first.until) {
			oldest = uid
		}
	}
	if len(c.entries) >= cacheMax {
		delete(c.entries, oldest)
	}
}
