// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shards

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/posting/placement"
)

// installation is an API server with the Leases, and the replicas that divide the shards.
type installation struct {
	t      *testing.T
	api    client.WithWatch
	shards int
	// stated is the number of shards that the leader states, or negative if nobody leads.
	stated atomic.Int64
	// unlisted is true while the posts of shards cannot be listed.
	unlisted atomic.Bool
	// latency is that of every request.
	latency atomic.Int64
	// fails reports whether a delivery fails at once.
	fails func(process, shard string) bool

	mu       sync.Mutex
	versions int
	// delivering are the deliveries, by version.
	delivering map[string]*delivery
	// overlaps lists the shards that were delivered under two valid versions at the same time.
	overlaps []string
}

func newInstallation(t *testing.T, shards int) *installation {
	t.Helper()
	in := &installation{t: t, api: fake.NewClientBuilder().WithScheme(scheme.Scheme).Build(), shards: shards, delivering: map[string]*delivery{}}
	in.stated.Store(int64(shards))
	return in
}

// delivery is the delivery of a shard's posts by a process.
type delivery struct {
	*Held

	process string
}

// process is a running replica.
type process struct {
	*Replica

	name    string
	metrics *prometheus.Registry
	// cut makes its requests fail, lose makes the next write lose its response, and stall delays the next write.
	cut, lose atomic.Bool
	stall     atomic.Int64
	stop      context.CancelFunc
	ended     chan struct{}
}

// request lets the latency of a request pass.
func (in *installation) request(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(in.latency.Load())):
		return nil
	}
}

var errCut = errors.New("the API server cannot be reached")

// start starts a replica.
func (in *installation) start(name string) *process {
	p := &process{name: name, metrics: prometheus.NewRegistry(), ended: make(chan struct{})}
	write := func(ctx context.Context, do func() error) error {
		if err := in.request(ctx); err != nil {
			return err
		}
		time.Sleep(time.Duration(p.stall.Swap(0))) //nolint:forbidigo // in a bubble of synctest
		if p.cut.Load() {
			return errCut
		}
		err := do()
		if p.lose.Swap(false) {
			return errCut
		}
		return err
	}
	api := interceptor.NewClient(in.api, interceptor.Funcs{
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, o ...client.ListOption) error {
			if err := in.request(ctx); err != nil {
				return err
			}
			if p.cut.Load() {
				return errCut
			}
			return c.List(ctx, list, o...)
		},
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
			if err := in.request(ctx); err != nil {
				return err
			}
			return c.Get(ctx, key, obj, o...)
		},
		Create: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.CreateOption) error {
			return write(ctx, func() error { return c.Create(ctx, obj, o...) })
		},
		Update: func(ctx context.Context, c client.WithWatch, obj client.Object, o ...client.UpdateOption) error {
			return write(ctx, func() error { return c.Update(ctx, obj, o...) })
		},
	})
	p.Replica = New(Options{
		Client: api, Watches: in.api, Namespace: "herald", Release: "herald", Leader: "herald-manager", Identity: name, Shards: in.shards,
		Stated: func(*coordinationv1.Lease) (int, bool) { stated := in.stated.Load(); return int(stated), stated >= 0 },
		Times: configv1alpha1.LeaderElection{
			LeaseDuration: metav1.Duration{Duration: 15 * time.Second}, RenewDeadline: metav1.Duration{Duration: 10 * time.Second},
			RetryPeriod: metav1.Duration{Duration: 2 * time.Second},
		},
		Clock: clock.RealClock{}, NewVersion: in.newVersion, Owners: func(context.Context) []metav1.OwnerReference { return nil },
		Deliver: func(ctx context.Context, held *Held) { in.deliver(ctx, name, held) }, Log: logr.Discard(),
		Metrics: NewMetrics(p.metrics, in.shards),
	})
	ctx, stop := context.WithCancel(in.t.Context())
	p.stop = stop
	go func() {
		defer close(p.ended)
		_ = p.Start(ctx)
	}()
	return p
}

func (in *installation) newVersion() string {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.versions++
	return fmt.Sprintf("v%d", in.versions)
}

// failWhen makes the deliveries fail for which a function returns true.
func (in *installation) failWhen(fails func(process, shard string) bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.fails = fails
}

func (in *installation) deliver(ctx context.Context, process string, held *Held) {
	in.mu.Lock()
	if in.fails != nil && in.fails(process, held.Shard) {
		in.mu.Unlock()
		return
	}
	for _, other := range in.delivering {
		if other.Shard == held.Shard && other.Valid() {
			in.overlaps = append(in.overlaps, held.Shard)
		}
	}
	in.delivering[held.Version] = &delivery{held, process}
	in.mu.Unlock()
	if !in.unlisted.Load() {
		held.MarkListed()
	}
	<-ctx.Done()
	in.mu.Lock()
	defer in.mu.Unlock()
	delete(in.delivering, held.Version)
}

// holders returns the processes that may claim the posts of each shard, in the shards' order.
func (in *installation) holders(running ...*process) string {
	holders := map[string]string{}
	for _, p := range running {
		for _, h := range in.validShards(p.name) {
			holders[h.Shard] += p.name
		}
	}
	return in.join(holders)
}

