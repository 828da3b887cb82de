// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"maps"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

type appLimit struct {
	// pending holds limits from responses that the cache does not show yet, by account.
	pending map[string]pendingLimit
	// endByAccount holds the last known end of each account's limit, and refuted the ends that another account's post has
	// refuted.
	endByAccount, refuted map[string]time.Time
	latest                time.Time
	// clearedAt is the time of the last response that proved the absence of a limit.
	clearedAt time.Time
	// probing holds the posts that probe the platform, at most maxProbing. Others wait for them until probingUntil.
	probing      map[types.NamespacedName]struct{}
	maxProbing   int
	probingUntil time.Time
}

type pendingLimit struct {
	until time.Time
	// connection and uid identify the Connection. version is its resourceVersion once it has stored the limit.
	connection types.NamespacedName
	uid        types.UID
	version    string
}

func newAppLimit() *appLimit {
	return &appLimit{pending: map[string]pendingLimit{}, endByAccount: map[string]time.Time{}, refuted: map[string]time.Time{}}
}

// observe sets the end of an account's limit, unless the end was refuted, or has passed and does not need a probe.
func (l *appLimit) observe(account string, until, now time.Time) {
	if until.After(l.refuted[account]) && (until.After(now) || l.needsProbe(until)) {
		l.endByAccount[account] = later(l.endByAccount[account], until)
	}
}

// verifies reports whether a post of the account can verify the limit: its end is in the future, and exactly one other
// account has received it. Ends in the past do not count.
func (l *appLimit) verifies(account string, now time.Time) bool {
	receivers := 0
	for other, until := range l.endByAccount {
		if until.After(now) && other == account {
			return false
		}
		if until.After(now) {
			receivers++
		}
	}
	return receivers == 1
}

// refute marks all known ends as refuted after a probing post has succeeded: each applies only to its own account.
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

// currentEnd returns the current end: the one read, or the latest known end, which is newer if another account has
// received a limit or a post has refuted one since.
func (l *appLimit) currentEnd(read, now time.Time) time.Time {
	if l == nil {
		return read
	}
	if known := l.latestEnd(); read.After(now) || known.After(now) {
		return known
	}
	return read
}

func (l *appLimit) latestEnd() (end time.Time) {
	for _, until := range l.endByAccount {
		end = later(end, until)
	}
	return end
}

// needsProbe reports whether no response since the end has shown that the limit is over.
func (l *appLimit) needsProbe(end time.Time) bool { return end.After(l.clearedAt) }

// isProbing reports whether the posts still wait for a probe. It ignores a probingUntil that is further away than
// probeTimeout: such a time was stored before the clock was set back.
func (l *appLimit) isProbing(now time.Time) bool {
	return l.probingUntil.After(now) && !l.probingUntil.After(now.Add(probeTimeout))
}

func (l *appLimit) mayProbe(post types.NamespacedName) bool {
	_, asks := l.probing[post]
	return asks || len(l.probing) < l.maxProbing
}

func (l *appLimit) finishProbes() (asked bool) {
	asked = len(l.probing) > 0
	l.probing, l.maxProbing, l.probingUntil = nil, 0, time.Time{}
	return asked
}

func (l *appLimit) cancelProbe(post types.NamespacedName) bool {
	_, asked := l.probing[post]
	delete(l.probing, post)
	if asked && len(l.probing) == 0 {
		l.finishProbes() // the next probe has the full timeout
	}
	return asked
}

func (l *appLimit) record(conn *v1alpha1.Connection, until, now time.Time) {
	account := conn.Spec.AccountID
	if !until.After(l.pending[account].until) || !until.After(l.refuted[account]) {
		return
	}
	l.pending[account] = pendingLimit{until: until, connection: client.ObjectKeyFromObject(conn), uid: conn.UID}
	l.observe(account, until, now)
	l.latest = later(l.latest, until)
}

// releaseProbe frees the probe place of a post, and returns the number of posts to wake.
func (l *appLimit) releaseProbe(post types.NamespacedName) (wake int) {
	if l.cancelProbe(post) {
		return wakeSome
	}
	return wakeNone
}
