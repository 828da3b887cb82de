// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/conditions"
)

func within(b v1alpha1.TeamBudget) func(*v1alpha1.Team) {
	return func(t *v1alpha1.Team) { t.Spec.Budget = b }
}

// announce returns the body that announces an image of the given size in bytes.
func announce(bytes int) string {
	return fmt.Sprintf(`{"name":"a.png","mime_type":"image/png","size_bytes":%d}`, bytes)
}

var _ = Describe("The budget of a team", func() {
	DescribeTable("applies to the last post, and is freed when posts are deleted", func(ctx context.Context, b v1alpha1.TeamBudget, allowed int, body, words string) {
		t := newTeam(ctx, within(b))
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		var last postBody
		for range allowed {
			last = as[postBody](t.call(ctx, "POST", "/posts", body))
			Expect(last.Data.ID).NotTo(BeEmpty())
		}
		refusal := t.call(ctx, "POST", "/posts", body)
		refusal.mustFail(403, "SUBSCRIPTION_REQUIRED", words)
		refusal.mustFail(403, "SUBSCRIPTION_REQUIRED", fmt.Sprintf("of Team %q", t.namespace))
		By("403 comes before 400 and 409")
		t.call(ctx, "POST", "/posts", strings.ReplaceAll(body, "acme-x", "no-such-account")).mustFail(403, "SUBSCRIPTION_REQUIRED", words)

		Expect(admin.Delete(ctx, &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: last.Data.ID}})).To(Succeed())
		remove(ctx, t.namespace, last.Data.ID)
		Eventually(func() int { return t.call(ctx, "POST", "/posts", body).status }).Should(Equal(http.StatusCreated))
		t.call(ctx, "POST", "/posts", body).mustFail(403, "SUBSCRIPTION_REQUIRED", words)
	},
		Entry("stored posts", v1alpha1.TeamBudget{Posts: new(int32(2))}, 2, text("acme-x", "a", draft),
			"the team's budget allows 2 stored posts, including finished and cancelled ones; 2 are used and this needs 1 more. Delete posts"),
		Entry("their bytes", v1alpha1.TeamBudget{PostBytes: new(resource.MustParse("3Ki"))}, 1, text("acme-x", strings.Repeat("a", 280), draft),
			"the team's budget allows 3,072 bytes of stored posts; "),
		Entry("unfinished posts, drafts and scheduled ones", v1alpha1.TeamBudget{UnfinishedPosts: new(int32(3))}, 3, text("acme-x", "a", inMarch),
			"the team's budget allows 3 posts that are drafts, scheduled or being delivered; 3 are used and this needs 1 more. Cancel drafts or scheduled posts, or have an administrator raise spec.budget.unfinishedPosts"),
	)

	It("counts cancelled posts as stored, and not as unfinished", func(ctx context.Context) {
		t := newTeam(ctx, within(v1alpha1.TeamBudget{Posts: new(int32(2)), UnfinishedPosts: new(int32(1))}))
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		first := t.create(ctx, text("acme-x", "a", draft))
		t.call(ctx, "POST", "/posts", text("acme-x", "a", draft)).mustFail(403, "SUBSCRIPTION_REQUIRED", "spec.budget.unfinishedPosts")
		Expect(t.call(ctx, "DELETE", "/posts/"+first.ID, "").status).To(Equal(http.StatusOK))
		second := t.create(ctx, text("acme-x", "a", draft))
		Expect(t.call(ctx, "DELETE", "/posts/"+second.ID, "").status).To(Equal(http.StatusOK))
		t.call(ctx, "POST", "/posts", text("acme-x", "a", draft)).mustFail(403, "SUBSCRIPTION_REQUIRED", "spec.budget.posts")
	})

	It("answers repeated requests after it is used up", func(ctx context.Context) {
		t := newTeam(ctx, within(v1alpha1.TeamBudget{Posts: new(int32(1)), PendingFiles: new(int32(1))}))
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		keyed := func(path, body string) reply {
			GinkgoHelper()
			return do(ctx, instance, "POST", base+path, body, map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": "once"})
		}
		for range 3 {
			Expect(keyed("/posts", text("acme-x", "a", draft)).status).To(Equal(http.StatusCreated))
			Expect(keyed("/media/upload-url", announce(1000)).status).To(Equal(http.StatusCreated))
		}
		keyed("/media/upload-url", announce(1001)).mustFail(409, "CONFLICT", "another file")
		t.call(ctx, "POST", "/media/upload-url", announce(1000)).mustFail(403, "SUBSCRIPTION_REQUIRED", "spec.budget.pendingFiles")
	})

	DescribeTable("limits pending files until they are uploaded or deleted", func(ctx context.Context, b v1alpha1.TeamBudget, allowed int, words string) {
		t := newTeam(ctx, within(b))
		begin := func() reply { GinkgoHelper(); return t.call(ctx, "POST", "/media/upload-url", announce(1000)) }
		for range allowed {
			Expect(begin().status).To(Equal(http.StatusCreated))
		}
		begin().mustFail(403, "SUBSCRIPTION_REQUIRED", words)
		var found v1alpha1.MediaList
		Expect(admin.List(ctx, &found, client.InNamespace(t.namespace))).To(Succeed())
		Expect(found.Items).To(HaveLen(allowed), "a rejected request creates no post")

		came := &found.Items[0]
		came.Status = v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded, ETag: "e", SizeBytes: 1000}
		Expect(admin.Status().Update(ctx, came)).To(Succeed())
		Eventually(func() int { return begin().status }).Should(Equal(http.StatusCreated))
		begin().mustFail(403, "SUBSCRIPTION_REQUIRED", words)
	},
		Entry("by their number", v1alpha1.TeamBudget{PendingFiles: new(int32(3))}, 3, "the team's budget allows 3 pending files; 3 are used and this needs 1 more"),
		Entry("by their bytes", v1alpha1.TeamBudget{PendingFileBytes: new(resource.MustParse("2500"))}, 2, "the team's budget allows 2,500 bytes of pending files; 2,000 are used and this needs 1,000 more"),
	)

	It("is not exceeded by bursts to one replica, is exceeded briefly by bursts to three, and never where Kubernetes counts", func(ctx context.Context) {
		const limit, others, clients = 20, 2, 8
		replicas := []*running{instance}
		for range others {
			r := start(restricted)
			DeferCleanup(r.stop)
			replicas = append(replicas, r)
		}
		burst := func(at []*running, of *team) int {
			GinkgoHelper()
			header := map[string]string{"Authorization": "Bearer " + of.token}
			for _, r := range at {
				Eventually(func() int { return do(ctx, r, "POST", base+"/posts", "{}", header).status }).Should(Equal(http.StatusBadRequest))
			}
			var made atomic.Int32
			var wg sync.WaitGroup
			for i := range clients * len(replicas) {
				wg.Go(func() {
					defer GinkgoRecover()
					for range limit {
						switch r := do(ctx, at[i%len(at)], "POST", base+"/posts", text("acme-x", fmt.Sprint("post ", i), draft), header); r.status {
						case http.StatusCreated:
							made.Add(1)
						default:
							r.mustFail(403, "SUBSCRIPTION_REQUIRED", "spec.budget.posts")
						}
					}
				})
			}
			wg.Wait()
			return int(made.Load())
		}
		bounded := func() *team {
			t := newTeam(ctx, within(v1alpha1.TeamBudget{Posts: new(int32(limit))}))
			t.connect(ctx, "acme-x", v1alpha1.PlatformX)
			return t
		}
		Expect(burst(replicas[:1], bounded())).To(Equal(limit))
		made := burst(replicas, bounded())
		// A single replica never exceeds the limit. It learns about the other replicas' posts from the watch.
		Expect(made).To(And(BeNumerically(">=", limit), BeNumerically("<=", limit*len(replicas))))
		AddReportEntry("posts made by three replicas", fmt.Sprintf("%d of %d", made, limit))
		exact := bounded()
		Expect(admin.Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: exact.namespace, Name: v1alpha1.BudgetQuota},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/posts.social.herald.dev": resource.MustParse(fmt.Sprint(limit))}},
		})).To(Succeed())
		setQuotaUsage(ctx, exact.namespace, nil)
		await(ctx, exact.namespace)
		Expect(burst(replicas, exact)).To(Equal(limit))
	})

	It("is written to the Usage at most once in ten seconds, and only after a change", func(ctx context.Context) {
		clock := clocktesting.NewFakeClock(time.Now())
		own := start(restricted, func(c *apiserver.Config) { c.Clock = clock })
		DeferCleanup(own.stop)
		t := newTeam(ctx, within(v1alpha1.TeamBudget{Posts: new(int32(4)), UnfinishedPosts: new(int32(8))}))
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.create(ctx, text("acme-x", "a", draft))
		Expect(t.call(ctx, "POST", "/media/upload-url", announce(1000)).status).To(Equal(http.StatusCreated))
		ready(ctx, t)
		// The suite's two replicas compute the same values; this replica's clock is stopped.
		var usage v1alpha1.Usage
		read := func(g Gomega) string {
			g.Expect(admin.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: "budget"}, &usage)).To(Succeed())
			told, err := json.Marshal(usage.Status.Budget)
			g.Expect(err).NotTo(HaveOccurred())
			return string(told)
		}
		Eventually(func(g Gomega) string {
			clock.Step(10 * time.Second)
			return read(g)
		}, 20*time.Second, 100*time.Millisecond).Should(MatchRegexp(`^\[\{"item":"posts","used":1,"limit":4\},\{"item":"postBytes","used":\d{4},"limit":536870912\},` +
			`\{"item":"unfinishedPosts","used":1,"limit":8\},\{"item":"pendingFiles","used":1,"limit":1000\},` +
			`\{"item":"pendingFileBytes","used":1000,"limit":214748364800\},\{"item":"keys","used":1,"limit":100\}\]$`))
		Expect([]int32{usage.Status.Used, usage.Status.Limit}).To(Equal([]int32{25, 100}), "how full the fullest is, in percent")
	})
})

