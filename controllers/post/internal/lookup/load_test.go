// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// team is a client.Reader with the posts of a team in the API server.
type team struct {
	client.Reader

	posts []v1alpha1.Post
	// read holds the lists' selectors, in their namespaces, and passed counts the returned posts.
	mu     sync.Mutex
	read   []string
	in     map[string]bool
	passed int
	// under is the number of running lists, and most is its maximum.
	under, most int
	// slow is the duration of a list, and err is its error.
	slow time.Duration
	err  error
}

func (t *team) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	t.mu.Lock()
	t.under++
	t.most = max(t.most, t.under)
	t.mu.Unlock()
	time.Sleep(t.slow) //nolint:forbidigo // in a bubble of synctest
	options := (&client.ListOptions{}).ApplyOptions(opts)
	posts, ok := list.(*v1alpha1.PostList)
	if !ok {
		return fmt.Errorf("%T is no list of posts", list)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.under--
	t.read = append(t.read, options.FieldSelector.String())
	if t.in == nil {
		t.in = map[string]bool{}
	}
	t.in[options.Namespace] = true
	for i := range t.posts {
		set := fields.Set{fieldFinishedOn: t.posts[i].Status.FinishedOn}
		if t.posts[i].Status.Finished {
			set[fieldFinished] = "true"
		}
		if options.FieldSelector.Matches(set) {
			posts.Items = append(posts.Items, t.posts[i])
		}
	}
	t.passed += len(posts.Items)
	return t.err
}

// posted returns a finished post whose name is also its external id.
func posted(name string, at time.Time) v1alpha1.Post {
	when := v1alpha1.NewTime(at)
	return v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: types.UID(name)},
		Status: v1alpha1.PostStatus{
			Finished: true, FinishedOn: at.UTC().Format(time.DateOnly), FinishedAt: &when,
			Targets: []v1alpha1.TargetStatus{{
				Platform: v1alpha1.PlatformX, ExternalID: name, PostedAt: &when, Attempt: &v1alpha1.Attempt{ID: "a", AccountID: "4711"},
			}},
		},
	}
}

// TestLoad checks that a read finds the posts that may have been published since the given time, and reads no others.
func TestLoad(t *testing.T) {
	t.Parallel()
	change := func(p v1alpha1.Post, how func(*v1alpha1.Post)) v1alpha1.Post {
		how(&p)
		return p
	}
	now := started.Add(time.Minute)
	for name, tc := range map[string]struct {
		reason string
		post   v1alpha1.Post
		since  time.Time
		known  bool
		passed int
	}{
		"today":           {"the previous process recorded it", posted("p", now), started, true, 1},
		"unfinished":      {"another target is unfinished", change(posted("p", now), func(p *v1alpha1.Post) { p.Status.Finished, p.Status.FinishedOn = false, "" }), started, true, 1},
		"earlier today":   {"the post was read before the call", posted("p", started.Add(-time.Hour)), started, false, 1},
		"yesterday":       {"the post cannot have been sent today, and is not read", posted("p", started.AddDate(0, 0, -1)), started, false, 0},
		"since yesterday": {"no manager ran overnight", posted("p", started.AddDate(0, 0, -1)), started.AddDate(0, 0, -2), true, 1},
		"for a month":     {"no manager ran meanwhile", posted("p", started.AddDate(0, 0, -20)), started.AddDate(0, 0, -30), true, 1},
		"by a version that did not record the day": {"the manager was rolled back", change(posted("p", now), func(p *v1alpha1.Post) { p.Status.FinishedOn = "" }), started, true, 1},
		"a clock ahead": {"another process recorded it just before midnight", posted("p", started.Add(12*time.Hour+time.Minute)), started.Add(11*time.Hour + 59*time.Minute), true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := &team{posts: []v1alpha1.Post{tc.post}}
			owners := NewOwners(of, clocktesting.NewFakeClock(tc.since.Add(time.Minute)))
			owners.clock.(*clocktesting.FakeClock).SetTime(later(now, tc.since.Add(30*time.Second)))
			must.Succeed(t, owners.load(t.Context(), "team", tc.since, time.Time{}))
			if known := owners.ownedByOther(v1alpha1.PlatformX, "4711", "p", owner{"other", 0}); known != tc.known || of.passed != tc.passed {
				t.Errorf("owned %t, want %t; read %d posts, want %d, by %q: %s", known, tc.known, of.passed, tc.passed, of.read, tc.reason)
			}
		})
	}
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestLoadTogether looks up many calls at once, as after a crash during a burst.
func TestLoadTogether(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		err    error
	}{
		"read":     {"one read for the first, and one for all that arrived during it", nil},
		"not read": {"without the owners of its ids, the platform is not queried", errors.New("away")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				of := &team{slow: time.Second, err: tc.err}
				owners := NewOwners(of, clock.RealClock{})
				since := owners.Start().Add(-time.Minute)
				var lookups sync.WaitGroup
				for n := range 128 {
					lookups.Go(func() {
						time.Sleep(time.Duration(n) * time.Millisecond) //nolint:forbidigo // in a bubble of synctest
						if err := owners.load(t.Context(), "team", since.Add(-time.Duration(n)*time.Millisecond), time.Time{}); !errors.Is(err, tc.err) {
							t.Errorf("lookup %d: %v, want %v", n, err, tc.err)
						}
					})
				}
				lookups.Wait()
				synctest.Wait() // the read cleans up after it has returned
				most := 2 * len(selectors(since, time.Now()))
				if tc.err != nil {
					most = 2 // each ends with its first list
				}
				if len(of.read) != most {
					t.Errorf("%d lists, want %d: %s", len(of.read), most, tc.reason)
				}
				if len(owners.flights) != 0 {
					t.Error("a read continues without waiters")
				}
			})
		})
	}
}

