// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"
	"pgregory.net/rapid"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

var (
	epoch    = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	acme     = lists.Team{Namespace: "team-acme", Name: "acme"}
	statuses = []v1alpha1.PostPhase{v1alpha1.PhasePosted, v1alpha1.PhaseFailed, v1alpha1.PhaseCancelled}
	onto     = []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook}
)

// small makes a writer fill many segments with few posts.
func small(w *lists.Writer) *lists.Writer {
	w.Shrink(5, 8, 16)
	return w
}

// model is the expected content of the lists, by name.
type model struct {
	store *storetest.Memory
	clock *clocktesting.FakePassiveClock
	// writer is replaced to simulate a restart.
	writer *lists.Writer
	reader *lists.Reader
	view   *lists.View
	want   map[string]lists.Entry
	uids   int
	// forgotten are the posts that were removed last time posts expired.
	forgotten []lists.Ref
}

func newModel() *model {
	m := &model{clock: clocktesting.NewFakePassiveClock(epoch), want: map[string]lists.Entry{}}
	m.store = storetest.NewMemory(m.clock.Now)
	m.reader = lists.NewReader(m.store, 1<<16)
	m.restart()
	return m
}

func (m *model) restart() { m.writer = small(lists.NewWriter(m.store, m.clock)) }

func (m *model) entry(t *rapid.T) lists.Entry {
	m.uids++
	at := epoch.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "second")) * time.Second)
	e := lists.Entry{
		Name: fmt.Sprint("p", rapid.IntRange(0, 150).Draw(t, "name")), UID: fmt.Sprintf("%08x-0000-4000-8000-000000000000", m.uids),
		Title: fmt.Sprint("title ", m.uids), DisplayAt: at, FinishedAt: at.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "until")) * time.Second),
		Kind: lists.Kind{Status: rapid.SampledFrom(statuses).Draw(t, "status"), Category: v1alpha1.CategoryText},
	}
	for range rapid.IntRange(1, 3).Draw(t, "targets") {
		e.Targets = append(e.Targets, lists.Target{Platform: rapid.SampledFrom(onto).Draw(t, "platform"), Status: e.Status})
	}
	return e
}

// entries returns several entries with distinct names.
func (m *model) entries(t *rapid.T) []lists.Entry {
	some := map[string]lists.Entry{}
	for range rapid.IntRange(1, 30).Draw(t, "entries") {
		e := m.entry(t)
		some[e.Name] = e
	}
	return slices.SortedFunc(maps.Values(some), func(a, b lists.Entry) int { return cmp.Compare(a.Name, b.Name) })
}

func (m *model) add(t *rapid.T) {
	entries := m.entries(t)
	must.Succeed(t, m.writer.Add(t.Context(), acme, entries))
	m.enter(entries)
}

func (m *model) enter(entries []lists.Entry) {
	for _, e := range entries {
		m.want[e.Name] = e
	}
}

// again adds existing entries, which has no effect.
func (m *model) again(t *rapid.T) {
	before, err := m.writer.Stats(t.Context(), acme)
	if err == nil {
		err = m.writer.Add(t.Context(), acme, slices.Collect(maps.Values(m.want)))
	}
	after, err2 := m.writer.Stats(t.Context(), acme)
	if err := errors.Join(err, err2); err != nil || before != after {
		t.Fatalf("adding the same posts again changed the lists: %+v, then %+v, %v", before, after, err)
	}
}

func (m *model) expire(t *rapid.T) {
	before := epoch.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "before")) * time.Second)
	limit := rapid.IntRange(1, 20).Draw(t, "limit")
	_, _ = m.expireBefore(t, before, limit)
}

func (m *model) expireBefore(t *rapid.T, before time.Time, limit int) (int, error) {
	m.forgotten = nil
	n, err := m.writer.Expire(t.Context(), acme, before, limit, func(_ context.Context, refs []lists.Ref) error {
		m.forgotten = refs
		return nil
	})
	due := 0
	for _, e := range m.want {
		if e.FinishedAt.Before(before) {
			due++
		}
	}
	if err == nil && n != min(limit, due) {
		t.Fatalf("%d posts expired; %d were due, and the limit was %d", n, due, limit)
	}
	for _, ref := range m.forgotten {
		if e := m.want[ref.Name]; e.UID != ref.UID || !e.FinishedAt.Before(before) {
			t.Fatalf("%+v expired, while %+v is listed", ref, e)
		}
		if err == nil {
			delete(m.want, ref.Name)
		}
	}
	return n, err
}

func (m *model) wait(t *rapid.T) {
	m.clock.SetTime(m.clock.Now().Add(time.Duration(rapid.IntRange(1, 1500).Draw(t, "minutes")) * time.Minute))
}

