// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
)

// request is a request to create the model's post, and its progress.
type request struct {
	name  string
	uses  []Use
	taken bool
	over  bool
}

// TestRequestsUnderOneKey runs concurrent requests with one key and different bodies. They reserve, create and release
// in any order. In between, the created post may be delivered and deleted, a request may crash, and the sweep may run
// at any time. Whatever the order, the limit is enforced, the post has the entries it needs, delivered uses still
// count, and after a sweep nothing is counted twice.
func TestRequestsUnderOneKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &model{usage: monthly(), limit: 4, now: noon}
		if rapid.Bool().Draw(t, "within a day") {
			m.usage = daily()
		}
		m.usage.Status.Entries = reserved("other", rapid.IntRange(0, 2).Draw(t, "others"))
		for i := range rapid.IntRange(2, 3).Draw(t, "requests") {
			r := &request{name: fmt.Sprint("request ", i)}
			for target := range rapid.IntRange(1, 2).Draw(t, "targets") {
				r.uses = append(r.uses, Use{
					Target: target, Count: rapid.IntRange(1, 3).Draw(t, "count"),
					At: noon.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "at")*10) * time.Hour),
				})
			}
			m.requests = append(m.requests, r)
		}
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) { m.step(t, rapid.SampledFrom(m.requests).Draw(t, "which")) },
			"crash":   func(t *rapid.T) { rapid.SampledFrom(m.requests).Draw(t, "which").over = true },
			"deliver": func(*rapid.T) { m.deliver() },
			"another": func(*rapid.T) { m.another() },
			"cancel":  func(*rapid.T) { m.cancel() },
			"delete":  func(*rapid.T) { m.remove() },
			"sweep":   func(*rapid.T) { m.sweep(m.now) },
			"":        m.check,
		})
		m.now = m.now.Add(reservationTTL)
		m.sweep(m.now)
		m.checkSwept(t)
	})
}

// model is a Usage, and the post with the key.
type model struct {
	usage    *v1alpha1.Usage
	limit    int
	now      time.Time
	requests []*request
	post     *PostUses
	// sent is the number of delivered uses under this name.
	sent int
	uids int
}

// step advances a request: it reserves, and then creates the post or, if the post exists or Kubernetes rejects it,
// releases.
func (m *model) step(t *rapid.T, r *request) {
	switch {
	case r.over:
	case !r.taken:
		r.taken = true
		r.over = len(Reserve(m.usage, Reservation{Post: "p", Request: r.name, Uses: r.uses}, m.limit, m.now)) > 0
	default:
		r.over = true
		if m.post == nil && rapid.Bool().Draw(t, "accepted") {
			m.uids++
			m.post = &PostUses{Name: "p", UID: types.UID(fmt.Sprint(m.uids)), Uses: r.uses}
			return
		}
		Release(m.usage, "p", r.name)
		if m.post != nil {
			Settle(m.usage, *m.post)
		}
	}
}

// deliver does what the manager does before a call.
func (m *model) deliver() {
	if m.post == nil || m.post.Begun || m.post.Uses[0].Final {
		return
	}
	Confirm(m.usage, *m.post, m.limit, m.now)
	m.post.Begun = true
	for _, use := range m.post.Uses {
		m.sent += use.Count
	}
}

// cancel cancels a post whose delivery has not started.
func (m *model) cancel() {
	if m.post == nil || m.post.Begun {
		return
	}
	withdrawn := *m.post
	withdrawn.Uses = nil
	for _, use := range m.post.Uses {
		withdrawn.Uses = append(withdrawn.Uses, Use{Target: use.Target, At: use.At, Final: true})
	}
	m.post = &withdrawn
	Settle(m.usage, withdrawn)
}

// another reserves a free unit for another post.
func (m *model) another() {
	m.uids++
	Reserve(m.usage, Reservation{Post: fmt.Sprint("another ", m.uids), Uses: uses(1)}, m.limit, m.now)
}

// remove deletes the post. Requests are so fast that the post of another request is not delivered and deleted between
// their two steps.
func (m *model) remove() {
	underWay := func(r *request) bool { return r.taken && !r.over }
	if !slices.ContainsFunc(m.requests, underWay) {
		m.post = nil
	}
}

func (m *model) sweep(now time.Time) {
	if m.post == nil {
		Orphan(m.usage, "p", now)
	} else {
		Settle(m.usage, *m.post)
	}
}

// own returns the count of the post's entries.
func (m *model) own() int {
	entries := slices.DeleteFunc(slices.Clone(m.usage.Status.Entries), func(e v1alpha1.UsageEntry) bool { return e.Post != "p" })
	return sum(entries, func(time.Time) bool { return true })
}

func (m *model) check(t *rapid.T) {
	for i := range m.usage.Status.Entries {
		if used := fullest(&m.usage.Spec, m.usage.Status.Entries, m.usage.Status.Entries[i].At.Time); used > m.limit {
			t.Fatalf("%d of %d are used: %+v", used, m.limit, m.usage.Status.Entries)
		}
	}
	if own := m.own(); own < m.sent {
		t.Fatalf("%d were sent with the name, but only %d are counted", m.sent, own)
	}
	if m.post == nil {
		return
	}
	trial := m.usage.DeepCopy()
	if refused := Confirm(trial, *m.post, m.limit, m.now); len(refused) > 0 {
		t.Fatalf("the accepted post cannot reserve its usage: %+v of %+v", refused, m.usage.Status.Entries)
	}
}

// checkSwept checks that the count equals the delivered uses plus the pending post's uses.
func (m *model) checkSwept(t *rapid.T) {
	want := m.sent
	if m.post != nil && !m.post.Begun {
		for _, use := range m.post.Uses {
			want += use.Count
		}
	}
	if own := m.own(); own != want {
		t.Fatalf("%d are counted with the name, want %d: %+v", own, want, m.usage.Status.Entries)
	}
}
