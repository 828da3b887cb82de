// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/ratelimit"
)

// heldUntil is when the platform of target i wants calls again; zero if it wants
// them now. It lives in the Connection, or in another one of the platform if the
// limit is the app's, so that a restart does not stampede, and so that a thousand
// posts that wait need no write of their own when it is put off.
func (s *scope) heldUntil(i int, now time.Time) time.Time {
	conn := s.connection(i)
	if conn == nil {
		return time.Time{}
	}
	until := ratelimit.BlockedUntil(&conn.Status, now)
	for _, other := range []time.Time{s.holds.until(conn, now), s.appHolds[conn.Spec.Platform]} {
		if other.After(until) {
			until = other
		}
	}
	return until
}

// loadAppHolds reads until when the platforms of the post want no calls of
// Herald's app, as they said to any account.
func (s *scope) loadAppHolds(ctx context.Context) error {
	s.appHolds = map[v1alpha1.Platform]time.Time{}
	now := s.Clock.Now()
	for _, conn := range s.conns {
		if conn == nil {
			continue
		}
		platform := conn.Spec.Platform
		if _, read := s.appHolds[platform]; read {
			continue
		}
		s.appHolds[platform] = time.Time{}
		var held v1alpha1.ConnectionList
		// Nearly always there is none.
		if err := s.Client.List(ctx, &held, client.MatchingFields{appHeldField: string(platform)}, client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("cannot tell whether %s limits the whole app: %w", platform, err)
		}
		for i := range held.Items {
			if at := ratelimit.AppBlockedUntil(&held.Items[i].Status, now); at.After(s.appHolds[platform]) {
				s.appHolds[platform] = at
			}
		}
	}
	return nil
}

// appHeldField indexes the connections to which a platform said that it limits
// the whole app, by the platform.
const appHeldField = "status.appRateLimitedUntil"

// indexAppHeld fills that index.
func indexAppHeld(ctx context.Context, indexer client.FieldIndexer) error {
	err := indexer.IndexField(ctx, &v1alpha1.Connection{}, appHeldField, func(obj client.Object) []string {
		if conn, ok := obj.(*v1alpha1.Connection); ok && conn.Status.AppRateLimitedUntil != nil {
			return []string{string(conn.Spec.Platform)}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot index connections by the limits of their apps: %w", err)
	}
	return nil
}

// holds remembers for how long accounts and platforms are left alone, from the
// moment of the answer until the Connection that tells it is read back. What it
// knows is lost with the process, and stands in the Connection by then.
type holds struct {
	mu   sync.Mutex
	held map[string]time.Time
	// posted counts what was published since a platform last told how much is
	// left.
	posted map[string]posted
	// refused holds the connections that were not allowed to publish by the
	// latest answer.
	refused map[string]bool
}

// posted is how many posts were made since a platform's word of that time.
type posted struct {
	since time.Time
	n     int
}

func newHolds() *holds {
	return &holds{held: map[string]time.Time{}, posted: map[string]posted{}, refused: map[string]bool{}}
}

func appKey(platform v1alpha1.Platform) string { return "app/" + string(platform) }

// note takes what an answer told, before anybody else has the account's turn.
func (h *holds) note(sh *shipment, now time.Time) {
	var told v1alpha1.ConnectionStatus
	enterPace(&told, &sh.result, now)
	h.mu.Lock()
	defer h.mu.Unlock()
	for key, until := range map[string]time.Time{
		string(sh.conn.UID): ratelimit.BlockedUntil(&told, now), appKey(sh.conn.Spec.Platform): ratelimit.AppBlockedUntil(&told, now),
	} {
		if until.After(h.held[key]) {
			h.held[key] = until
		}
	}
	if err := sh.result.Err; err != nil && err.Class == platforms.ClassReconnect {
		h.refused[string(sh.conn.UID)] = true
	}
}

// allowed reports whether a connection publishes again that was not allowed to a
// moment ago, which the cache may not tell yet.
func (h *holds) allowed(sh *shipment) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if sh.result.Outcome != platforms.Posted || !h.refused[string(sh.conn.UID)] {
		return false
	}
	delete(h.refused, string(sh.conn.UID))
	return true
}

// until is until when an account is left alone, as far as this process knows.
func (h *holds) until(conn *v1alpha1.Connection, now time.Time) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	var latest time.Time
	for _, key := range []string{string(conn.UID), appKey(conn.Spec.Platform)} {
		until, ok := h.held[key]
		switch {
		case ok && !until.After(now):
			delete(h.held, key)
		case until.After(latest):
			latest = until
		}
	}
	return latest
}

