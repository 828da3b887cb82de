// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// appLimit is what this process knows of the app on one platform.
type appLimit struct {
	// pending is what answers said, by account, until the cache shows it.
	pending map[string]pendingLimit
	// endByAccount are the ends that accounts were told, as was known last, and refuted those that a post of
	// another account has disproved since.
	endByAccount, refuted map[string]time.Time
	// latest is the latest end that was known.
	latest time.Time
	// clearedAt is when an answer last showed that there is no limit.
	clearedAt time.Time
	// probing are the posts that ask whether the limit is over, at most places of them, and
	// until when the others wait for them.
	probing      map[types.NamespacedName]struct{}
	maxProbing   int
	probingUntil time.Time
}

// pendingLimit is a block that an answer told of, and where it is recorded.
type pendingLimit struct {
	until time.Time
	// connection is the Connection, with its UID, and version its resourceVersion with the block
	// recorded; empty until that is stored.
	connection types.NamespacedName
	uid        types.UID
	version    string
}

func newAppLimit() *appLimit {
	return &appLimit{pending: map[string]pendingLimit{}, endByAccount: map[string]time.Time{}, refuted: map[string]time.Time{}}
}

// observe takes an end that an account was told, unless that has been refuted, or has passed and is over.
func (l *appLimit) observe(account string, until, now time.Time) {
	if until.After(l.refuted[account]) && (until.After(now) || l.needsProbe(until)) {
		l.endByAccount[account] = later(l.endByAccount[account], until)
	}
}

// verifies reports whether a post of an account finds out whether a limit with an end ahead is
// the app's: one other account alone was told of it. Ends that have passed are no evidence.
func (l *appLimit) verifies(account string, now time.Time) bool {
	told := 0
	for other, until := range l.endByAccount {
		if until.After(now) && other == account {
			return false
		}
		if until.After(now) {
			told++
		}
	}
	return told == 1
}

// refute takes that a post which asked went through: what accounts were told holds no other one.
func (l *appLimit) refute() {
	maps.Copy(l.refuted, l.endByAccount)
	clear(l.endByAccount)
	clear(l.pending)
	l.latest = time.Time{}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// currentEnd is the end that was read, or what is known since: more accounts were told, or a post of another one went through.
func (l *appLimit) currentEnd(read, now time.Time) time.Time {
	if l == nil {
		return read
	}
	if known := l.latestEnd(); read.After(now) || known.After(now) {
		return known
	}
	return read
}

// latestEnd is the latest end that is known; zero for none.
func (l *appLimit) latestEnd() (end time.Time) {
	for _, until := range l.endByAccount {
		end = later(end, until)
	}
	return end
}

// needsProbe reports whether it is not known whether a limit with an end that has passed is
// over.
func (l *appLimit) needsProbe(end time.Time) bool { return end.After(l.clearedAt) }

// isProbing reports whether those that ask are still waited for. A time that lies further
// ahead was entered before the clock was set back.
func (l *appLimit) isProbing(now time.Time) bool {
	return l.probingUntil.After(now) && !l.probingUntil.After(now.Add(probeTimeout))
}

// mayProbe reports whether a post asks, or may.
func (l *appLimit) mayProbe(post types.NamespacedName) bool {
	_, asks := l.probing[post]
	return asks || len(l.probing) < l.maxProbing
}

// finishProbes ends the waiting for those that ask. It reports whether any did.
func (l *appLimit) finishProbes() (asked bool) {
	asked = len(l.probing) > 0
	l.probing, l.maxProbing, l.probingUntil = nil, 0, time.Time{}
	return asked
}

// cancelProbe has a post ask no more, so that another one may. It reports whether it did ask.
func (l *appLimit) cancelProbe(post types.NamespacedName) bool {
	_, asked := l.probing[post]
	delete(l.probing, post)
	if asked && len(l.probing) == 0 {
		l.finishProbes() // the next one has the whole time
	}
	return asked
}

// record takes an end that the answer to a call for an account has told.
func (l *appLimit) record(conn *v1alpha1.Connection, until, now time.Time) {
	account := conn.Spec.AccountID
	if !until.After(l.pending[account].until) || !until.After(l.refuted[account]) {
		return
	}
	l.pending[account] = pendingLimit{until: until, connection: client.ObjectKeyFromObject(conn), uid: conn.UID}
	l.observe(account, until, now)
	l.latest = later(l.latest, until)
}

// releaseProbe has a post leave, and returns how many others are to be woken.
func (l *appLimit) releaseProbe(post types.NamespacedName) (wake int) {
	if l.cancelProbe(post) {
		return wakeSome
	}
	return wakeNone
}
