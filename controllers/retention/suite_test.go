// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/posting/retention"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/storetest"
	"github.com/herald-social/herald/test/suite"
)

func TestRetention(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Retention")
}

var (
	k8s     client.Client
	manager client.Client
	bucket  *store.Store
	gone    *store.Store
	serial  atomic.Int64
)

var _ = BeforeSuite(func(ctx SpecContext) {
	env := suite.Start()
	k8s = env.Client
	config := storetest.Start(GinkgoT())
	bucket = suite.Must(store.New(config))
	config.Bucket = "no-such-bucket"
	gone = suite.Must(store.New(config))
	limited := suite.Must(env.Installed(ctx, envtest.ManagerAccount))
	manager = suite.Must(client.New(limited, client.Options{Scheme: env.Scheme}))
})

// reads counts the requests that list posts.
type reads struct {
	client.Reader
	lists int
	// fails is the error that each of them returns, if any.
	fails error
}

func (r *reads) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	if _, ok := list.(*v1alpha1.PostList); ok {
		r.lists++
		if r.fails != nil {
			return r.fails
		}
	}
	return r.Reader.List(ctx, list, options...)
}

// desk is a team with the sweeper and archiver of its finished posts.
type desk struct {
	*Sweeper

	team  *v1alpha1.Team
	clock *clocktesting.FakeClock
	files *store.Store
	reads *reads
	shelf *Archiver
	// foreign is the error that MayDelete returns.
	foreign error
}

// started is the initial time of a desk's clock: noon today, because the store has its own clock, and so that no day
// ends during a spec that spans hours.
var started = time.Now().UTC().Truncate(24 * time.Hour).Add(12 * time.Hour)

// sweepAfter steps the clock and runs a sweep, which must succeed.
func (d *desk) sweepAfter(ctx context.Context, pause time.Duration) {
	GinkgoHelper()
	d.clock.Step(pause)
	Expect(d.sweep(ctx)).To(Succeed())
}

// newDesk creates a team whose posts stay in the cluster for two days and in the archive for ten.
func newDesk(ctx context.Context, edits ...func(*v1alpha1.TeamSpec)) *desk {
	GinkgoHelper()
	name := fmt.Sprintf("team-%d", serial.Add(1))
	team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TeamSpec{Namespace: name, Retention: v1alpha1.TeamRetention{
		InCluster: &v1alpha1.Duration{Duration: 48 * time.Hour}, Archived: &v1alpha1.Duration{Duration: 240 * time.Hour},
	}}}
	for _, edit := range edits {
		edit(&team.Spec)
	}
	Expect(k8s.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})).To(Succeed())
	Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
	d := &desk{team: team, clock: clocktesting.NewFakeClock(started), files: bucket, reads: &reads{Reader: manager}}
	d.restart()
	return d
}

// restart simulates a new process.
func (d *desk) restart() {
	GinkgoHelper()
	policy := retention.Policy{InCluster: 7 * 24 * time.Hour, Archived: 90 * 24 * time.Hour}
	options := Options{
		Client: manager, APIReader: d.reads, Clock: d.clock, Policy: policy, PostsPerSecond: 10_000, Namespaces: []string{d.team.Spec.Namespace},
		Owner: func(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
			var team v1alpha1.Team
			err := k8s.Get(ctx, client.ObjectKey{Name: namespace}, &team)
			return &team, err
		},
	}
	if !d.files.Absent() {
		kept := archive.New(d.files)
		d.shelf = NewArchiver(ArchiverOptions{
			MayDelete: func(context.Context) error { return d.foreign },
			Client:    manager, APIReader: manager, Clock: d.clock, Policy: policy, Archive: kept, Lists: lists.NewWriter(d.files, d.clock),
			Record: func(ctx context.Context, post *v1alpha1.Post) error {
				return kept.Put(ctx, d.of(), post.Name, func([]byte) ([]byte, error) {
					return record.New(post, d.team.Name, func(string) (v1alpha1.Platform, string, bool) { return "", "", false }).Encode()
				})
			},
		})
		options.Archive = d.shelf
	}
	s := suite.Must(New(options))
	d.Sweeper = s
}

func (d *desk) of() archive.Team {
	return archive.Team{Namespace: d.team.Spec.Namespace, Name: d.team.Name}
}