// validShards returns the shards whose posts a process delivers and may claim.
func (in *installation) validShards(process string) (held []*Held) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, d := range in.delivering {
		if d.process == process && d.Valid() {
			held = append(held, d.Held)
		}
	}
	return held
}

// join returns the holders in the shards' order.
func (in *installation) join(holders map[string]string) string {
	var all []string
	for shard := range in.shards {
		name := holders[placement.Name(shard)]
		if name == "" {
			name = "-"
		}
		all = append(all, name)
	}
	return strings.Join(all, ",")
}

// after lets time pass, until all processes wait.
func after(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble of synctest
	synctest.Wait()
}

// want fails the test unless the shards have these holders.
func (in *installation) want(reason, want string, running ...*process) {
	in.t.Helper()
	if got := in.holders(running...); got != want {
		in.t.Errorf("%s: the holders are %s, want %s", reason, got, want)
	}
	if got := in.reported(running...); got != want {
		in.t.Errorf("%s: the metrics report the holders %s, want %s", reason, got, want)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.overlaps) > 0 {
		in.t.Errorf("%s: the shards %v were held twice at the same time", reason, in.overlaps)
	}
}

func (in *installation) end(running ...*process) {
	for _, p := range running {
		p.stop()
		<-p.ended
	}
}

func TestMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, 4)
		a := in.start("a")
		after(time.Millisecond)
		in.want("one replica takes all shards at once", "a,a,a,a", a)
		b := in.start("b")
		after(10 * time.Second)
		in.want("the second one gets its half", "a,a,b,b", a, b)
		c := in.start("c")
		after(10 * time.Second)
		in.want("the third one gets a shard of the first", "a,c,b,b", a, b, c)
		b.stop()
		after(time.Second)
		if got := in.holders(a, c); strings.Count(got, "a") != 2 || strings.Count(got, "c") != 2 {
			t.Errorf("the shards of a stopped replica go to the others at once, not %s", got)
		}
		in.end(a, c)
		d := in.start("d")
		after(time.Millisecond)
		in.want("nobody waits for replicas that have released their Leases", "d,d,d,d", d)
		in.end(d)
	})
}

func TestDeadMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, 4)
		a, b, c := in.start("a"), in.start("b"), in.start("c")
		after(time.Minute)
		in.want("three replicas share four shards", in.holders(a, b, c), a, b, c)
		b.cut.Store(true)
		after(7 * time.Second)
		if !strings.Contains(in.holders(b), "b") {
			t.Error("a replica that cannot renew its Lease for a few seconds has given up its shards")
		}
		after(3 * time.Second)
		in.want("it stops claiming before others may take over", "-,-,-,-", b)
		if in.holders(a, c) == "" || !strings.Contains(in.holders(a, c), "-") {
			t.Error("its shards were taken over before its Lease has expired")
		}
		after(10 * time.Second)
		if got := in.holders(a, c); strings.Contains(got, "-") {
			t.Errorf("its shards were not taken over: %s", got)
		}
		b.cut.Store(false)
		after(30 * time.Second)
		if got := in.holders(a, b, c); !strings.Contains(got, "b") || strings.Contains(got, "-") {
			t.Errorf("it has no share after it reaches the API server again: %s", got)
		}
		in.end(a, b, c)
	})
}

// TestStalledMember stalls a replica before it renews its member Lease, while another takes over its shard.
func TestStalledMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, 2)
		a, b := in.start("a"), in.start("b")
		after(time.Minute)
		held := in.validShards("a")
		if len(held) != 1 {
			t.Fatalf("each has one of two shards, but the first has %d", len(held))
		}
		a.stall.Store(int64(30 * time.Second))
		after(25 * time.Second)
		in.want("the other one has both", "b,b", a, b)
		after(20 * time.Second)
		if got := in.holders(a, b); len(in.validShards("a")) != 1 || strings.Contains(got, "-") {
			t.Errorf("it gets one again: the holders are %s", got)
		}
		if held[0].Valid() {
			t.Error("its late renewal made the old version valid again")
		}
		in.end(a, b)
	})
}

// TestLostResponse loses the response to a take-over and to a release.
func TestLostResponse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, 2)
		a := in.start("a")
		a.lose.Store(true) // of the member Lease
		after(5 * time.Second)
		in.want("it finds its member Lease", "a,a", a)
		before := slices.Collect(maps.Keys(in.delivering))
		b := in.start("b")
		after(time.Millisecond)
		a.lose.Store(true)
		after(20 * time.Second)
		in.want("the release is found to be done, or repeated", "a,b", a, b)
		b.lose.Store(true)
		in.end(a)
		after(20 * time.Second)
		in.want("a take-over without a response is repeated under a new version", "b,b", b)
		for _, version := range before {
			if in.delivering[version] != nil {
				t.Errorf("version %s is still delivered", version)
			}
		}
		in.end(b)
	})
}

