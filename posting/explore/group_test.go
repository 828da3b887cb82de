// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// Early: no call is made before its post is due.
const Early Rule = "early"

// Group: the call of an armed attempt is made only after its group was opened.
const Group Rule = "group"

// Cancel: a post can be cancelled as long as it is certain that no call was made for it.
const Cancel Rule = "cancel"

// group is the object that the groups of a crowd are stored in, one after the other. Each write makes a new version. A
// group is the version that armed it; opening and closing it are writes on the condition that the object still has this
// version.
type group struct {
	version int8
	armed   bool
	gone    bool
	// closed holds the versions that were closed before they were opened, as listed in the object. opened holds those that
	// were opened, which only the model knows.
	closed, opened uint16
}

func groupName(version int8) string { return "group/" + strconv.Itoa(int(version)) }

func groupVersion(name string) int8 {
	return int8(number(strings.TrimPrefix(name, "group/")))
}

// arm stores a new group. That closes another process's group if it is still armed.
func (g *group) arm(b *broken) {
	if g.gone {
		*g = group{version: g.version, opened: g.opened}
	}
	if !b.believeAbove {
		g.closed = g.closedBefore()
	}
	if g.armed {
		g.closed |= 1 << g.version
	}
	g.version++
	g.armed = true
}

// closedBefore returns the closed versions below the object's own. An object that was put back may list others, which
// are versions of another cluster.
func (g *group) closedBefore() uint16 { return g.closed & (1<<g.version - 1) }

func (g *group) open(version int8, blindly bool) bool {
	if g.gone || g.version != version && !blindly {
		return false
	}
	g.version++
	g.armed = false
	g.opened |= 1 << version
	return true
}

// close closes a group and reports whether that proves that it was not opened.
func (g *group) close(version int8, b *broken) bool {
	switch {
	case g.gone:
		return b.missingUnsent
	case g.closedBefore()&(1<<version) != 0, b.believeAbove && g.closed&(1<<version) != 0:
		return true
	case g.version == version, b.closeBlind, b.anyVersion && g.armed:
		g.version++
		g.armed = false
		g.closed = g.closed&(1<<version-1) | 1<<version
		return true
	}
	return b.conflictUnsent
}

// cancellable reports whether the API server accepts a cancellation of the post. The rule is in post_types.go in
// api/v1alpha1.
func (w *world) cancellable(frozen bool) bool {
	post := w.etcd.post
	if post.Status.Finished {
		return false
	}
	mayBeSent := func(t v1alpha1.TargetStatus) bool {
		return t.Attempt != nil && (t.Attempt.Group == "" || t.Attempt.Outcome != v1alpha1.OutcomeNotSent)
	}
	accepts := posting.Of(post).Unsent() && (!frozen || !w.x.broken.freezeUnsent) || w.x.broken.cancelArmed && w.now < dueAt
	if !accepts && len(w.sent) == 0 && !slices.ContainsFunc(post.Status.Targets, mayBeSent) {
		w.failf(Cancel, "the post cannot be cancelled, although nothing was sent")
	}
	return accepts
}

// groupSteps adds what users and their tools do to the object of a group.
func (w *world) groupSteps(add adder) {
	if w.group.version == 0 || w.group.gone {
		return
	}
	add(nobody, "a user deletes the group", removed, false, func(n *world) { n.group.gone = true })
	add(nobody, "a tool applies an old copy of the group", putBack, false, func(n *world) {
		n.group.version++
		n.group.armed, n.group.closed = true, ^uint16(0)<<n.group.version
	})
}

// groupState implements delivery.Facts.Group.
func (m *manager) groupState(name string) delivery.GroupState {
	switch bit := uint16(1) << groupVersion(name); {
	case m.groupsRead&bit == 0:
		return delivery.GroupUnread
	case m.groupsClosed&bit != 0:
		return delivery.GroupClosed
	}
	return delivery.GroupMayBeOpen
}

// armSteps adds the writes of a manager to the object of a group.
func (w *world) armSteps(i int, add adder) {
	type write struct {
		name string
		do   func(*world)
		// lost is what the process does if its write gets no response.
		lost func(*world)
	}
	var next write
	switch w.manager[i].pc {
	case grouping:
		next = write{"arms a group", func(n *world) { n.armGroup(i) }, func(n *world) { n.again(i) }}
	case armed:
		if !w.opens(i) {
			return
		}
		next = write{"opens its group", func(n *world) { n.openGroup(i) }, func(n *world) {
			if !w.x.broken.openUnconfirmed {
				n.sendNone(i)
			}
		}}
	case takingBack:
		next = write{"closes a group", func(n *world) { n.closeGroup(i) }, func(n *world) {
			n.manager[i].groupsRead, n.manager[i].groupsClosed = w.manager[i].groupsRead, w.manager[i].groupsClosed
			n.again(i)
		}}
	case down, idle, describing, resolving, tidying, asking, entering, claiming, sending, holding, absent:
	}
	add(i, next.name, "", false, next.do)
	add(i, next.name+" (landed)", writeLost, false, func(n *world) { next.do(n); next.lost(n) })
	add(i, next.name+" (did not land)", writeLost, false, func(n *world) { n.manager[i].pc = sending; next.lost(n) })
}