// post stores a post that finished the given time ago.
func (d *desk) post(ctx context.Context, name string, age time.Duration, edits ...func(*v1alpha1.Post)) *v1alpha1.Post {
	GinkgoHelper()
	post := &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: d.team.Spec.Namespace, Name: name, Finalizers: []string{v1alpha1.DeliveryFinalizer},
			Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI},
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}, Caption: "hello " + name}}},
	}
	at := d.clock.Now().Add(-age)
	post.Status = v1alpha1.PostStatus{
		Finished: true, FinishedAt: v1alpha1.NewTimePtr(at), FinishedOn: dayOf(at), Phase: v1alpha1.PhasePosted,
		Targets: []v1alpha1.TargetStatus{{
			Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhasePosted, State: v1alpha1.TargetPosted, ExternalID: "1" + name, PostedAt: v1alpha1.NewTimePtr(at),
		}},
	}
	for _, edit := range edits {
		edit(post)
	}
	status := post.Status
	Expect(k8s.Create(ctx, post)).To(Succeed())
	post.Status = status
	Expect(k8s.Status().Update(ctx, post)).To(Succeed())
	return post
}

// lose removes a post from the cluster without storing a record.
func (d *desk) lose(ctx context.Context, post *v1alpha1.Post) {
	GinkgoHelper()
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(post), post)).To(Succeed())
	post.Finalizers = nil
	Expect(k8s.Update(ctx, post)).To(Succeed())
	Expect(k8s.Delete(ctx, post)).To(Succeed())
}

// damage corrupts all files of the lists except the index.
func (d *desk) damage(ctx context.Context) {
	GinkgoHelper()
	for object, err := range bucket.List(ctx, d.of().Prefix()+"segments/") {
		Expect(err).NotTo(HaveOccurred())
		Expect(bucket.PutDocument(ctx, object.Key, "text/plain", []byte("rot"), store.Any)).Error().NotTo(HaveOccurred())
	}
}

func applied(post *v1alpha1.Post) { post.Labels = nil }

func undated(post *v1alpha1.Post) { post.Status.FinishedAt, post.Status.FinishedOn = nil, "" }

func cancelled(post *v1alpha1.Post) {
	post.Spec.Draft, post.Spec.Cancelled = true, true
	post.Status.Phase, post.Status.Targets = v1alpha1.PhaseCancelled, nil
}

// withLostResponse makes a post unfinished: the response to a call that started the given time ago is lost.
func withLostResponse(now time.Time, ago time.Duration) func(*v1alpha1.Post) {
	return func(post *v1alpha1.Post) {
		at := v1alpha1.NewTime(now.Add(-ago))
		post.Status = v1alpha1.PostStatus{Phase: v1alpha1.PhaseProcessing, Targets: []v1alpha1.TargetStatus{{
			Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseProcessing, State: v1alpha1.TargetPending,
			Attempt: &v1alpha1.Attempt{Number: 1, ID: "lost", AccountID: "17", StartedAt: at, SendBefore: at},
		}}}
	}
}

func withRequest(post *v1alpha1.Post) {
	post.Annotations = map[string]string{v1alpha1.RequestAnnotation: "2:abc"}
}

// stored returns the posts in the cluster.
func (d *desk) stored(ctx context.Context) []string {
	GinkgoHelper()
	var posts v1alpha1.PostList
	Expect(k8s.List(ctx, &posts, client.InNamespace(d.team.Spec.Namespace))).To(Succeed())
	names := []string{}
	for i := range posts.Items {
		names = append(names, posts.Items[i].Name)
	}
	return names
}

// listed returns the posts in the archive's lists.
func (d *desk) listed(ctx context.Context) []string {
	GinkgoHelper()
	return d.listedIn(ctx, lists.Filter{})
}

// listedIn returns the posts in the archive's list for a filter.
func (d *desk) listedIn(ctx context.Context, filter lists.Filter) []string {
	GinkgoHelper()
	view := suite.Must(lists.NewReader(bucket, 1<<20).Open(ctx, lists.Team(d.of()), nil))
	names := []string{}
	for _, row := range view.Head(filter) {
		names = append(names, row.Name)
	}
	return names
}

// recorded returns the posts that have a record.
func (d *desk) recorded(ctx context.Context, names ...string) []string {
	GinkgoHelper()
	found := []string{}
	for _, name := range names {
		data, err := archive.New(bucket).Get(ctx, d.of(), name)
		if err == nil {
			Expect(record.Decode(data)).Error().NotTo(HaveOccurred())
			found = append(found, name)
			continue
		}
		Expect(err).To(MatchError(archive.ErrNotFound))
	}
	return found
}
