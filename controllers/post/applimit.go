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
	// told is what answers said, by account, until the cache shows it.
	told map[string]told
	// ends are the ends that accounts were told, as was known last, and refuted those that a post of
	// another account has disproved since.
	ends, refuted map[string]time.Time
	// latest is the latest end that was known.
	latest time.Time
	// over is when an answer last showed that there is no limit.
	over time.Time
	// asking are the posts that ask whether the limit is over, at most places of them, and
	// until when the others wait for them.
	asking      map[types.NamespacedName]struct{}
	places      int
	askingUntil time.Time
}

// told is a block that an answer told of, and where it is recorded.
type told struct {
	until time.Time
	// in is the Connection, with its UID, and version its resourceVersion with the block
	// recorded; empty until that is stored.
	in      types.NamespacedName
	uid     types.UID
	version string
}

func newAppLimit() *appLimit {
	return &appLimit{told: map[string]told{}, ends: map[string]time.Time{}, refuted: map[string]time.Time{}}
}

// know takes an end that an account was told, unless that has been refuted, or has passed and is over.
func (l *appLimit) know(account string, until, now time.Time) {
	if until.After(l.refuted[account]) && (until.After(now) || l.isDoubted(until)) {
		l.ends[account] = later(l.ends[account], until)
	}
}

// verifies reports whether a post of an account finds out whether a limit with an end ahead is
// the app's: one other account alone was told of it. Ends that have passed are no evidence.
func (l *appLimit) verifies(account string, now time.Time) bool {
	told := 0
	for other, until := range l.ends {
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
	maps.Copy(l.refuted, l.ends)
	clear(l.ends)
	clear(l.told)
	l.latest = time.Time{}
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// endNow is the end that was read, or what is known since: more accounts were told, or a post of another one went through.
func (l *appLimit) endNow(read, now time.Time) time.Time {
	if l == nil {
		return read
	}
	if known := l.end(); read.After(now) || known.After(now) {
		return known
	}
	return read
}

// end is the latest end that is known; zero for none.
func (l *appLimit) end() (end time.Time) {
	for _, until := range l.ends {
		end = later(end, until)
	}
	return end
}

// isDoubted reports whether it is not known whether a limit with an end that has passed is
// over.
func (l *appLimit) isDoubted(end time.Time) bool { return end.After(l.over) }

// isWaited reports whether those that ask are still waited for. A time that lies further
// ahead was entered before the clock was set back.
func (l *appLimit) isWaited(now time.Time) bool {
	return l.askingUntil.After(now) && !l.askingUntil.After(now.Add(askWithin))
}

// hasPlace reports whether a post asks, or may.
func (l *appLimit) hasPlace(post types.NamespacedName) bool {
	_, asks := l.asking[post]
	return asks || len(l.asking) < l.places
}

// answered ends the waiting for those that ask. It reports whether any did.
func (l *appLimit) answered() (asked bool) {
	asked = len(l.asking) > 0
	l.asking, l.places, l.askingUntil = nil, 0, time.Time{}
	return asked
}

// leave has a post ask no more, so that another one may. It reports whether it did ask.
func (l *appLimit) leave(post types.NamespacedName) bool {
	_, asked := l.asking[post]
	delete(l.asking, post)
	if asked && len(l.asking) == 0 {
		l.answered() // the next one has the whole time
	}
	return asked
}

// tell takes an end that the answer to a call for an account has told.
func (l *appLimit) tell(conn *v1alpha1.Connection, until, now time.Time) {
	account := conn.Spec.AccountID
	if !until.After(l.told[account].until) || !until.After(l.refuted[account]) {
		return
	}
	l.told[account] = told{until: until, in: client.ObjectKeyFromObject(conn), uid: conn.UID}
	l.know(account, until, now)
	l.latest = later(l.latest, until)
}

// freed has a post leave, and returns how many others are to be woken.
func (l *appLimit) freed(post types.NamespacedName) (wake int) {
	if l.leave(post) {
		return wakeSome
	}
	return wakeNone
}
