// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
)

// explorer visits the states of a scenario in breadth-first order, so that the trace to a violation is as short as
// possible.
type explorer struct {
	scenario

	versions map[string]*version
	brakes   map[string]*brake
	// idles caches the wake-up times after reconciliations without effect.
	idles map[moment]int64
	seen  map[[16]byte]int32
	// cameBy holds, for each state, the step that first led to it and the previous state.
	cameBy []origin
	// goesOn holds pairs of consecutive states with no fault in between.
	goesOn [][2]int32
	ends   int
}

type origin struct {
	from int32
	nth  uint16
}

// report is the result of an exploration.
type report struct {
	states, steps, ends int
	violation           *violation
	trace               []string
}

func (r report) String() string {
	return fmt.Sprintf("%d states, %d steps between them, %d ends", r.states, r.steps, r.ends)
}

// node is a queued state.
type node struct {
	n int32
	w *world
}

// explore visits every reachable state, and stops at a violation.
func explore(s scenario) report {
	x := &explorer{scenario: s, versions: map[string]*version{}, brakes: map[string]*brake{}, idles: map[moment]int64{}, seen: map[[16]byte]int32{}}
	var queue []node
	for nth, w := range x.beginnings() {
		if n, fresh := x.visit(w, origin{-1, uint16(nth)}); fresh {
			queue = append(queue, node{n, w})
		}
	}
	steps := 0
	for len(queue) > 0 {
		at := queue[0]
		queue[0].w = nil
		queue = queue[1:]
		goesOn := false
		for nth, step := range at.w.steps() {
			steps++
			n, fresh := x.visit(step.next, origin{at.n, uint16(nth)})
			if step.next.violation != nil {
				return x.report(steps, step.next.violation, n)
			}
			if step.fault == "" {
				x.goesOn = append(x.goesOn, [2]int32{at.n, n})
				goesOn = goesOn || !step.choice
			}
			if fresh {
				queue = append(queue, node{n, step.next})
			}
		}
		if goesOn {
			continue
		}
		x.ends++
		at.w.checkEnd()
		if at.w.violation != nil {
			return x.report(steps, at.w.violation, at.n)
		}
	}
	if n, round := x.circle(); round {
		return x.report(steps, &violation{Lost, "the option repeats the same states"}, n)
	}
	return x.report(steps, nil, -1)
}

// visit records a state, and reports whether it is new.
func (x *explorer) visit(w *world, by origin) (int32, bool) {
	sum := sha256.Sum256(w.key())
	key := [16]byte(sum[:16])
	if n, ok := x.seen[key]; ok && w.violation == nil {
		return n, false
	}
	n := int32(len(x.cameBy))
	x.seen[key] = n
	x.cameBy = append(x.cameBy, by)
	return n, true
}

func (x *explorer) report(steps int, v *violation, at int32) report {
	r := report{states: len(x.seen), steps: steps, ends: x.ends, violation: v}
	if v != nil {
		r.trace = x.trace(at)
	}
	return r
}

// circle finds a schedule that continues forever without further faults, which is a cycle of states.
func (x *explorer) circle() (int32, bool) {
	before := make([]int32, len(x.cameBy))
	first := make([]int32, len(x.cameBy)+1)
	for _, e := range x.goesOn {
		before[e[1]]++
		first[e[0]+1]++
	}
	for i := range x.cameBy {
		first[i+1] += first[i]
	}
	next := make([]int32, len(x.goesOn))
	fill := slices.Clone(first)
	for _, e := range x.goesOn {
		next[fill[e[0]]] = e[1]
		fill[e[0]]++
	}
	var free []int32
	for n, b := range before {
		if b == 0 {
			free = append(free, int32(n))
		}
	}
	for len(free) > 0 {
		n := free[len(free)-1]
		free = free[:len(free)-1]
		for _, m := range next[first[n]:first[n+1]] {
			before[m]--
			if before[m] == 0 {
				free = append(free, m)
			}
		}
	}
	for n, b := range before {
		if b > 0 {
			return int32(n), true
		}
	}
	return 0, false
}

