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
	// rememberClaims is how long the first sight of another process's claim is
	// remembered: longer than anybody's patience.
	rememberClaims = time.Hour
	// mostClaims is how many are, of as many accounts.
	mostClaims = 10_000
)

// claims remembers when this process first saw the claims of others, and which it made.
type claims struct{ seen, own *cache.LRUExpireCache }

func newClaims(c clock.PassiveClock) *claims {
	return &claims{cache.NewLRUExpireCacheWithClock(mostClaims, c), cache.NewLRUExpireCacheWithClock(mostClaims, c)}
}

// claimKey names a claim.
func claimKey(conn *v1alpha1.Connection, text string) string {
	return conn.Namespace + "/" + WorkingName(conn) + " " + text
}

// firstSeen returns when this process first saw a claim. The time that the claim itself tells
// does not count: it is by another clock.
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