// remove removes the finalizers from an object that is being deleted, as the manager does.
func remove(ctx context.Context, namespace, name string) {
	GinkgoHelper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	Expect(client.IgnoreNotFound(admin.Patch(ctx, &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}, patch))).To(Succeed())
}

// ready makes the team ready, as the manager does.
func ready(ctx context.Context, t *team) {
	GinkgoHelper()
	Eventually(func() error {
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(t.resource), t.resource)).To(Succeed())
		conditions.Apply(&t.resource.Status.Conditions, conditions.Summary{Ready: true, Reason: v1alpha1.ReasonNamespaceReady, Progress: conditions.Settled},
			t.resource.Generation, time.Now())
		return admin.Status().Update(ctx, t.resource)
	}).Should(Succeed())
}

// await waits until the API server, which watches quotas, enforces a namespace's quota.
func await(ctx context.Context, namespace string) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		p := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, GenerateName: "probe-"},
			Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Draft: true, Targets: []v1alpha1.PostTarget{
				{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "a"},
			}},
		}
		g.Expect(admin.Create(ctx, p)).To(Succeed())
		g.Expect(admin.Delete(ctx, p)).To(Succeed())
		var q corev1.ResourceQuota
		g.Expect(admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: v1alpha1.BudgetQuota}, &q)).To(Succeed())
		used := q.Status.Used["count/posts.social.herald.dev"]
		g.Expect(used.IsZero()).To(BeFalse(), "created posts count, and deleted ones until Kubernetes' controller runs")
	}).Should(Succeed())
	setQuotaUsage(ctx, namespace, nil)
}

