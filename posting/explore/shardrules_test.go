// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// Flight: two replicas never call the platform for one account at the same time. This does not cover a claim that a
// replica stores after its shard was taken from it by force, before it notices.
const Flight Rule = "flight"

// Order: without faults, an account's posts are sent in due order.
const Order Rule = "order"

type decisionKind int8

const (
	waits decisionKind = iota
	claims
	looksUp
	describes
)

// shardDecision is what a reconciliation does with a post. next is the changed copy, and until is the time of the next
// reconciliation by the replica's clock, or never.
type shardDecision struct {
	kind  decisionKind
	next  *version
	until int64
}

// shardMoment is everything that Decide depends on.
type shardMoment struct {
	v         *version
	local     int64
	suspended bool
	restored  int64
}

func (x *shardExplorer) changed(v *version, change func(*v1alpha1.Post)) *version {
	p := v.post.DeepCopy()
	change(p)
	return x.explorer.intern(p)
}

// over is the longest time that a call of an unknown claim can take, in milliseconds.
func (x *shardExplorer) over() int64 {
	return (x.base.settings.SendWindow + x.base.capabilities.CallTimeout + x.base.settings.ClockMargin).Milliseconds()
}

// decide calls the real Decide.
func (x *shardExplorer) decide(at shardMoment) shardDecision {
	if d, ok := x.decisions[at]; ok {
		return d
	}
	facts := func() *delivery.Facts {
		f := x.base.facts(at.v.post, atMillis(at.local))
		f.Suspended = at.suspended
		if at.restored != never {
			f.Rollback.DetectedAt, f.Earlier.State = atMillis(at.restored), delivery.EarlierNotFetched
		}
		return f
	}
	f := facts()
	actions := delivery.Decide(f)
	if len(actions) > 0 && actions[0] == (delivery.FindEarlier{}) {
		f = facts()
		f.Earlier.State = delivery.EarlierFetched
		actions = delivery.Decide(f)
	}
	d := shardDecision{until: never}
	for _, action := range actions {
		switch a := action.(type) {
		case delivery.Claim:
			d.kind = claims
		case delivery.Lookup:
			d.kind = looksUp
		case delivery.Write:
			describe(f.Post)
			if x.explorer.intern(f.Post) != at.v {
				d.kind = describes
			}
		case delivery.Wait:
			if !a.Until.IsZero() {
				d.until = a.Until.Sub(t0).Milliseconds()
			}
		default:
			panic(fmt.Sprintf("a text has no such action: %T", a))
		}
		if d.kind != waits {
			d.next = x.explorer.intern(f.Post)
			break
		}
	}
	x.decisions[at] = d
	return d
}

// decideShard returns the next step of a replica for a post that it has read in this state, or a wait.
func (s *shards) decideShard(i, p int, as *accountPosts, team assignment) shardDecision {
	r := &s.replica[i]
	post := as[p]
	if post.version == nil || post.shard == unlabelled || r.held[post.shard] == 0 || r.jobs[p].phase != noJob {
		return shardDecision{until: never}
	}
	d := s.x.decide(shardMoment{post.version, s.now + s.x.clocks[i], team.moving, s.restoredAt})
	if d.kind == claims && (!s.isPrepared(i, p) || !s.mayClaim(i, p, as, team)) {
		return shardDecision{until: never}
	}
	return d
}

// mayClaim reports whether a replica may claim a post: its team belongs to the shard, and no other post of the account
// has a call or goes first.
func (s *shards) mayClaim(i, p int, as *accountPosts, team assignment) bool {
	r := &s.replica[i]
	own := term{as[p].shard, r.held[as[p].shard]}
	if team.shard != own.shard && !s.x.broken.anyTeam {
		return false
	}
	if s.restoredAt != never && s.now < s.restoredAt+s.x.over()+margin && !s.x.broken.noPause {
		return false
	}
	q := 1 - p
	if j := &r.jobs[q]; j.term == own && (j.phase == writing || j.phase == ready || j.phase == calling) {
		return false // the account's gate is closed
	}
	other := as[q]
	if other.version == nil || other.shard == unlabelled || r.held[other.shard] == 0 {
		return true // it is not in the cache
	}
	if s.closesAccount(i, other, own) {
		return false
	}
	first := s.x.decide(shardMoment{other.version, s.now + s.x.clocks[i], team.moving, s.restoredAt})
	return q > p || first.kind != claims || r.jobs[q].phase == ended || !s.isPrepared(i, q)
}

