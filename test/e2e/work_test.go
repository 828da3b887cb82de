// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/test/sandboxtest"
)

// oftenEnough is the number of requests affected by a fault that lasts until it is cleared.
const oftenEnough = 100_000

// outletAccounts are the outlet's accounts, by platform.
var outletAccounts = map[v1alpha1.Platform]string{v1alpha1.PlatformX: "1500000000000000077", v1alpha1.PlatformThreads: "24000000000000077"}

// work contains a team's unfinished objects when Herald is removed.
type work struct {
	team *v1alpha1.Team
	// published is published. half is published on one platform and rate limited on the other. The response to doubtful's call was lost,
	// and its platform does not answer lookups.
	published, half, doubtful, scheduled, draft *v1alpha1.Post
	file                                        *v1alpha1.Media
}

// newWork creates the posts and waits until the manager has nothing left to do for now.
func newWork(ctx context.Context, namespace, name string) *work {
	GinkgoHelper()
	create := func(kind string, change func(*v1alpha1.Post), on ...v1alpha1.Platform) *v1alpha1.Post {
		post := postTo(name+"-"+kind, v1alpha1.CategoryText, on...)
		post.Namespace = namespace
		change(post)
		Expect(k8s.Create(ctx, post)).To(Succeed())
		return post
	}
	nothing := func(*v1alpha1.Post) {}
	w := &work{team: &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}}
	if namespace == outlet {
		w.team.Name = outlet
	}
	w.scheduled = create("scheduled", func(p *v1alpha1.Post) { p.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(time.Hour)) }, v1alpha1.PlatformX)
	w.draft = create("draft", func(p *v1alpha1.Post) { p.Spec.Draft = true }, v1alpha1.PlatformX)
	w.published = create("published", nothing, v1alpha1.PlatformX, v1alpha1.PlatformThreads)
	Eventually(online(ctx, w.published)).WithContext(ctx).Should(BeTrue())
	w.file = &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + "-file"}, Spec: v1alpha1.MediaSpec{
		FileName: "a.png", MimeType: v1alpha1.MimePNG, SizeBytes: 10,
	}}
	Expect(k8s.Create(ctx, w.file)).To(Succeed())

	w.fault(ctx, v1alpha1.PlatformThreads, "create", "rate_limit", oftenEnough)
	w.half = create("half", nothing, v1alpha1.PlatformX, v1alpha1.PlatformThreads)
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.half), w.half)).To(Succeed())
		g.Expect(w.half.Status.Targets).To(HaveLen(2))
		g.Expect(w.half.Status.Targets[0].Phase).To(Equal(v1alpha1.PhasePosted))
	}).WithContext(ctx).Should(Succeed())
	w.fault(ctx, v1alpha1.PlatformX, "publish", "drop_after", 1)
	w.fault(ctx, v1alpha1.PlatformX, "list", "status", oftenEnough)
	w.doubtful = create("doubtful", nothing, v1alpha1.PlatformX)
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.doubtful), w.doubtful)).To(Succeed())
		g.Expect(w.doubtful.Status.Targets).To(HaveLen(1))
		g.Expect(w.doubtful.Status.Targets[0].Attempt).NotTo(BeNil())
		g.Expect(w.doubtful.Status.Targets[0].Attempt.EndedAt).NotTo(BeNil())
		g.Expect(w.doubtful.Status.Targets[0].Attempt.Outcome).To(BeEmpty())
	}).WithContext(ctx).Should(Succeed(), "a call is open")
	for _, object := range []client.Object{w.team, w.published, w.half, w.doubtful, w.file} {
		Eventually(finalizers(ctx, object)).WithContext(ctx).Should(ContainElement(HavePrefix(v1alpha1.GroupVersion.Group+"/")), "%T %s", object, object.GetName())
	}
	return w
}

// fault injects a fault for this team's account.
func (w *work) fault(ctx context.Context, on v1alpha1.Platform, operation, kind string, times int) {
	GinkgoHelper()
	account := account(ctx, w.scheduled.Namespace, on)
	Expect(platforms(ctx).Fault(ctx, sandboxtest.Fault{
		Platform: string(on), Account: account, Operation: operation, Kind: kind, Times: times, Status: 503, RetryAfterS: 1,
	})).To(Succeed())
}

// calm clears all faults.
func (*work) calm(ctx context.Context) {
	GinkgoHelper()
	Expect(platforms(ctx).ClearFaults(ctx)).To(Succeed())
}

// all returns the objects that must remain.
func (w *work) all() []client.Object {
	return []client.Object{w.team, w.published, w.half, w.doubtful, w.scheduled, w.draft, w.file}
}