// opening is the result of opening a group before a post's claim is stored.
type opening int8

const (
	unopened opening = iota
	wasOpened
	notOpened
)

// openEarlySteps adds the opening of a group, for its other posts, while the claim of this one is being stored.
func (w *world) openEarlySteps(i int, add adder) {
	m := &w.manager[i]
	if m.pc != claiming || m.group == 0 || m.opened != unopened || !w.opens(i) {
		return
	}
	add(i, "opens its group before the claim is stored", "", false, func(n *world) {
		n.manager[i].opened = notOpened
		if n.group.open(m.group, false) {
			n.manager[i].opened = wasOpened
		}
	})
}

// armed continues after the claim of an armed post.
func (w *world) armed(i int) {
	m := &w.manager[i]
	switch m.opened {
	case unopened:
		m.pc = armed
	case wasOpened:
	case notOpened:
		w.sendNone(i)
	}
}

func (w *world) armGroup(i int) {
	w.group.arm(&w.x.broken)
	m := &w.manager[i]
	m.pc, m.group = claiming, w.group.version
	m.groupsRead |= 1 << m.group
}

// opens reports whether it is time for a manager to open its group.
func (w *world) opens(i int) bool {
	due := t0.Add(dueAt * time.Millisecond)
	return w.x.broken.openEarly || !w.local(i).Before(due)
}

// openGroup opens a group when it is due. A post whose team is suspended by then is left out; the group is opened for
// the others.
func (w *world) openGroup(i int) {
	m := &w.manager[i]
	opened := w.x.broken.skipOpen || w.group.open(m.group, w.x.broken.openBlind)
	withheld := w.seesBrake() && !w.x.broken.openUnderBrake
	m.pc = sending
	switch {
	case !opened, withheld:
		w.sendNone(i)
	case w.brake != nil && w.brake.on():
		w.failf(Brake, "group %d is opened for the post while the team is suspended", m.group)
	}
}

// sendNone records that the calls of an armed post are not made.
func (w *world) sendNone(i int) {
	for k := range w.manager[i].ships {
		w.answer(i, k, withheld, 0)
	}
}

func (w *world) closeGroup(i int) {
	m := &w.manager[i]
	m.groupsRead |= 1 << m.group
	if w.group.close(m.group, &w.x.broken) {
		m.groupsClosed |= 1 << m.group
	}
	w.again(i)
}

// unsentShips returns the results of attempts whose group was closed.
func unsentShips(results []delivery.Result) (ships []ship) {
	for _, r := range results {
		ships = append(ships, ship{target: r.Target, attempt: r.Attempt, phase: answered, answer: withheld})
	}
	return ships
}

// checkGroup is called when the bytes of a call leave a process.
func (w *world) checkGroup(who int, s *ship) {
	tolerance := w.tolerance()
	if len(w.x.jumps) > 0 {
		tolerance = margin
	}
	if w.now < dueAt-tolerance {
		w.failf(Early, "attempt %s is sent %d ms before the post is due", s.attempt, dueAt-w.now)
	}
	name := w.manager[who].claimed.post.Status.Targets[s.target].Attempt.Group
	if name != "" && w.group.opened&(1<<groupVersion(name)) == 0 {
		w.failf(Group, "attempt %s is sent, and its group was not opened", s.attempt)
	}
}

// crowded returns a scenario with a crowd of posts.
func crowded(name string, change func(*scenario)) scenario {
	return text(name, func(s *scenario) {
		s.crowd, s.faults = true, 1
		change(s)
	})
}