// TestSameIdentity kills a replica and starts another one under its name.
func TestSameIdentity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, 2)
		a := in.start("a")
		after(time.Second)
		versions := slices.Sorted(maps.Keys(in.delivering))
		a.cut.Store(true) // it cannot release anything, as if it were killed
		in.end(a)
		again := in.start("a")
		after(time.Millisecond)
		in.want("it does not wait for its own name's Lease to expire", "a,a", again)
		for _, h := range in.validShards("a") {
			if slices.Contains(versions, h.Version) {
				t.Errorf("it holds shard %s under the version of its predecessor, whose call may be running", h.Shard)
			}
		}
		in.end(again)
	})
}

// TestUninformedMember starts a replica while nobody leads, and then lets another one stop.
func TestUninformedMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, 4)
		a := in.start("a")
		after(time.Millisecond)
		b := in.start("b")
		after(10 * time.Second)
		in.stated.Store(-1)
		c := in.start("c")
		after(10 * time.Second)
		in.want("a replica that does not know the leader's number takes no shards, so none is released for it", "a,a,b,b", a, b, c)
		b.stop()
		after(time.Second)
		in.want("the others do not leave free shards to it", "a,a,a,a", a, c)
		in.stated.Store(4)
		after(20 * time.Second)
		if got := in.holders(a, c); strings.Count(got, "a") != 2 || strings.Count(got, "c") != 2 {
			t.Errorf("it gets its share once it knows the number, not %s", got)
		}
		in.stated.Store(2)
		after(10 * time.Second)
		in.want("the leader has another number", "-,-,-,-", a, c)
		in.end(a, c)
	})
}

// TestSlowAPI lets replicas share many shards while each request takes long.
func TestSlowAPI(t *testing.T) {
	for _, tt := range []struct {
		latency, within time.Duration
		reason          string
	}{
		{200 * time.Millisecond, 5 * time.Second, "all writes fit between two renewals"},
		{500 * time.Millisecond, 20 * time.Second, "the writes would take as long as the member Lease is valid"},
		{time.Second, 80 * time.Second, "one write fits between two renewals"},
	} {
		t.Run(tt.latency.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newInstallation(t, 16)
				in.latency.Store(int64(tt.latency))
				a := in.start("a")
				after(tt.within)
				all := strings.TrimSuffix(strings.Repeat("a,", 16), ",")
				in.want(tt.reason, all, a)
				after(time.Minute)
				in.want("it holds them while it renews its member Lease", all, a)
				if in.versions != 16 {
					t.Errorf("%s: it took over 16 shards %d times", tt.reason, in.versions)
				}
				in.end(a)
			})
		})
	}
}

// TestFailedDelivery makes the delivery of a shard fail at once.
func TestFailedDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in := newInstallation(t, 4)
		in.failWhen(func(process, shard string) bool { return process == "a" && shard == "01" })
		a := in.start("a")
		after(2 * time.Minute)
		in.want("the other shards are delivered", "a,-,a,a", a)
		if in.versions > 12 {
			t.Errorf("it took over a shard %d times in two minutes; each writes two Leases", in.versions-3)
		}
		b := in.start("b")
		after(time.Minute)
		if got := in.holders(a, b); strings.Contains(got, "-") || strings.Split(got, ",")[1] != "b" {
			t.Errorf("another replica gets the shard, not %s", got)
		}
		in.failWhen(func(string, string) bool { return false })
		in.end(b)
		after(time.Minute)
		in.want("it delivers the shard once it can", "a,a,a,a", a)
		in.end(a)
	})
}

func TestFailures(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name, reason string
		ran          []time.Duration
		want         time.Duration
	}{
		{"once", "the next step tries again", []time.Duration{0}, 2 * time.Second},
		{"twice", "the cause seems to last", []time.Duration{0, 0}, 4 * time.Second},
		{"often", "the cause may end, and a shard must not wait long after that", []time.Duration{0, 0, 0, 0, 0, 0, 0}, maxPause},
		{"after a long run", "it is another failure", []time.Duration{0, 0, 0, time.Hour}, 2 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := failures{}
			for _, ran := range tt.ran {
				f.add(1, at, ran, 2*time.Second)
			}
			if before := at.Add(tt.want - 1); !f.isRecent(1, before) || !f.anyRecent(before) || f.isRecent(0, before) {
				t.Errorf("the pause is shorter than %s: %s", tt.want, tt.reason)
			}
			if end := at.Add(tt.want); f.isRecent(1, end) || f.anyRecent(end) {
				t.Errorf("the pause is longer than %s: %s", tt.want, tt.reason)
			}
		})
	}
}

func TestStatedNumber(t *testing.T) {
	for _, tt := range []struct {
		name, reason string
		stated       int
		want         string
	}{
		{"the same number", "the leader labels posts for these shards", 2, "a,a"},
		{"no number", "the leader delivers all posts itself", 0, "-,-"},
		{"another number", "posts have the labels of other shards", 4, "-,-"},
		{"no leader", "its successor will state the number; posts do not wait for it", -1, "a,a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				in := newInstallation(t, 2)
				a := in.start("a")
				after(5 * time.Second)
				in.stated.Store(int64(tt.stated))
				after(5 * time.Second)
				in.want(tt.reason, tt.want, a)
				in.end(a)
			})
		})
	}
}
