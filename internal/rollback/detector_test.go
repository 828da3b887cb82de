// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rollback_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/rollback"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

var (
	noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	env  *envtest.Environment
)

func TestMain(m *testing.M) { os.Exit(envtest.Main(m, &env)) }

const cluster = "0f6e-uid"

// bench is a cluster and a bucket with changing managers.
type bench struct {
	t     *testing.T
	clock paced
	files *bucket
	lease types.NamespacedName
}

// paced is a clock that reports the pauses that a manager makes after each count.
type paced struct {
	*clocktesting.FakeClock

	pauses chan time.Duration
}

func (p paced) NewTimer(d time.Duration) clock.Timer {
	timer := p.FakeClock.NewTimer(d)
	if p.pauses != nil {
		p.pauses <- d
	}
	return timer
}

// bucket is a real bucket that can be made unavailable.
type bucket struct {
	*store.Store

	away, refuses bool
}

var errAway = errors.New("the store is unavailable")

func (b *bucket) ReadDocument(ctx context.Context, key, known string, most int64) ([]byte, string, error) {
	if b.away {
		return nil, "", errAway
	}
	return b.Store.ReadDocument(ctx, key, known, most)
}

func (b *bucket) PutDocument(ctx context.Context, key, mimeType string, data []byte, etag string) (string, error) {
	if b.away || b.refuses {
		return "", errAway
	}
	return b.Store.PutDocument(ctx, key, mimeType, data, etag)
}

func newBench(t *testing.T, name string) *bench {
	files, err := store.New(storetest.Start(t))
	must.Succeed(t, err)
	return &bench{
		t: t, clock: paced{FakeClock: clocktesting.NewFakeClock(noon)}, files: &bucket{Store: files},
		lease: types.NamespacedName{Namespace: "default", Name: name},
	}
}

// manager returns a new manager.
func (b *bench) manager(registry prometheus.Registerer) *rollback.Detector {
	return rollback.New(rollback.Options{
		Documents: b.files, Cluster: func(context.Context) (string, error) { return cluster, nil }, Client: env.Client, Reader: env.Client,
		Lease: b.lease, Clock: b.clock, Registerer: registry,
	})
}

// works makes a manager count, and returns its status.
func (b *bench) works(c *rollback.Detector) rollback.Status {
	b.t.Helper()
	b.clock.Step(time.Minute)
	if err := c.Increment(b.t.Context()); err != nil {
		b.t.Fatal(err)
	}
	state, err := c.Status(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return state
}

// begins starts and stops a manager like a process, and returns its status.
func (b *bench) begins() rollback.Status {
	b.t.Helper()
	ctx, cancel := context.WithCancel(b.t.Context())
	done, c := make(chan error), b.manager(nil)
	go func() { done <- c.Start(ctx) }()
	state, err := c.Status(ctx)
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		b.t.Fatal(err)
	}
	return state
}

// runs starts a manager, calls happens after its first count or failure, lets it run for 20 more minutes, and stops it.
// It returns the status of that time.
func (b *bench) runs(happens func()) rollback.Status {
	b.t.Helper()
	b.clock.pauses = make(chan time.Duration)
	defer func() { b.clock.pauses = nil }()
	ctx, cancel := context.WithCancel(b.t.Context())
	done, c := make(chan error), b.manager(nil)
	go func() { done <- c.Start(ctx) }()
	pause := <-b.clock.pauses
	happens()
	for end := b.clock.Now().Add(20 * time.Minute); b.clock.Now().Before(end); pause = <-b.clock.pauses {
		b.clock.Step(pause)
	}
	state, err := c.Status(ctx)
	cancel()
	if err := errors.Join(err, <-done); err != nil {
		b.t.Fatal(err)
	}
	return state
}

// snapshot returns the count in a snapshot of the cluster; putBack restores it.
func (b *bench) snapshot() (annotation string) {
	b.t.Helper()
	var lease coordinationv1.Lease
	if err := env.Client.Get(b.t.Context(), b.lease, &lease); err != nil {
		b.t.Fatal(err)
	}
	return lease.Annotations[rollback.Annotation]
}

func (b *bench) putBack(annotation string) {
	b.t.Helper()
	var lease coordinationv1.Lease
	if err := env.Client.Get(b.t.Context(), b.lease, &lease); err != nil {
		b.t.Fatal(err)
	}
	lease.Annotations[rollback.Annotation] = annotation
	if err := env.Client.Update(b.t.Context(), &lease); err != nil {
		b.t.Fatal(err)
	}
}