// expectReleased expects each object to exist, with its original UID and without a Herald finalizer.
func (w *work) expectReleased(ctx context.Context) {
	GinkgoHelper()
	for _, list := range []client.ObjectList{&v1alpha1.PostList{}, &v1alpha1.MediaList{}, &v1alpha1.TeamList{}} {
		found, err := unstructuredOf(ctx, list)
		Expect(err).NotTo(HaveOccurred())
		for i := range found {
			Expect(found[i].GetFinalizers()).NotTo(ContainElement(HavePrefix(v1alpha1.GroupVersion.Group+"/")), "%s %s", found[i].GetKind(), found[i].GetName())
		}
	}
	for _, object := range w.all() {
		uid := object.GetUID()
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
		Expect(object.GetUID()).To(Equal(uid))
		Expect(object.GetDeletionTimestamp()).To(BeNil())
	}
}

// goesOn expects that the manager resumes the work and publishes every remaining post once.
func (w *work) goesOn(ctx context.Context) {
	GinkgoHelper()
	w.calm(ctx)
	due := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"scheduledAt":"`+time.Now().UTC().Format(time.RFC3339)+`"}}`))
	Expect(k8s.Patch(ctx, w.scheduled, due)).To(Succeed())
	for _, post := range []*v1alpha1.Post{w.published, w.half, w.doubtful, w.scheduled} {
		Eventually(online(ctx, post)).WithContext(ctx).Should(BeTrue(), post.Name)
		Expect(shows(ctx, post)).To(HaveEach(1), post.Name)
	}
	Expect(k8s.Get(ctx, client.ObjectKeyFromObject(w.draft), w.draft)).To(Succeed())
	Expect(w.draft.Status.Phase).To(Equal(v1alpha1.PhaseDraft))
	Expect(shows(ctx, w.draft)).To(HaveEach(0))
	Eventually(finalizers(ctx, w.team)).WithContext(ctx).Should(ContainElement(v1alpha1.RecordsFinalizer))
}

// openOutlet creates another team, with the same account names as the trial.
func openOutlet(ctx context.Context) {
	GinkgoHelper()
	Expect(k8s.Create(ctx, &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: outlet}, Spec: v1alpha1.TeamSpec{
		Namespace: outlet, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive},
	}})).To(Succeed())
	for platform, id := range outletAccounts {
		account, err := platforms(ctx).Account(ctx, string(platform), id, nil)
		Expect(err).NotTo(HaveOccurred())
		connection := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: outlet, Name: "demo-" + string(platform)}}
		tokens := cluster.Account{ID: account.ID, AccessToken: account.AccessToken, RefreshToken: account.RefreshToken, Scopes: account.Scopes}
		if !account.ExpiresAt.IsZero() {
			tokens.ExpiresAt = account.ExpiresAt.UTC().Format(time.RFC3339)
		}
		Eventually(func() error { return cluster.CreateConnection(ctx, k8s, connection, platform, tokens) }).WithContext(ctx).
			Should(Succeed(), "the manager makes the team's namespace")
		Eventually(condition(ctx, connection, &connection.Status.Conditions, v1alpha1.ConditionReady)).WithContext(ctx).Should(Equal(v1alpha1.ReasonConnected))
	}
}

// account returns the ID of a team's account on a platform.
func account(ctx context.Context, namespace string, on v1alpha1.Platform) string {
	GinkgoHelper()
	connection := &v1alpha1.Connection{}
	Expect(k8s.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "demo-" + string(on)}, connection)).To(Succeed())
	return connection.Spec.AccountID
}

// shows returns the number of times that each of a post's targets was published.
func shows(ctx context.Context, post *v1alpha1.Post) (times []int) {
	GinkgoHelper()
	for i := range post.Spec.Targets {
		on := v1alpha1.Platform(strings.TrimPrefix(post.Spec.Targets[i].ConnectionRef.Name, "demo-"))
		n := 0
		for _, text := range texts(ctx, on, account(ctx, post.Namespace, on)) {
			if text == post.Spec.Targets[i].Caption {
				n++
			}
		}
		times = append(times, n)
	}
	return times
}

// texts returns the captions of an account's posts.
func texts(ctx context.Context, on v1alpha1.Platform, account string) (out []string) {
	GinkgoHelper()
	published, err := platforms(ctx).Posts(ctx, string(on), account)
	Expect(err).NotTo(HaveOccurred())
	for i := range published {
		out = append(out, published[i].Text)
	}
	return out
}