// trace returns the steps to a state, one per line.
func (x *explorer) trace(n int32) []string {
	var way []origin
	for n >= 0 {
		way = append(way, x.cameBy[n])
		n = x.cameBy[n].from
	}
	slices.Reverse(way)
	w := x.beginnings()[way[0].nth]
	lines := []string{fmt.Sprintf("          clocks are ahead by %d ms and %d ms", w.manager[0].offset, w.manager[1].offset)}
	for _, o := range way[1:] {
		s := w.steps()[o.nth]
		who := ""
		if s.who != nobody {
			who = fmt.Sprintf("manager %d ", s.who)
		}
		if s.fault != "" && !strings.Contains(s.what, string(s.fault)) {
			s.what += " [" + string(s.fault) + "]"
		}
		line := fmt.Sprintf("%8.3fs %s%s", float64(w.now)/1000, who, s.what)
		if s.next.etcd != w.etcd {
			line += " => " + ledger(s.next.etcd.post)
		}
		lines = append(lines, line)
		w = s.next
	}
	return lines
}

// ledger formats a post's status.
func ledger(p *v1alpha1.Post) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s", p.Status.Phase)
	if p.Spec.Cancelled {
		b.WriteString(", cancelled")
	}
	for i := range p.Status.Targets {
		t := &p.Status.Targets[i]
		fmt.Fprintf(&b, "; %d: %s %s", t.Index, t.State, t.Reason)
		if t.ExternalID != "" {
			b.WriteString(" as " + t.ExternalID)
		}
		if len(t.Cards) > 0 {
			fmt.Fprintf(&b, ", %d cards", len(t.Cards))
		}
		if a := t.Attempt; a != nil {
			outcome := string(a.Outcome)
			if outcome == "" {
				outcome = "open"
			}
			fmt.Fprintf(&b, ", attempt %d %s for card %d %s, %d looks", a.Number, a.ID, a.Card, outcome, a.Lookups)
		}
	}
	return b.String()
}

// beginnings returns the initial states of the scenario: a scheduled post shortly before its time, and two managers
// that have just started.
func (x *explorer) beginnings() []*world {
	p := &v1alpha1.Post{}
	p.Generation = 1
	p.CreationTimestamp.Time = t0.Add(-time.Hour)
	p.Spec = v1alpha1.PostSpec{Category: v1alpha1.CategoryText, ScheduledAt: v1alpha1.NewTimePtr(t0.Add(time.Second)), OnUnknownOutcome: x.policy}
	for i := range x.targets {
		p.Spec.Targets = append(p.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprintf("account-%d", i)}, Caption: "text"})
	}
	if x.shares {
		p.Spec.Category, p.Spec.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: "file"}}}
	}
	if x.cards > 0 {
		p.Spec.Category = v1alpha1.CategoryTree
		p.Spec.Tree = &v1alpha1.TreeContent{}
		p.Spec.Targets[0].Caption = ""
		for c := range x.cards {
			p.Spec.Tree.Cards = append(p.Spec.Tree.Cards, v1alpha1.TreeCard{Caption: fmt.Sprintf("card %d", c)})
		}
	}
	f := x.facts(p, t0)
	delivery.Decide(f) // accepts the post
	p = f.Post
	describe(p)
	var worlds []*world
	for _, offsets := range x.clocks {
		w := &world{x: x, etcd: x.intern(p), left: x.faults, mayCancel: x.cancels, mayEdit: x.edits, asks: x.asked, pulls: x.pulls, elections: x.elections}
		if x.pulls > 0 {
			w.brake = x.moved(false, nil)
		}
		for i := range w.manager {
			w.manager[i] = manager{offset: offsets[i], standby: x.shares && i > 0}
			w.manager[i].start()
		}
		if x.alone {
			w.manager[1] = manager{pc: absent}
		}
		worlds = append(worlds, w)
	}
	return worlds
}