// TestRestored follows a cluster through a restore drill, with several managers in sequence.
func TestRestored(t *testing.T) {
	b := newBench(t, "put-back")
	if state := b.works(b.manager(nil)); state.LastRollback != nil || !state.UnknownSince.IsZero() {
		t.Fatalf("%+v of a new installation", state)
	}
	first := b.manager(nil)
	b.works(first)
	snapshot := b.snapshot()
	if state := b.works(first); state.LastRollback != nil {
		t.Fatalf("%+v for a running detector", state)
	}
	b.putBack(snapshot)
	registry := prometheus.NewRegistry()
	second := b.manager(registry)
	state := b.works(second)
	if state.LastRollback == nil || !state.LastRollback.DetectedAt.Equal(b.clock.Now()) || !state.LastRollback.From.Equal(b.clock.Now().Add(-2*time.Minute)) {
		t.Fatalf("%+v of a cluster that was put back", state.LastRollback)
	}
	want := fmt.Sprintf("# HELP herald_cluster_rewound_timestamp_seconds Time of the last detected rollback of the cluster to an earlier state, such as a snapshot of etcd, "+
		"in seconds since 1970; 0 if there was none. Reported by the leader.\n# TYPE herald_cluster_rewound_timestamp_seconds gauge\n"+
		"herald_cluster_rewound_timestamp_seconds %d\n", state.LastRollback.DetectedAt.Unix())
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
	noticed := state.LastRollback.DetectedAt
	if state := b.works(second); !state.LastRollback.DetectedAt.Equal(noticed) {
		t.Errorf("%+v: it was noticed before", state.LastRollback)
	}
	if state := b.works(b.manager(nil)); state.LastRollback == nil || !state.LastRollback.DetectedAt.Equal(noticed) {
		t.Errorf("%+v: the next manager does not know the rollback", state.LastRollback)
	}
	b.putBack(snapshot)
	if state := b.works(second); !state.LastRollback.DetectedAt.Equal(b.clock.Now()) {
		t.Errorf("%+v: a manager that ran on has not noticed", state.LastRollback)
	}
}

// TestStop checks that the restore of a snapshot is detected even if the next manager stopped within a minute of the
// snapshot.
func TestStop(t *testing.T) {
	b := newBench(t, "ends")
	b.works(b.manager(nil))
	snapshot := b.snapshot()
	b.begins()
	b.putBack(snapshot)
	if state := b.begins(); state.LastRollback == nil {
		t.Error("a short run with a graceful end did not count")
	}
}

// TestRevisionJump checks the evidence from the resourceVersion in the bucket.
func TestRevisionJump(t *testing.T) {
	b := newBench(t, "leap")
	b.works(b.manager(nil))
	key := rollback.Key(cluster, b.lease)
	data, etag, err := b.files.ReadDocument(t.Context(), key, "", 1<<10)
	must.Succeed(t, err)
	var count rollback.Count
	if err := json.Unmarshal(data, &count); err != nil || count.ResourceVersion == "" {
		t.Fatalf("%s, %v", data, err)
	}
	count.ResourceVersion = "999999999"
	if data, err = json.Marshal(count); err != nil {
		t.Fatal(err)
	}
	if _, err := b.files.PutDocument(t.Context(), key, "application/json", data, etag); err != nil {
		t.Fatal(err)
	}
	state := b.works(b.manager(nil))
	if state.LastRollback == nil || !strings.Contains(state.LastRollback.Evidence, "went back from 999999999") {
		t.Fatalf("%+v", state.LastRollback)
	}
	if next := b.works(b.manager(nil)); next.LastRollback == nil || !next.LastRollback.DetectedAt.Equal(state.LastRollback.DetectedAt) {
		t.Errorf("%+v: the jump is detected once", next.LastRollback)
	}
}

// TestUnavailable checks the status of a manager that starts while the store is unavailable.
func TestUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		why string
		// since is the age of the cluster's last count, or zero for never.
		since  time.Duration
		unsure bool
	}{
		"a restart":                 {"a restart must not wait for the store", time.Minute, false},
		"a long pause":              {"the cluster may be a restored snapshot", 6 * time.Minute, true},
		"a cluster without a count": {"the cluster may be a snapshot from before the first count", 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "away-"+strings.ReplaceAll(name, " ", "-"))
			if tt.since > 0 {
				b.works(b.manager(nil))
				b.clock.Step(tt.since)
			}
			b.files.away = true
			state := b.begins()
			if state.UnknownSince.IsZero() == tt.unsure || tt.unsure && (!state.UnknownSince.Equal(b.clock.Now()) || !strings.Contains(state.Problem, "store")) {
				t.Errorf("%+v (%s)", state, tt.why)
			}
			b.files.away = false
			if state := b.begins(); !state.UnknownSince.IsZero() || state.LastRollback != nil {
				t.Errorf("%+v, after the store is back", state)
			}
		})
	}
}

