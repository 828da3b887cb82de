// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// leavesWithin is the time after its retention period within which a post must leave the cluster.
const leavesWithin = 2 * time.Minute

var _ = Describe("A post's guarantee", Ordered, func() {
	var before inventory
	set := func(ctx context.Context) {
		GinkgoHelper()
		install(ctx, chart, tag, append(postRendererArgs(), "--set", "manager.config.retention.leastInCluster=0s")...)
		begin(ctx)
	}

	BeforeAll(func(ctx SpecContext) {
		createNamespaces(ctx)
		before = listInventory(ctx)
		DeferCleanup(cleanUp)
		followLogs()
		set(ctx)
	})

	DescribeTable("is suspended with its team, and kept after the suspension",
		func(ctx SpecContext, reason, name string, brake func(ctx context.Context, on bool), long bool) {
			if long && short {
				Skip("omitted from the short form: a kubelet takes a minute to update a file in a pod")
			}
			running, team := names(pods(ctx, "manager")), &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "demo"}}
			brake(ctx, true)
			Eventually(condition(ctx, team, &team.Status.Conditions, v1alpha1.ConditionSuspended)).WithContext(ctx).Should(Equal(reason))
			post := postTo(name, v1alpha1.CategoryText, v1alpha1.PlatformX, v1alpha1.PlatformThreads)
			post.Spec.ScheduledAt = v1alpha1.NewTimePtr(time.Now().Add(3 * time.Second))
			Expect(k8s.Create(ctx, post)).To(Succeed())
			Eventually(condition(ctx, post, &post.Status.Conditions, v1alpha1.ConditionReady)).WithContext(ctx).Should(Equal(v1alpha1.ReasonSuspended), "the post is due")
			Expect(shows(ctx, post)).To(HaveEach(0))
			brake(ctx, false)
			Eventually(online(ctx, post)).WithContext(ctx).Should(BeTrue())
			Expect(shows(ctx, post)).To(HaveEach(1))
			Expect(names(pods(ctx, "manager"))).To(Equal(running), "no pod is started for it")
		},
		Entry("of its team", v1alpha1.ReasonSuspendedBySpec, "held-by-its-team", func(ctx context.Context, on bool) {
			changeTeam(ctx, map[string]any{"suspend": on})
		}, false),
		Entry("of all teams, which is a value of the chart", v1alpha1.ReasonSuspendedByConfiguration, "held-with-all", func(ctx context.Context, on bool) {
			value := "suspend=false"
			if on {
				value = "suspend=true"
			}
			helm(ctx, slices.Concat([]string{"upgrade", release, chart, "--reset-then-reuse-values", "--set", value, "--wait"}, postRendererArgs())...)
		}, true),
	)

	It("is kept when kubectl recreates the post", func(ctx SpecContext) {
		post := postTo("made-anew", v1alpha1.CategoryText, v1alpha1.PlatformX, v1alpha1.PlatformThreads)
		first, mended := post.DeepCopy(), post.DeepCopy()
		mended.Spec.Targets[0].Caption = "applied made-anew, mended"
		kubectl(ctx, "apply", "-f", manifest(post))
		Eventually(online(ctx, post)).WithContext(ctx).Should(BeTrue())
		for _, way := range []struct {
			name  string
			again *v1alpha1.Post
			does  func(file string)
		}{
			{"with the typo corrected", mended, func(file string) { kubectl(ctx, "replace", "--force", "-f", file) }},
			{"after it was deleted", first, func(file string) {
				kubectl(ctx, "delete", "-f", file)
				kubectl(ctx, "apply", "-f", file)
			}},
		} {
			By(way.name)
			earlier := post.DeepCopy()
			way.does(manifest(way.again))
			Eventually(condition(ctx, post, &post.Status.Conditions, v1alpha1.ConditionAdopted)).WithContext(ctx).Should(Equal(v1alpha1.ReasonAlreadyPublished))
			Eventually(online(ctx, post)).WithContext(ctx).Should(BeTrue())
			Expect(post.UID).NotTo(Equal(earlier.UID), "the post is another object")
			Expect(post.Status.Targets[0].ExternalURL).To(Equal(earlier.Status.Targets[0].ExternalURL))
			Expect(shows(ctx, first)).To(HaveEach(1))
			Expect(shows(ctx, mended)).To(Equal([]int{0, 1}), "published targets are not published again with a new text")
		}
	})

	It("is readable by REST after the post has left the cluster", func(ctx SpecContext) {
		api := newAPI(ctx)
		post := postTo("by-rest", v1alpha1.CategoryText, v1alpha1.PlatformX)
		request := map[string]any{"category": "text", "targets": []any{
			map[string]any{"connection_id": "demo-x", "caption": post.Spec.Targets[0].Caption},
		}}
		post.Name = api.post(ctx, "/posts", "leaves-the-cluster", request).id
		Eventually(func() string { return api.get(ctx, "/posts/"+post.Name).status }).WithContext(ctx).Should(Equal("posted"))
		Expect(shows(ctx, post)).To(HaveEach(1))
		whole, listed := api.get(ctx, "/posts/"+post.Name).body, api.get(ctx, "/posts?status=posted").body
		Expect(listed).To(ContainSubstring(post.Name))

		changeTeam(ctx, map[string]any{"retention": map[string]any{"inCluster": "0s"}})
		begun := time.Now()
		Eventually(gone(ctx, post)).WithContext(ctx).WithTimeout(leavesWithin).Should(BeTrue())
		logf("a post whose time was over has left after %s", time.Since(begun).Round(100*time.Millisecond))
		Expect(api.get(ctx, "/posts/"+post.Name).body).To(Equal(whole))
		Expect(api.get(ctx, "/posts?status=posted").body).To(Equal(listed))
		again := api.post(ctx, "/posts", "leaves-the-cluster", request)
		Expect(again.id).To(Equal(post.Name))
		Expect(again.header.Get("Idempotency-Replayed")).To(Equal("true"))
		Expect(shows(ctx, post)).To(HaveEach(1))
		applied := postTo("made-anew", v1alpha1.CategoryText)
		Expect(gone(ctx, applied)()).To(BeFalse(), "an applied post stays, because Git would recreate it")
		changeTeam(ctx, map[string]any{"retention": nil})
	})

	DescribeTable("is kept through an uninstall and a reinstallation",
		func(ctx SpecContext, name string, trouble func(ctx context.Context)) {
			w := newWork(ctx, demo, name)
			trouble(ctx)
			begun := time.Now()
			helm(ctx, "uninstall", release, "--wait")
			logf("uninstalled, %s, in %s", name, time.Since(begun).Round(100*time.Millisecond))
			w.expectReleased(ctx)
			Eventually(func() []string { return listInventory(ctx).without(before).withoutKept(ctx).remaining() }).WithContext(ctx).
				WithTimeout(time.Minute).WithPolling(2*time.Second).Should(BeEmpty(), "no Job, account or role stays")
			set(ctx)
			w.goesOn(ctx)
		},
		Entry("while all is well", "all-well", func(context.Context) {}),
		Entry("with the manager scaled to 0", "no-manager", func(ctx context.Context) { scale(ctx, "manager", 0) }),
		Entry("with the bucket deleted, and recreated afterwards", "no-bucket", func(ctx context.Context) { scale(ctx, "store", 0) }),
	)

	It("does not block a team namespace's deletion after the bucket is lost, and ends with an event", func(ctx SpecContext) {
		openOutlet(ctx)
		w := newWork(ctx, outlet, "outlet")
		scale(ctx, "store", 0)
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: outlet}}
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)).To(Succeed())
		ended := namespace.DeepCopy()
		begun := time.Now()
		Expect(k8s.Delete(ctx, namespace)).To(Succeed())
		Eventually(func() (types.UID, error) {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
			return namespace.UID, client.IgnoreNotFound(err)
		}).WithContext(ctx).ShouldNot(Equal(ended.UID), "the Team recreates the deleted namespace")
		logf("a namespace has ended, with the bucket gone, in %s", time.Since(begun).Round(100*time.Millisecond))
		for _, reason := range []string{v1alpha1.ReasonOutcomeAbandoned, v1alpha1.ReasonRecordAbandoned, v1alpha1.ReasonFileAbandoned} {
			Eventually(namespacesWith(ctx, reason)).WithContext(ctx).Should(ContainElement(outlet), reason)
		}
		Expect(texts(ctx, v1alpha1.PlatformX, outletAccounts[v1alpha1.PlatformX])).To(ConsistOf(
			w.published.Spec.Targets[0].Caption, w.half.Spec.Targets[0].Caption, w.doubtful.Spec.Targets[0].Caption,
		), "deleted posts are not published")

		Expect(k8s.Delete(ctx, w.team)).To(Succeed())
		deleteNamespace(ctx, outlet)
		Expect(gone(ctx, w.team)()).To(BeFalse(), "the records of its posts wait for the bucket")
		scale(ctx, "store", 1)
		Eventually(gone(ctx, w.team)).WithContext(ctx).Should(BeTrue())
	})
})