func (s *shards) isPrepared(i, p int) bool { return p > 0 || !s.x.prepares || s.replica[i].prepared }

// closesAccount reports whether another replica may be calling the platform for a post.
func (s *shards) closesAccount(i int, post labelledPost, own term) bool {
	a := openCall(post)
	if a == nil || s.x.broken.ignoresOpen {
		return false
	}
	named := s.named[number(a.ID[1:])-1]
	if named == (term{}) && s.x.broken.unnamedIsOwn {
		return false
	}
	claim := *a
	claim.Shard = named.name()
	return s.local(i).Before(attempt.ClosedUntil(&claim, own.name(), s.x.base.timing))
}

// name returns a term as a claim names it. Posts do not store it, because only its equality with others matters; see
// shards.key.
func (t term) name() string {
	if t == (term{}) {
		return ""
	}
	return fmt.Sprintf("%d/%d", t.shard, t.version)
}

// openCall returns a post's open attempt if it closes the account for any other term, or nil.
func openCall(post labelledPost) *v1alpha1.Attempt {
	if post.version == nil || post.entry() == nil {
		return nil
	}
	if a := post.entry().Attempt; !attempt.ClosedUntil(a, "no term", attempt.Timing{}).IsZero() {
		return a
	}
	return nil
}

// replicaTimes calls consider with the times of a replica's next events.
func (s *shards) replicaTimes(i int, consider func(int64)) {
	truly := func(at time.Time) int64 { return at.Sub(t0).Milliseconds() - s.x.clocks[i] }
	for p := range s.posts {
		if j := &s.replica[i].jobs[p]; j.phase == calling {
			consider(j.by)
		}
		if d := s.decideShard(i, p, &s.posts, s.team); d.until != never {
			consider(d.until - s.x.clocks[i])
		}
		if a := openCall(s.posts[p]); a != nil {
			consider(truly(a.SendBefore.Time) - 1)
			consider(truly(a.SendBefore.Time))
			consider(truly(a.SendBefore.Add(s.x.base.timing.CallTimeout + s.x.base.timing.ClockMargin)))
		}
	}
}

// publish makes a post visible on the platform.
func (s *shards) publish(p int) {
	s.out[p]++
	if s.out[p] > 1 {
		s.failf(I3, "%s is published %d times", postName(p), s.out[p])
	}
}

func (s *shards) failf(rule Rule, format string, args ...any) {
	if s.violation == nil {
		s.violation = &violation{rule, fmt.Sprintf(format, args...)}
	}
}

// checkShardSent is called when the bytes of a replica's call leave it.
func (s *shards) checkShardSent(i, p int) {
	sent := &s.replica[i].jobs[p]
	for k := range s.replica {
		for q := range s.replica[k].jobs {
			if j := &s.replica[k].jobs[q]; j != sent && j.phase == calling && j.by > s.now && !j.exempt && !sent.exempt {
				s.failf(Flight, "replica %d sends %s while replica %d sends %s", i, postName(p), k, postName(q))
			}
		}
	}
	for _, c := range s.orphans {
		if c.by > s.now && !c.exempt && !sent.exempt {
			s.failf(Flight, "replica %d sends %s during the call of a killed replica for %s", i, postName(p), postName(int(c.post)))
		}
	}
	s.firstSent = s.firstSent || p == 0
	if !s.firstSent && s.left == s.x.faults && s.restoredAt == never && !s.x.prepares {
		s.failf(Order, "the second post is sent before the first")
	}
}

// checkShardLookup is called when a replica looks up a post's call, which must be over.
func (s *shards) checkShardLookup(i, p int) {
	for k := range s.replica {
		if j := &s.replica[k].jobs[p]; j.phase == calling && j.by > s.now {
			s.failf(I5, "replica %d looks up %s while replica %d sends it", i, postName(p), k)
		}
	}
}

// checkShardEnd is called for a final state. Only posts that existed before a snapshot was restored may be undecided.
func (s *shards) checkShardEnd() {
	for p := range s.posts {
		post := s.posts[p]
		if post.version == nil {
			continue
		}
		t := post.entry()
		switch {
		case t == nil || !attempt.Settled(t):
			s.failf(Lost, "%s stays %s", postName(p), post.post.Status.Phase)
		case attempt.Posted(t) && s.out[p] == 0:
			s.failf(Lost, "%s is posted, but not out there", postName(p))
		case !attempt.Posted(t) && (!attempt.Undecided(t) || s.restoredAt == never):
			s.failf(Lost, "%s has failed, although nothing was in its way: %s", postName(p), t.Message)
		}
	}
}
