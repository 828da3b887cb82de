// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package quota

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// request is one that is to create the post of the model, of so much per target,
// and how far it has come.
type request struct {
	reservation Reservation
	granted     *Answer
	over        bool
}

// Requests that come at once under one key, each with a body of its own, take,
// create and undo in any order; the post that comes into being may be delivered
// and deleted in between. Whatever they do, the limit holds, the post that is
// there has what it needs, and what was sent stays counted.
func TestRequestsUnderOneKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := Limit{Most: 4}
		if rapid.Bool().Draw(t, "within a day") {
			limit.Within = 24 * time.Hour
		}
		m := &model{page: Entries{"other": {Since: noon, Items: some(rapid.IntRange(0, 2).Draw(t, "others"))}}, limit: limit}
		for i := range rapid.IntRange(2, 3).Draw(t, "requests") {
			w := Reservation{Post: "p", By: fmt.Sprint("request ", i)}
			for target := range rapid.IntRange(1, 2).Draw(t, "targets") {
				w.Items = append(w.Items, Item{
					Target: target, Count: rapid.IntRange(1, 3).Draw(t, "count"),
					At: noon.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "at")*10) * time.Hour),
				})
			}
			m.requests = append(m.requests, &request{reservation: w})
		}
		t.Repeat(map[string]func(*rapid.T){
			"request": func(t *rapid.T) { m.step(t, rapid.SampledFrom(m.requests).Draw(t, "which")) },
			"deliver": func(*rapid.T) { m.deliver() },
			"another": func(*rapid.T) { m.another() },
			"delete":  func(*rapid.T) { m.remove() },
			"":        m.check,
		})
	})
}

// model is a page, and the post that is there under the key.
type model struct {
	page     Entries
	limit    Limit
	requests []*request
	post     *Reservation
	// sent is what was delivered under this name.
	sent int
	uids int
}

// step does the next step of a request: it takes, and then creates the post or, if
// that exists or Kubernetes refuses it, undoes.
func (m *model) step(t *rapid.T, r *request) {
	switch {
	case r.over:
	case r.granted == nil:
		r.reservation.Gone = ""
		answer, _ := m.page.take(&r.reservation, m.limit, noon)
		if answer.Delivered != "" && (m.post == nil || m.post.UID != answer.Delivered) {
			r.reservation.Gone = answer.Delivered
			answer, _ = m.page.take(&r.reservation, m.limit, noon)
		}
		r.granted = &answer
		r.over = len(answer.Refused) > 0
	default:
		r.over = true
		if m.post == nil && r.granted.Delivered == "" && rapid.Bool().Draw(t, "accepted") {
			m.post = &Reservation{Post: "p", Items: r.reservation.Items}
			return
		}
		if len(r.granted.Added) > 0 {
			m.page.undo(&r.reservation, *r.granted, m.limit)
		}
	}
}

// deliver is what the manager does before it sends.
func (m *model) deliver() {
	if m.post == nil || m.post.UID != "" {
		return
	}
	m.uids++
	m.post.UID, m.post.AllowPartial = types.UID(fmt.Sprint(m.uids)), true
	items := m.post.Items
	m.post.Keep = func(target int) int {
		if target < len(items) {
			return items[target].Count
		}
		return 0
	}
	m.page.take(m.post, m.limit, noon)
	for _, item := range items {
		m.sent += item.Count
	}
}

// another post takes one of what is free.
func (m *model) another() {
	m.uids++
	m.page.take(&Reservation{Post: fmt.Sprint("another ", m.uids), Items: some(1)}, m.limit, noon)
}

// remove deletes the post. No request is so slow that the post of another could
// be delivered and deleted between its two steps.
func (m *model) remove() {
	if !m.underWay() {
		m.post = nil
	}
}

// underWay tells whether a request has taken, and neither created nor undone.
func (m *model) underWay() bool {
	return slices.ContainsFunc(m.requests, func(r *request) bool { return r.granted != nil && !r.over })
}

func (m *model) check(t *rapid.T) {
	all := m.page.others("", &Entry{})
	for _, item := range all {
		if used := busiest(all, item.At, m.limit.Within); used > m.limit.Most {
			t.Fatalf("%d of %d are taken: %+v", used, m.limit.Most, all)
		}
	}
	own := 0
	if e := m.page["p"]; e != nil {
		own = Entries{"p": e}.Used()
	}
	if own < m.sent {
		t.Fatalf("%d were sent under the name, and only %d are counted", m.sent, own)
	}
	if m.post == nil {
		return
	}
	trial := Entries{}
	for name, e := range m.page {
		trial[name] = e.clone()
	}
	ask := Reservation{Post: "p", UID: m.post.UID, Items: m.post.Items, AllowPartial: true}
	if ask.UID == "" {
		ask.UID = "new"
	}
	if answer, _ := trial.take(&ask, m.limit, noon); len(answer.Refused) > 0 {
		t.Fatalf("the post that was accepted does not get what it needs: %+v of %+v", answer, m.page["p"])
	}
}