// TestCancelledLoad checks that a cancelled caller does not cancel the read for the others.
func TestCancelledLoad(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of := &team{slow: time.Second}
		owners := NewOwners(of, clock.RealClock{})
		since := owners.Start().Add(-time.Minute)
		ctx, cancel := context.WithCancel(t.Context())
		given := make(chan error, 1)
		go func() { given <- owners.load(ctx, "team", since, time.Time{}) }()
		synctest.Wait()
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Errorf("the cancelled waiter got %v", err)
		}
		if err := owners.load(t.Context(), "team", since, time.Time{}); err != nil {
			t.Error(err)
		}
	})
}

// connected returns a connection of an X account.
func connected(namespace, account string, status v1alpha1.ConnectionStatus) *v1alpha1.Connection {
	return &v1alpha1.Connection{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "x"},
		Spec:       v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: account}, Status: status,
	}
}

// lookups returns Lookups with the given connections and the posts of a team.
func lookups(t *testing.T, of *team, connections ...client.Object) *Lookups {
	t.Helper()
	scheme := runtime.NewScheme()
	must.Succeed(t, v1alpha1.AddToScheme(scheme))
	cache := fake.NewClientBuilder().WithScheme(scheme).WithObjects(connections...).
		WithIndex(&v1alpha1.Connection{}, accountIndex, connectedAccount).Build()
	return &Lookups{Client: cache, Owners: NewOwners(of, clock.RealClock{})}
}

// TestLoadOfAccount checks that a team cannot delay another team's lookups by naming its account.
func TestLoadOfAccount(t *testing.T) {
	t.Parallel()
	verified := v1alpha1.ConnectionStatus{CredentialsVersion: "1", VerifiedVersion: "1"}
	once := v1alpha1.ConnectionStatus{ConnectedAt: v1alpha1.NewTimePtr(started)}
	for name, tc := range map[string]struct {
		reason string
		own    v1alpha1.ConnectionStatus
		other  *v1alpha1.Connection
		want   bool
	}{
		"verified":         {"the other connection may have published the candidate", verified, connected("other", "4711", verified), true},
		"not verified yet": {"its own posts are read anyway", v1alpha1.ConnectionStatus{}, connected("other", "4711", verified), true},
		"refused since":    {"the other connection may have published before", verified, connected("other", "4711", once), true},
		"never verified":   {"any Connection can name an account; this one has not published there", verified, connected("other", "4711", v1alpha1.ConnectionStatus{}), false},
		"with credentials of another account": {
			"the platform reported the mismatch", verified, connected("other", "4711", v1alpha1.ConnectionStatus{CredentialsVersion: "1"}), false,
		},
		"another account": {"ids are unique within an account", verified, connected("other", "4712", verified), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, own := &team{}, connected("team", "4711", tc.own)
			l := lookups(t, of, own, tc.other)
			must.Succeed(t, l.load(t.Context(), own, l.Owners.Start().Add(-time.Minute)))
			if !of.in["team"] || of.in["other"] != tc.want {
				t.Errorf("read the posts of %v; of the other team: want %t: %s", of.in, tc.want, tc.reason)
			}
		})
	}
}

// TestLoadByArrival checks that the time is read for each namespace: the teams of an account arrive at different times.
func TestLoadByArrival(t *testing.T) {
	t.Parallel()
	verified := v1alpha1.ConnectionStatus{CredentialsVersion: "1", VerifiedVersion: "1"}
	for name, tc := range map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"arrived":  {"the previous holder of the other team recorded its posts", nil, true},
		"not read": {"without the owners of its ids, the platform is not queried", errors.New("away"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of, own := &team{}, connected("team", "4711", verified)
			l := lookups(t, of, own, connected("other", "4711", verified))
			start := l.Owners.Start()
			l.ArrivedAt = func(_ context.Context, namespace string) (time.Time, error) {
				if namespace == "other" {
					return start.Add(time.Hour), tc.err
				}
				return start, nil
			}
			if err := l.load(t.Context(), own, start.Add(10*time.Minute)); !errors.Is(err, tc.err) {
				t.Errorf("got %v, want %v", err, tc.err)
			}
			if of.in["team"] || of.in["other"] != tc.want {
				t.Errorf("read the posts of %v; of the other team: want %t: %s", of.in, tc.want, tc.reason)
			}
		})
	}
}

