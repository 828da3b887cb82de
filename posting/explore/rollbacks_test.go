// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"bytes"
	"maps"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// A rollback to a snapshot returns the object to an earlier state, under its own UID, while the bucket and the platform
// keep what happened later. The manager detects it before sending anything, or is uncertain while the store is
// unavailable. It may also detect a rollback that did not happen, as after reinstalling into a deleted namespace. How
// it is detected is not part of this model: see internal/rollback.

// rewind is the state of rollbacks and snapshots.
type rewind struct {
	// ticks counts events that have a time of their own. late is true once scheduled posts are due.
	ticks int
	late  bool
	// snapshot is the snapshot, or nil.
	snapshot *snapshot
	// unsure is the time since which the manager has been uncertain, and taken is whether it will then detect a rollback.
	// noticed is the time when it last detected one.
	unsure, noticed time.Time
	taken           bool
	// doubted is the time when it last became doubtful whether a due post is absent.
	doubted time.Time
}

// snapshot is an earlier cluster state.
type snapshot struct {
	post *v1alpha1.Post
	// opened is the field of lives.
	opened bool
}

func (r *rewind) key() []any {
	kept := []any{r.ticks, r.late, r.snapshot != nil, r.unsure, r.noticed, r.taken, r.doubted}
	if r.snapshot != nil {
		kept = append(kept, r.snapshot.post, r.snapshot.opened)
	}
	return kept
}

// livesLater is a scheduled post's due time.
var livesLater = t0.Add(20 * time.Minute)

// now returns the time of the reconciliation, which is before or after livesLater. No deadline has passed by then.
func (r *rewind) now() time.Time {
	if r.late {
		return t0.Add(40 * time.Minute)
	}
	return t0.Add(10 * time.Minute)
}

// stamp returns the time of the next event. Each event has a different time, after the end of earlier calls.
func (r *rewind) stamp() time.Time {
	r.ticks++
	at := t0.Add(time.Duration(r.ticks) * time.Second)
	if r.late {
		at = at.Add(30 * time.Minute)
	}
	return at
}

func (l *lives) maySnapshot() bool { return l.rewinds > 0 && l.snapshot == nil }

func (l *lives) saveSnapshot() {
	l.snapshot = &snapshot{opened: l.opened}
	if l.post != nil {
		l.snapshot.post = l.post.DeepCopy()
	}
}

// isKept reports whether enough is known about the object's calls outside the cluster: if an object has a record or is
// missing from the snapshot, its record is rewritten within a minute after each call. A rollback before that write
// sends the post again; see docs/adr/0021.
func (l *lives) isKept() bool {
	if l.post == nil || !posting.Of(l.post).Started() {
		return true
	}
	if l.bucket == nil || !l.bucket.Covers(l.post.UID) {
		return l.snapshot.post != nil && l.snapshot.post.UID == l.post.UID
	}
	kept, err := record.New(l.post, "team", accountOf).Merge(l.bucket).Encode()
	must(err)
	there, err := l.bucket.Encode()
	must(err)
	return bytes.Equal(kept, there)
}

// doubt starts a manager, which is uncertain until it has counted. taken is whether it will then detect a rollback,
// rightly or wrongly.
func (l *lives) doubt(taken bool) {
	l.unsure, l.taken = l.stamp(), l.taken || taken
	l.doubted = l.unsure
}

// rewindSteps adds what happens to the cluster as a whole.
func (l *lives) rewindSteps(b livesBroken, add func(string, func(*lives))) {
	if l.later && !l.late {
		add("the time of scheduled posts comes", func(n *lives) { n.late = true })
	}
	if l.maySnapshot() {
		add("a snapshot is taken", (*lives).saveSnapshot)
	}
	if l.rewinds > 0 && l.snapshot != nil && l.isKept() {
		add("the snapshot is put back", func(n *lives) {
			n.rewinds--
			if n.post = n.snapshot.post; n.post != nil {
				n.post = n.post.DeepCopy()
			}
			n.opened = n.snapshot.opened
			n.doubt(!b.unnoticed)
		})
	}
	if l.begins > 0 {
		add("Herald is reinstalled, which looks like a snapshot", func(n *lives) { n.begins--; n.doubt(true) })
		if l.away {
			add("a manager begins that cannot tell", func(n *lives) { n.begins--; n.doubt(false) })
		}
	}
	if !l.unsure.IsZero() && !l.away {
		add("the manager has counted", func(n *lives) {
			if n.taken {
				n.noticed = n.stamp()
				n.doubted = n.noticed
			}
			n.unsure, n.taken = time.Time{}, false
		})
	}
}