// cut breaks the connection to the store at some operation, which may or may not take effect. The process dies, and the
// next one repeats the change. A failed change takes effect completely or not at all.
func (m *model) cut(t *rapid.T) {
	entries := m.entries(t)
	expiry := rapid.Bool().Draw(t, "expiry")
	for try := range 3 {
		m.open(t)
		before := m.view.Revision()
		if try < 2 {
			m.store.Cut(rapid.IntRange(0, 25).Draw(t, "operations"), rapid.Bool().Draw(t, "applied"))
		}
		var err error
		if expiry {
			_, err = m.expireBefore(t, epoch.Add(40*time.Second), 10)
		} else {
			err = m.writer.Add(t.Context(), acme, entries)
		}
		m.store.Mend()
		m.restart()
		m.open(t)
		switch happened := m.view.Revision() != before; {
		case expiry && err != nil && happened:
			for _, ref := range m.forgotten {
				delete(m.want, ref.Name)
			}
		case !expiry && (err == nil || happened):
			m.enter(entries)
		}
		m.check(t)
		if err == nil {
			return
		}
	}
	t.Fatal("a change without a failure returned an error")
}

func (m *model) open(t *rapid.T) {
	view, err := m.reader.Open(t.Context(), acme, m.view)
	must.Succeed(t, err)
	m.view = view
}

// listed returns the names that a list should contain, in order.
func (m *model) listed(f lists.Filter) []string {
	var some []lists.Entry
	for _, e := range m.want {
		if e.Status != v1alpha1.PhaseCancelled && f.Passes(&e.Kind) {
			some = append(some, e)
		}
	}
	slices.SortFunc(some, func(a, b lists.Entry) int {
		return cmp.Or(b.DisplayAt.Compare(a.DisplayAt), cmp.Compare(a.Name, b.Name))
	})
	names := []string{}
	for _, e := range some {
		names = append(names, e.Name)
	}
	return names
}

// read reads a whole list, and checks the metadata of its segments.
func (m *model) read(t *rapid.T, f lists.Filter) []string {
	rows := slices.Clone(m.view.Head(f))
	for _, s := range m.view.Segments(f) {
		part, err := m.view.Rows(t.Context(), s.ID)
		must.Succeed(t, err)
		if len(part) != s.Count || part[0].SortKey != s.First || len(part) > 8 {
			t.Fatalf("segment %+v has %d rows from %+v on", s, len(part), part[0].SortKey)
		}
		rows = append(rows, part...)
	}
	slices.SortFunc(rows, func(a, b *lists.Row) int { return a.Compare(b.SortKey) })
	names := []string{}
	for _, r := range rows {
		names = append(names, r.Name)
	}
	return names
}

func (m *model) check(t *rapid.T) {
	m.open(t)
	for _, status := range []v1alpha1.PostPhase{"", v1alpha1.PhasePosted, v1alpha1.PhaseFailed} {
		for _, platform := range append([]v1alpha1.Platform{""}, onto...) {
			f := lists.Filter{Status: status, Platform: platform}
			if diff := gocmp.Diff(m.listed(f), m.read(t, f)); diff != "" {
				t.Fatalf("list %+v -want +got:\n%s", f, diff)
			}
		}
	}
	if m.view.Posts() != len(m.want) {
		t.Fatalf("%d posts are archived, want %d", m.view.Posts(), len(m.want))
	}
	head := map[string]bool{}
	for _, r := range m.view.Head(lists.Filter{}) {
		head[r.Name] = true
	}
	for i := range 151 {
		name := fmt.Sprint("p", i)
		sealed, err := m.view.Find(t.Context(), name)
		must.Succeed(t, err)
		e, listed := m.want[name]
		if listed && e.Status == v1alpha1.PhaseCancelled {
			continue // it may be in the head, which shows no cancelled ones
		}
		if (sealed != nil) != m.view.HasHash(lists.HashName(name)) || (sealed != nil) != (listed && !head[name]) {
			t.Fatalf("%s is found at %+v; it is listed: %v, in the head: %v", name, sealed, listed, head[name])
		}
		if sealed != nil && (sealed.DisplayAt != e.DisplayAt.UnixMilli() || sealed.Kind.Status != e.Status) {
			t.Fatalf("%s is found at %+v, want %+v", name, sealed, e)
		}
	}
}

// settled checks that the store contains only files in use, after the readers' grace period and a merge.
func (m *model) settled(t *rapid.T) {
	for range 2 {
		m.clock.SetTime(m.clock.Now().Add(25 * time.Hour))
		m.restart()
		some := []lists.Entry{}
		for i := range 6 { // more than the head holds
			e := m.entry(t)
			e.Name = fmt.Sprint("s", m.uids, "-", i)
			some = append(some, e)
		}
		must.Succeed(t, m.writer.Add(t.Context(), acme, some))
		m.enter(some)
	}
	m.check(t)
	if files, want := len(m.store.Files), m.view.Files(); files > want {
		t.Fatalf("%d files lie in the store, and %d are used or were a moment ago", files, want)
	}
}

// TestAgainstNaiveSort applies random changes to the lists, with processes that die at any store operation, and
// compares every list with a sorted slice.
func TestAgainstNaiveSort(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := newModel()
		t.Repeat(map[string]func(*rapid.T){
			"add": m.add, "add more": m.add, "and more": m.add, "again": m.again, "expire": m.expire, "wait": m.wait, "cut": m.cut, "cut again": m.cut,
			"restart": func(*rapid.T) { m.restart() }, "": m.check,
		})
		m.settled(t)
	})
}
