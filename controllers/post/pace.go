// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"hash/fnv"
	"math"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
)

// heldUntil is when a connection's platform wants calls again; zero if it
// wants them now. It lives in the Connection, so that a restart does not
// stampede, and so that a thousand posts wait without a write of their own.
func heldUntil(conn *v1alpha1.Connection, now time.Time) time.Time {
	if conn == nil || conn.Status.RateLimitedUntil == nil || !conn.Status.RateLimitedUntil.After(now) {
		return time.Time{}
	}
	return conn.Status.RateLimitedUntil.Time
}

// hold notes in a shipment's connection that its platform limits calls. The
// other posts of the connection wait until then without trying.
func (s *scope) hold(ctx context.Context, sh *shipment) {
	err := sh.result.Err
	if err == nil || (err.Class != platforms.ClassRateLimited && err.Class != platforms.ClassQuota) || !err.RetryAt.After(s.Clock.Now()) {
		return
	}
	until := v1alpha1.NewTimePtr(err.RetryAt)
	if known := sh.conn.Status.RateLimitedUntil; known != nil && !until.After(known.Time) {
		return
	}
	conn := sh.conn.DeepCopy()
	base := conn.DeepCopy()
	conn.Status.RateLimitedUntil = until
	if err := s.Client.Status().Patch(ctx, conn, client.MergeFrom(base)); err != nil {
		// The post itself waits all the same; the others will be told by the
		// platform.
		s.log.Error(err, "cannot note that the connection is rate limited", "connection", conn.Name)
	}
}

// heldSpread is over how long the posts of a connection come back after its
// platform wanted no calls: one call is made at a time anyhow.
const heldSpread = 2 * time.Second

// spread is a part of a duration that is the same for a post each time, and
// different for others: what would come in step comes one after another.
func (s *scope) spread(over time.Duration) time.Duration {
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.post.UID))
	return time.Duration(float64(over) * float64(h.Sum32()) / math.MaxUint32)
}

// turnsPerStep is how many posts of one team, due within the same second, are
// taken up before those of other teams that are due then.
const turnsPerStep = 16

// priority puts a post that waits for its time behind the first ones that its
// team has due in the same second: a team's ten thousand posts are taken up
// between the posts of others, not before them.
func (s *scope) priority() int {
	return -s.turns.Take(s.key.Namespace, s.post.Spec.ScheduledAt.Time) / turnsPerStep
}