// rewound returns the Rollback that a reconciliation sees.
func (l *lives) rewound(b livesBroken) delivery.Rollback {
	known := delivery.Rollback{DetectedAt: l.noticed, UncertainSince: l.unsure, Problem: "the store is unavailable"}
	switch {
	case b.undoubted:
		known.UncertainSince = time.Time{}
	case b.earlyNotice && !l.noticed.IsZero():
		known.DetectedAt = t0.Add(time.Second)
	case b.lateNotice && !l.noticed.IsZero():
		known.DetectedAt = livesLater
	}
	return known
}

// addLookups looks up the open calls in a snapshot. The platform may respond, and then published posts are found.
func (l *lives) addLookups(targets []int, add func(string, func(*lives))) {
	add("its last call cannot be found out", func(n *lives) {
		for _, i := range targets {
			must(attempt.Abandon(posting.Of(n.post).Target(i), n.now()))
		}
		delivery.Describe(n.post, n.now())
	})
	add("its last call is looked up", func(n *lives) {
		timing, _ := n.facts(livesBroken{}).Timing(v1alpha1.PlatformX)
		for _, i := range targets {
			t := posting.Of(n.post).Target(i)
			for asked := n.now(); attempt.IsOpen(t.Attempt); asked = asked.Add(time.Minute) {
				answer := delivery.LookupAnswer{Target: i, AskedAt: asked, LookupResult: platforms.LookupResult{Proof: true}}
				if n.out[i] > 0 {
					answer.LookupResult = platforms.LookupResult{Matches: 1, ExternalID: "post-1"}
				}
				must(delivery.RecordLookup(n.post, &answer, timing, &delivery.Deadlines{}, asked))
			}
			t.NextTryAt = nil // the pause is over by the next reconciliation
		}
		delivery.Describe(n.post, n.now())
	})
}

// rewinds holds the bounds for schedules with rollbacks.
var rewinds = map[string]bounds{
	"a scheduled post":                         {lives: 1, targets: 1, later: true, rewinds: 1},
	"a scheduled post that is cancelled":       {lives: 1, targets: 1, later: true, rewinds: 1, cancels: true},
	"a recreated post":                         {lives: 2, targets: 1, rewinds: 1},
	"a post to two accounts":                   {lives: 1, targets: 2, rewinds: 1},
	"a post of a crowd":                        {lives: 1, targets: 1, later: true, rewinds: 1, crowd: true},
	"a post of a crowd that is put back twice": {lives: 1, targets: 1, rewinds: 2, crowd: true},
	"a post that is put back twice":            {lives: 1, targets: 1, rewinds: 2},
	"a scheduled post, without a rollback":     {lives: 1, targets: 1, later: true, begins: 1},
	"a recreated post, without a rollback":     {lives: 2, targets: 1, begins: 1},
}

// allRewinds takes minutes.
var allRewinds = bounds{lives: 2, targets: 1, later: true, rewinds: 1, begins: 1}

func TestRewinds(t *testing.T) {
	all := maps.Clone(rewinds)
	if *long {
		all["all of it"] = allRewinds
	}
	for name, within := range all {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			states, broken := exploreLives(within, livesBroken{})
			assertUnbroken(t, states, broken)
			t.Logf("%d states, in %s", states, time.Since(began).Round(10*time.Millisecond))
		})
	}
}

func TestRewindsMutations(t *testing.T) {
	for name, tt := range map[string]struct {
		why    string
		within string
		broken livesBroken
	}{
		"the rollback is not detected":                      {"a post that was published since is scheduled again", "a recreated post", livesBroken{unnoticed: true}},
		"the second rollback is not detected":               {"a post that was published since is scheduled again", "a post that is put back twice", livesBroken{unnoticed: true}},
		"a group's rollback is not detected":                {"its call was made, and the group reads as unopened", "a post of a crowd", livesBroken{unnoticed: true}},
		"posts do not wait while the rollback is uncertain": {"the store is unavailable, and was not compared", "a scheduled post", livesBroken{undoubted: true}},
		"the bucket is not read":                            {"its record contains the outcome", "a scheduled post", livesBroken{noLook: true}},
		"the rollback is dated before the post's creation":  {"the post counts as created afterwards", "a scheduled post", livesBroken{earlyNotice: true}},
		"the rollback is dated too late":                    {"posts that were not due by then need answers", "a scheduled post", livesBroken{lateNotice: true}},
		"a false rollback is dated too late":                {"posts that were not due by then need answers", "a scheduled post, without a rollback", livesBroken{lateNotice: true}},
		"an uncertain post leaves no record":                {"a user who deletes an uncertain post causes a second publication", "a recreated post", livesBroken{forgetsAsked: true}},
		"a record replaces the one before":                  {"the record of the snapshot's state has fewer publications", "a recreated post", livesBroken{replaces: true}},
	} {
		t.Run(name, func(t *testing.T) {
			states, broken := exploreLives(rewinds[tt.within], tt.broken)
			if broken == "" {
				t.Errorf("no invariant detects it in %d states (%s)", states, tt.why)
			}
			t.Log(broken)
		})
	}
}
