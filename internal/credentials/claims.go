// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// rememberClaims is how long the cache remembers when it first saw a claim. It exceeds all claimTimeouts that callers
	// use.
	rememberClaims = time.Hour
	// maxClaims is the maximum number of remembered claims, one per account.
	maxClaims = 10_000
)

// claims records this process's own claims, and the times when it first saw other processes' claims.
type claims struct{ seen, own *cache.LRUExpireCache }

func newClaims(c clock.PassiveClock) *claims {
	return &claims{cache.NewLRUExpireCacheWithClock(maxClaims, c), cache.NewLRUExpireCacheWithClock(maxClaims, c)}
}

func claimKey(conn *v1alpha1.Connection, text string) string {
	return conn.Namespace + "/" + WorkingName(conn) + " " + text
}

// firstSeen returns the time when this process first saw a claim. The claim's own time comes from a different clock.
func (c *claims) firstSeen(conn *v1alpha1.Connection, read Credentials, now time.Time) time.Time {
	key := claimKey(conn, claimText(read.ClaimedBy, read.ClaimedAt))
	first, ok := c.seen.Get(key)
	at, isTime := first.(time.Time)
	if !ok || !isTime {
		at = now
		c.seen.Add(key, at, rememberClaims)
	}
	return at
}