// low counts a post to an account, and reports whether by now little is left of
// a limit of which the platform told a while ago.
func (h *holds) low(conn *v1alpha1.Connection) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(conn.Status.RateLimits) == 0 {
		delete(h.posted, string(conn.UID))
		return false
	}
	low := false
	count := h.posted[string(conn.UID)]
	if at := conn.Status.RateLimits[0].ObservedAt.Time; !at.Equal(count.since) {
		count = posted{since: at}
	}
	count.n++
	h.posted[string(conn.UID)] = count
	for i := range conn.Status.RateLimits {
		low = low || ratelimit.Low(&conn.Status.RateLimits[i], count.n)
	}
	return low
}

// enterPace writes what a result tells of limits into a status, and reports
// whether calls are held for longer now.
func enterPace(status *v1alpha1.ConnectionStatus, result *platforms.Result, now time.Time) (held bool) {
	told := slices.DeleteFunc(slices.Clone(result.RateLimits), func(a platforms.RateLimit) bool { return !a.Low() && a.BlockedUntil.IsZero() })
	held = ratelimit.Apply(status, told, now)
	if err := result.Err; err != nil && !err.PostOnly && (err.Class == platforms.ClassRateLimited || err.Class == platforms.ClassQuota) {
		held = ratelimit.Block(status, err.RetryAt, err.AppWide, err.Message, now) || held
	}
	return held
}

// enterRefusal notes in a connection that its platform does not let it publish,
// until it does again.
func enterRefusal(conn *v1alpha1.Connection, result *platforms.Result, now time.Time) {
	switch {
	case result.Outcome == platforms.Posted:
		meta.RemoveStatusCondition(&conn.Status.Conditions, v1alpha1.ConditionPublishingRefused)
	case result.Err != nil && result.Err.Class == platforms.ClassReconnect:
		meta.SetStatusCondition(&conn.Status.Conditions, metav1.Condition{
			Type: v1alpha1.ConditionPublishingRefused, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonRefused,
			Message: truncate(result.Err.Message, maxMessage), ObservedGeneration: conn.Generation, LastTransitionTime: metav1.NewTime(now),
		})
	}
}

// hold notes in a shipment's connection what its platform told of it: if
// it wants no calls, the other posts of the connection wait until then without
// trying, and those of the whole platform if the limit is the app's. Nothing is
// written as long as there is room.
func (s *scope) hold(ctx context.Context, sh *shipment) {
	s.holds.note(sh, s.Clock.Now())
	conn, err := sh.conn.DeepCopy(), error(nil)
	if s.holds.allowed(sh) {
		conn, err = s.liveConnection(ctx, sh)
	}
	for range mostHolds {
		if err != nil {
			// This process knows it all the same; another will be told by the
			// platform.
			s.log.Error(err, "cannot note what the platform said of the connection", "connection", sh.conn.Name)
			return
		}
		base := conn.DeepCopy()
		held := enterPace(&conn.Status, &sh.result, s.Clock.Now())
		enterRefusal(conn, &sh.result, s.Clock.Now())
		if v1alpha1.SemanticEqual(base.Status, conn.Status) {
			return
		}
		err = s.Client.Status().Patch(ctx, conn, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
		if err == nil {
			if held {
				s.story.limited(conn)
			}
			return
		}
		if apierrors.IsConflict(err) {
			conn, err = s.liveConnection(ctx, sh)
		}
	}
}

// liveConnection reads the connection of a shipment as it stands now.
func (s *scope) liveConnection(ctx context.Context, sh *shipment) (*v1alpha1.Connection, error) {
	var conn v1alpha1.Connection
	if err := s.APIReader.Get(ctx, client.ObjectKeyFromObject(sh.conn), &conn); err != nil {
		return nil, fmt.Errorf("cannot read the connection again: %w", err)
	}
	if conn.UID != sh.conn.UID {
		return nil, fmt.Errorf("connection %q was made anew", sh.conn.Name)
	}
	return &conn, nil
}

// mostHolds is how often the note of a limit gives way to others who write the
// status of the connection.
const mostHolds = 5

// watchQuota asks for a look at what is left of the account's limits when, by
// count, it has become little, or when the platform says that it is used up.
func (s *scope) watchQuota(ctx context.Context, sh *shipment) {
	// Asked of the platform itself: what converts images for it hides the rest.
	if _, tells := s.Platforms[sh.conn.Spec.Platform].(platforms.AccountInspector); !tells {
		return
	}
	err := sh.result.Err
	if sh.result.Outcome == platforms.Posted && s.holds.low(sh.conn) || err != nil && err.Class == platforms.ClassQuota {
		s.requestProbe(ctx, sh)
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