// TestLoadOfManyTeams checks that namespaces are read concurrently, up to maxConcurrentLoads. Sequential reads would
// add up the delays of slow namespaces, and reading all at once would be a burst for the API server.
func TestLoadOfManyTeams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		of, verified := &team{slow: time.Second}, v1alpha1.ConnectionStatus{CredentialsVersion: "1", VerifiedVersion: "1"}
		var connections []client.Object
		for n := range 3 * maxConcurrentLoads {
			connections = append(connections, connected(fmt.Sprintf("team-%d", n), "4711", verified))
		}
		l := lookups(t, of, connections...)
		must.Succeed(t, l.load(t.Context(), connected("team-0", "4711", verified), l.Owners.Start().Add(-time.Minute)))
		synctest.Wait() // the reads clean up after they have returned
		if len(of.in) != len(connections) || of.most != maxConcurrentLoads {
			t.Errorf("read %d teams, want %d; %d concurrently, want %d", len(of.in), len(connections), of.most, maxConcurrentLoads)
		}
	})
}

// TestLoadAfterArrival checks that a process which has run for hours reads what the previous holder of a team's shard has
// published: a post that is not known to own its id gives it to another post, which is then never published.
func TestLoadAfterArrival(t *testing.T) {
	t.Parallel()
	const minute = time.Minute
	for name, tc := range map[string]struct {
		reason string
		// All times are relative to the start of the process. read is the time of an earlier lookup, if it is not zero.
		arrived, read, now, since time.Duration
		oneShard, want            bool
	}{
		"one shard":                       {reason: "this process has recorded everything since it started", now: 180 * minute, since: 119 * minute, oneShard: true},
		"one shard, just after the start": {reason: "the previous process records its last calls", now: 10 * minute, since: minute, oneShard: true, want: true},
		"one shard, read just after the start": {
			reason: "the previous process may have recorded more after that", read: minute, now: 180 * minute, since: minute, oneShard: true, want: true,
		},
		"one shard, read long after the start": {reason: "nothing is missing", read: 5 * minute, now: 180 * minute, since: minute, oneShard: true},
		"before the arrival":                   {reason: "the previous holder recorded it", arrived: 120 * minute, now: 121 * minute, since: 119 * minute, want: true},
		"just after the arrival":               {reason: "the previous holder records its last calls", arrived: 120 * minute, now: 125 * minute, since: 121 * minute, want: true},
		"long after the arrival":               {reason: "this process has recorded it", arrived: 120 * minute, now: 180 * minute, since: 125 * minute},
		"read before the arrival": {
			reason: "the previous holder recorded more after that", arrived: 120 * minute, read: 100 * minute, now: 180 * minute, since: 119 * minute, want: true,
		},
		"read just after the arrival": {
			reason: "the previous holder may have recorded more after that", arrived: 120 * minute, read: 121 * minute, now: 180 * minute, since: 119 * minute, want: true,
		},
		"read long after the arrival": {reason: "nothing is missing", arrived: 120 * minute, read: 125 * minute, now: 180 * minute, since: 119 * minute},
		"assigned before the start":   {reason: "as after a hand-over of the shard", now: 10 * minute, since: minute, want: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			of := &team{posts: []v1alpha1.Post{posted("p", started.Add(tc.since+minute))}}
			clk := clocktesting.NewFakeClock(started)
			owners := NewOwners(of, clk)
			owners.Start()
			arrived := started.Add(tc.arrived)
			if tc.oneShard {
				arrived = time.Time{}
			}
			if tc.read != 0 {
				clk.SetTime(started.Add(tc.read))
				must.Succeed(t, owners.load(t.Context(), "team", started.Add(-minute), arrived))
			}
			before := len(of.read)
			clk.SetTime(started.Add(tc.now))
			must.Succeed(t, owners.load(t.Context(), "team", started.Add(tc.since), arrived))
			if got := len(of.read) > before; got != tc.want {
				t.Errorf("read %t, want %t: %s", got, tc.want, tc.reason)
			}
			if known := owners.ownedByOther(v1alpha1.PlatformX, "4711", "p", owner{"other", 0}); tc.want && !known {
				t.Error("the post's owner is not known")
			}
		})
	}
}