// setQuotaUsage writes a ResourceQuota's usage, in place of Kubernetes' controller.
func setQuotaUsage(ctx context.Context, namespace string, used map[string]string) {
	GinkgoHelper()
	var q corev1.ResourceQuota
	Expect(admin.Get(ctx, types.NamespacedName{Namespace: namespace, Name: v1alpha1.BudgetQuota}, &q)).To(Succeed())
	q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: corev1.ResourceList{}}
	for name := range q.Spec.Hard {
		q.Status.Used[name] = resource.MustParse("0")
	}
	for name, n := range used {
		q.Status.Used[corev1.ResourceName(name)] = resource.MustParse(n)
	}
	Expect(admin.Status().Update(ctx, &q)).To(Succeed())
}

// Kubernetes' own controller counts the objects; here the test replaces it.
var _ = Describe("The ResourceQuota of a team", func() {
	const posts, media = "count/posts.social.herald.dev", "count/media.social.herald.dev"
	bound := func(ctx context.Context, t *team) {
		GinkgoHelper()
		Expect(admin.Create(ctx, &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: v1alpha1.BudgetQuota},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{posts: resource.MustParse("2"), media: resource.MustParse("1")}},
		})).To(Succeed())
	}

	It("is reported like the budget", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		bound(ctx, t)
		setQuotaUsage(ctx, t.namespace, map[string]string{posts: "1"})
		create := func() reply { GinkgoHelper(); return t.call(ctx, "POST", "/posts", text("acme-x", "a", draft)) }
		var refused reply
		Eventually(func() int { refused = create(); return refused.status }).Should(Equal(http.StatusForbidden))
		refused.mustFail(403, "SUBSCRIPTION_REQUIRED", "the team's budget allows 2 stored posts, including finished and cancelled ones; 2 are used and this needs 1 more. "+
			fmt.Sprintf("Delete posts that are no longer needed (kubectl delete post), or have an administrator raise spec.budget.posts of Team %q.", t.namespace))
		setQuotaUsage(ctx, t.namespace, map[string]string{media: "1"})
		var files reply
		Eventually(func() int {
			files = t.call(ctx, "POST", "/media/upload-url", announce(10))
			return files.status
		}).Should(Equal(http.StatusForbidden))
		files.mustFail(403, "SUBSCRIPTION_REQUIRED", "the team's budget allows 1 stored files (2 for each post, plus pending files); 1 are used.")
	})

	It("of another kind is reported under its own name", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		q := &corev1.ResourceQuota{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "theirs"},
			Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{posts: resource.MustParse("0")}},
		}
		Expect(admin.Create(ctx, q)).To(Succeed())
		q.Status = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard, Used: q.Spec.Hard}
		Expect(admin.Status().Update(ctx, q)).To(Succeed())
		var refused reply
		Eventually(func() int {
			refused = t.call(ctx, "POST", "/posts", text("acme-x", "a", draft))
			return refused.status
		}).Should(Equal(http.StatusForbidden))
		refused.mustFail(403, "SUBSCRIPTION_REQUIRED", `ResourceQuota "theirs" of the team's namespace allows 0 posts, and 0 are used`)
	})

	It("that Kubernetes has not counted yet delays a post, but does not fail it", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		bound(ctx, t)
		// Kubernetes' controller does the same for a few seconds after the CRDs are installed. A quota without a status
		// limits nothing.
		var q corev1.ResourceQuota
		Expect(admin.Get(ctx, types.NamespacedName{Namespace: t.namespace, Name: v1alpha1.BudgetQuota}, &q)).To(Succeed())
		q.Status.Hard = q.Spec.Hard
		Expect(admin.Status().Update(ctx, &q)).To(Succeed())
		// The API server watches quotas.
		probes := 0
		Eventually(func() error {
			probes++ // a dry run is not counted
			p := &v1alpha1.Post{
				ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: fmt.Sprint("probe-", probes)},
				Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Draft: true, Targets: []v1alpha1.PostTarget{
					{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "a"},
				}},
			}
			return admin.Create(ctx, p)
		}).Should(MatchError(ContainSubstring("status unknown for quota: " + v1alpha1.BudgetQuota)))
		answers := make(chan reply, 2)
		for _, ask := range []func() reply{
			func() reply { return t.call(ctx, "POST", "/posts", text("acme-x", "the first", draft)) },
			func() reply { return t.call(ctx, "POST", "/media/upload-url", announce(10)) },
		} {
			go func() {
				defer GinkgoRecover()
				answers <- ask()
			}()
		}
		Consistently(answers, 300*time.Millisecond).ShouldNot(Receive())
		setQuotaUsage(ctx, t.namespace, nil)
		for range 2 {
			var answer reply
			Eventually(answers).Should(Receive(&answer))
			Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
		}
	})
})
