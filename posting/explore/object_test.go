// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"encoding/json"
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// version is a state of the Post, in etcd or in a copy. Equal states share a pointer. A version does not include its
// resourceVersion: the holder of a copy counts the versions by which it is behind.
type version struct {
	n    int64
	post *v1alpha1.Post
}

func (v *version) number() int64 {
	if v == nil {
		return -1
	}
	return v.n
}

// intern returns the version with this content.
//
// The transition times of conditions affect no decision and would only multiply states, so they are constant.
func (x *explorer) intern(p *v1alpha1.Post) *version {
	for i := range p.Status.Conditions {
		p.Status.Conditions[i].LastTransitionTime.Time = t0
	}
	data, err := json.Marshal([]any{p.Generation, p.Annotations, &p.Spec, &p.Status})
	if err != nil {
		panic(err)
	}
	if v, ok := x.versions[string(data)]; ok {
		return v
	}
	v := &version{n: int64(len(x.versions)), post: p}
	x.versions[string(data)] = v
	return v
}

// changed returns the version after a change.
func (w *world) changed(v *version, change func(*v1alpha1.Post)) *version {
	p := v.post.DeepCopy()
	change(p)
	return w.x.intern(p)
}

// describe derives a post's displayed fields from its facts.
func describe(p *v1alpha1.Post) { delivery.Describe(p, t0) }

func started(p *v1alpha1.Post) bool { return posting.Of(p).Started() }

// written is the result of a write.
type written int

const (
	stored written = iota
	conflict
	invalid
)

// put is a manager's status write. behind is the number of versions by which its copy is behind; if it is not zero,
// there is a conflict, unless blindly is set. about lists the targets whose facts changed.
func (w *world) put(who int, next *version, behind int8, blindly bool, about []int) written {
	if behind != 0 && !blindly {
		return conflict
	}
	if behind != 0 {
		cur := w.etcd.post
		next = w.changed(next, func(p *v1alpha1.Post) {
			p.Spec, p.Generation, p.Annotations = cur.Spec, cur.Generation, cur.Annotations
		})
	}
	if why := refusedBySchema(w.etcd.post, next.post); why != "" && !w.x.noSchema {
		w.failf(Schema, "a status that the schema refuses: %s", why)
		return invalid
	}
	w.checkWrite(who, w.etcd.post, next.post, about)
	w.store(next)
	m := &w.manager[who]
	m.wrote, m.seen = 0, 0
	return stored
}

func (w *world) store(next *version) {
	w.past = append([]*version{w.etcd}, w.past...)
	w.past = w.past[:min(len(w.past), depth)]
	w.etcd = next
	for i := range w.manager {
		m := &w.manager[i]
		if m.pc == down || m.pc == absent {
			continue
		}
		m.behind, m.wrote, m.seen = min(m.behind+1, forgotten), min(m.wrote+1, forgotten), min(m.seen+1, forgotten)
		m.dirty = true
	}
}

// putSpec is a change by a client that is not a manager.
func (w *world) putSpec(change func(*v1alpha1.Post)) {
	w.store(w.changed(w.etcd, change))
}

// refusedBySchema returns the CRD transition rule that a status violates. The rules are in attempt_types.go and
// poststatus_types.go in api/v1alpha1.
func refusedBySchema(before, after *v1alpha1.Post) string {
	for i := range before.Status.Targets {
		o := &before.Status.Targets[i]
		n := posting.Of(after).Target(int(o.Index))
		if n == nil {
			return "the record of a target is never removed"
		}
		if why := targetRefused(o, n); why != "" {
			return fmt.Sprintf("target %d: %s", o.Index, why)
		}
	}
	return ""
}

func targetRefused(o, n *v1alpha1.TargetStatus) string {
	switch {
	case o.ExternalID != "" && n.ExternalID != o.ExternalID:
		return "externalID never changes once set"
	case attempt.Posted(o) && !attempt.Posted(n):
		return "a posted target stays posted"
	case o.Attempt != nil && n.Attempt == nil:
		return "the record of an attempt is never removed"
	case len(n.Cards) < len(o.Cards):
		return "the record of a card is never removed"
	case attempt.IsOpen(n.Attempt) && len(n.Cards) != int(n.Attempt.Card):
		return "an open attempt is for the first card that is not recorded"
	}
	for i := range n.Cards {
		if int(n.Cards[i].Index) >= len(n.Cards) {
			return "the cards of a tree must be recorded in order, without gaps"
		}
		if i < len(o.Cards) && o.Cards[i].ExternalID != n.Cards[i].ExternalID {
			return "externalID never changes once set"
		}
	}
	if o.Attempt == nil {
		return ""
	}
	return attemptRefused(o.Attempt, n.Attempt)
}

func attemptRefused(o, n *v1alpha1.Attempt) string {
	switch {
	case n.Number < o.Number:
		return "the attempt number never decreases"
	case n.ID != o.ID && n.Number == o.Number:
		return "an attempt keeps its id"
	case n.ID != o.ID && n.Card == o.Card && (o.Outcome == "" || o.Outcome == v1alpha1.OutcomePosted),
		n.ID != o.ID && n.Card != o.Card && n.Card != o.Card+1:
		return "a new attempt needs the previous one closed, and not posted, or else is for the next card"
	case n.ID != o.ID:
		return ""
	case n.Card != o.Card:
		return "an attempt keeps its card"
	case o.Outcome != "" && n.Outcome != o.Outcome && (o.Outcome != v1alpha1.OutcomeUnknown || n.Outcome == "" && (n.OperationID == "" || o.OperationID != "")):
		return "a closed attempt keeps its outcome, except that an unknown one can become known, or be looked up by the operation id that the platform gave it"
	case n.Group != "" && n.Group != o.Group:
		return "an attempt is never moved to a group"
	case n.Checkpoint != o.Checkpoint:
		return "an attempt keeps its checkpoint"
	case o.OperationID != "" && n.OperationID != o.OperationID:
		return "an attempt keeps its handle"
	}
	return ""
}