func crowds() []scenario {
	return []scenario{
		crowded("a text of a crowd", func(s *scenario) { s.kinds = []fault{crash, stall, writeLost, answerLost} }),
		crowded("a text of a crowd, where the leader dies twice", func(s *scenario) {
			s.alone, s.faults, s.kinds = true, 2, []fault{crash, writeLost, stale}
		}),
		crowded("a text of a crowd, whose group is removed or put back", func(s *scenario) {
			s.kinds = []fault{crash, stall, removed, putBack}
		}),
		crowded("a text of a crowd, with clocks that lie", func(s *scenario) { s.clocks, s.kinds = lying, []fault{crash, stall} }),
		crowded("a text of a crowd, with a clock that jumps", func(s *scenario) {
			s.jumps, s.kinds = []int64{-margin / 2, 0, margin / 2}, []fault{clockJump, crash}
		}),
		crowded("a text of a crowd that is cancelled and edited", func(s *scenario) {
			s.alone, s.cancels, s.edits, s.kinds = true, true, true, []fault{crash, writeLost}
		}),
		crowded("a text of a crowd, where a process stalls again and again and dies", func(s *scenario) {
			s.alone, s.faults, s.kinds = true, 4, []fault{crash, stall}
		}),
		crowded("a text of a crowd, where the listing proves nothing", func(s *scenario) {
			s.listing, s.asked, s.kinds = unreliable, true, []fault{crash, answerLost, writeLost}
		}),
		crowded("a text of a crowd for two accounts", func(s *scenario) { s.alone, s.targets, s.kinds = true, 2, []fault{crash, stall, writeLost, busy} }),
		crowded("a text of a crowd that is published and refused", func(s *scenario) { s.kinds = []fault{lies, crash, busy} }),
		crowded("a text of a crowd that is cancelled, of a team that is suspended", func(s *scenario) {
			s.alone, s.cancels, s.pulls, s.settings.StartingDeadline = true, true, 1, 18*time.Second
			s.kinds = []fault{crash, stall, writeLost}
		}),
		crowded("a text of a crowd, of a team that is suspended", func(s *scenario) {
			s.alone, s.settings.StartingDeadline, s.pulls = true, 18*time.Second, 1
			s.kinds = []fault{crash, stall, writeLost}
		}),
	}
}

// armMutations break rules of arming and opening.
var armMutations = []mutation{
	{
		"calls made before their group is open", "the next leader closes the group, and sends",
		func(s *scenario) { faults(1, stall)(s); s.broken.skipOpen = true },
		[]Rule{Group},
	},
	{
		"a group opened without its version", "another leader has closed it, and sends",
		func(s *scenario) { faults(1, stall)(s); s.broken.openBlind = true },
		[]Rule{I2, I3},
	},
	{
		"calls after an opening without a response", "the process does not know the group's state",
		func(s *scenario) { faults(1, writeLost)(s); s.broken.openUnconfirmed = true },
		[]Rule{Group},
	},
	{
		"a group closed without its version", "K:a group closed without a check of its version",
		func(s *scenario) { faults(2, stall, crash)(s); s.broken.closeBlind = true },
		[]Rule{I3},
	},
	{
		"a changed group counts as not opened", "the change may have opened the group",
		func(s *scenario) { faults(2, stall, crash)(s); s.broken.conflictUnsent = true },
		[]Rule{I3},
	},
	{
		"a deleted group counts as unopened", "K:a deleted group counts as not opened",
		func(s *scenario) { faults(2, crash, removed)(s); s.broken.missingUnsent = true },
		[]Rule{I3, I4},
	},
	{
		"a restored group counts as the claim's", "the restored group was opened",
		func(s *scenario) { faults(2, crash, putBack)(s); s.broken.anyVersion = true },
		[]Rule{I3, I4},
	},
	{
		"a group opened before its time", "the post is published too early",
		func(s *scenario) { faults(0)(s); s.broken.openEarly = true },
		[]Rule{Early},
	},
	{
		"a cancel that is accepted while the post is armed", "the group may still be opened",
		func(s *scenario) { faults(0)(s); s.cancels, s.broken.cancelArmed = true, true },
		[]Rule{I1},
	},
	{
		"a group opened without a check of the suspension", "the team may have been suspended after the post was armed",
		func(s *scenario) { faults(0)(s); s.pulls, s.broken.openUnderBrake = 1, true },
		[]Rule{Brake},
	},
	{
		"an armed call made without a check of the suspension", "the team may have been suspended after the group was opened",
		func(s *scenario) { faults(0)(s); s.pulls, s.broken.callUnderBrake = 1, true },
		[]Rule{Brake},
	},
	{
		"a group counts as closed because its object lists a higher version", "the object was restored from another cluster",
		func(s *scenario) { faults(2, stall, putBack)(s); s.broken.believeAbove = true },
		[]Rule{I3, Group},
	},
	{
		"a post that is armed and recovered, but cannot be cancelled", "the post is sent although its owner tried to cancel it in time",
		func(s *scenario) { faults(1, crash)(s); s.alone, s.cancels, s.broken.freezeUnsent = true, true, true },
		[]Rule{Cancel},
	},
}