// TestLongUnavailable checks the status of a manager whose predecessor worked for 20 minutes while the store was
// unavailable.
func TestLongUnavailable(t *testing.T) {
	for name, tt := range map[string]struct {
		why string
		// paused is the preceding time without a leader. awayAt is true if the store was already unavailable when the manager
		// started, rather than only after its first count.
		paused time.Duration
		awayAt bool
		unsure bool
	}{
		"a process that had read the bucket": {"the detector has read the bucket, and the cluster was not rolled back since", time.Minute, false, false},
		"a process with a recent count":      {"the cluster's count is recent", time.Minute, true, false},
		"a process without proof":            {"an unknown result does not become certain later", 6 * time.Minute, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "long-"+strings.ReplaceAll(name, " ", "-"))
			b.works(b.manager(nil))
			b.clock.Step(tt.paused)
			b.files.away = tt.awayAt
			if state := b.runs(func() { b.files.away = true }); state.UnknownSince.IsZero() == tt.unsure || state.LastRollback != nil {
				t.Errorf("%+v of a manager that ran on (%s)", state, tt.why)
			}
			if state := b.begins(); state.UnknownSince.IsZero() == tt.unsure || state.LastRollback != nil {
				t.Errorf("%+v of the next manager (%s)", state, tt.why)
			}
			b.files.away = false
			if state := b.begins(); !state.UnknownSince.IsZero() || state.LastRollback != nil {
				t.Errorf("%+v, after the store is back", state)
			}
		})
	}
}

// TestUnavailableAndRestored checks that work while the store is unavailable does not hide the restore of an earlier
// snapshot.
func TestUnavailableAndRestored(t *testing.T) {
	gone := func(b *bench, _ string) {
		if err := env.Client.Delete(b.t.Context(), &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: b.lease.Namespace, Name: b.lease.Name}}); err != nil {
			b.t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		why string
		// before and during are the events before a manager starts, and while it works.
		before, during func(b *bench, snapshot string)
		// soon is true if the rollback is detected while the store is unavailable.
		soon bool
	}{
		"by a machine":          {"the cluster's count is young, but must not catch up with the bucket's", (*bench).putBack, nil, false},
		"under a manager":       {"the manager remembers its count", nil, (*bench).putBack, true},
		"the lease was deleted": {"the manager remembers its count", nil, gone, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, "hides-"+strings.ReplaceAll(name, " ", "-"))
			first := b.manager(nil)
			b.works(first)
			snapshot := b.snapshot()
			b.works(first)
			if tt.before != nil {
				tt.before(b, snapshot)
				b.files.away = true
			}
			state := b.runs(func() {
				b.files.away = true
				if tt.during != nil {
					tt.during(b, snapshot)
				}
			})
			if !state.UnknownSince.IsZero() || (state.LastRollback != nil) != tt.soon {
				t.Errorf("%+v while the store is unavailable (%s)", state, tt.why)
			}
			if next := b.begins(); !next.UnknownSince.IsZero() || (next.LastRollback != nil) != tt.soon {
				t.Errorf("%+v of the next manager, while the store is unavailable (%s)", next, tt.why)
			}
			b.files.away = false
			next := b.begins()
			if !next.UnknownSince.IsZero() || next.LastRollback == nil {
				t.Fatalf("%+v, after the store is back (%s)", next, tt.why)
			}
			if tt.soon && state.LastRollback != nil && !next.LastRollback.DetectedAt.Equal(state.LastRollback.DetectedAt) {
				t.Errorf("%+v, after the store is back: it was noticed before, %+v", next.LastRollback, state.LastRollback)
			}
		})
	}
}

// TestRetriesSoon checks the retry interval of a failed count: a single failure must not leave the posts of the next
// minute without a count.
func TestRetriesSoon(t *testing.T) {
	b := newBench(t, "soon")
	b.clock.pauses = make(chan time.Duration)
	ctx, cancel := context.WithCancel(t.Context())
	done, c := make(chan error), b.manager(nil)
	go func() { done <- c.Start(ctx) }()
	for _, step := range []struct {
		why  string
		away bool
		want time.Duration
	}{
		{"a successful count", false, time.Minute},
		{"a repeated rollback", true, time.Minute},
		{"the store is unavailable", true, 5 * time.Second},
		{"the bucket is still unavailable, and the request rate decreases", true, 10 * time.Second},
		{"the bucket is still unavailable after 10 s", true, 20 * time.Second},
		{"the bucket is still unavailable after 20 s", true, 40 * time.Second},
		{"the usual interval", false, time.Minute},
		{"the bucket is available again", true, time.Minute},
		{"the bucket is unavailable", false, 5 * time.Second},
	} {
		pause := <-b.clock.pauses
		if pause != step.want {
			t.Errorf("the next count is after %s, want %s (%s)", pause, step.want, step.why)
		}
		b.files.away = step.away
		b.clock.Step(pause)
	}
	<-b.clock.pauses
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestUnwritten checks that the next manager knows about a rollback that could not be written to the bucket, even while
// the store is unavailable.
func TestUnwritten(t *testing.T) {
	b := newBench(t, "unwritten")
	b.works(b.manager(nil))
	snapshot := b.snapshot()
	b.works(b.manager(nil))
	b.putBack(snapshot)
	b.files.refuses = true
	if state := b.begins(); state.LastRollback == nil {
		t.Fatal("the rollback was not detected")
	}
	b.files.away = true
	if state := b.begins(); state.LastRollback == nil {
		t.Error("the rollback is no longer known")
	}
}
