// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// chart is this checkout's chart.
var chart = filepath.Join(repository, "charts", "herald")

var _ = Describe("An evaluation", Ordered, func() {
	var before inventory

	BeforeAll(func(ctx SpecContext) {
		createNamespaces(ctx)
		before = listInventory(ctx)
		DeferCleanup(cleanUp)
		followLogs()
		install(ctx, chart, tag, "--set", "thumbnails.enabled=true")
		begin(ctx)
		files(ctx)
	})

	It("publishes posts of every category created by another pod through REST", func(ctx SpecContext) {
		memory(ctx, "with no posts")
		v := send(ctx, "from a pod", 20, 2*time.Second, 0).settled(ctx)
		logf("by REST: %s", v)
		expectWhole(v, 20)
		Expect(v.givenUp).To(BeZero())
	})

	It("publishes posts of every category that are applied", func(ctx SpecContext) {
		for category, post := range applied(ctx) {
			Expect(k8s.Create(ctx, post)).To(Succeed(), string(category))
			Eventually(func(g Gomega) {
				g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(post), post)).To(Succeed())
				g.Expect(meta.IsStatusConditionTrue(post.Status.Conditions, v1alpha1.ConditionPublished)).To(BeTrue(), "%s: %+v", category, post.Status)
			}).WithContext(ctx).Should(Succeed())
		}
	})

	It("decodes images and videos in separate processes, in a restricted pod", func(ctx SpecContext) { decodes(ctx) })

	It("lets a user sign in by a link, connect an account, publish an image on the pages and authorize an agent", func(ctx SpecContext) { inPages(ctx) })

	It("reports an invalid applied post immediately", func(ctx SpecContext) {
		post := postTo("too-long", v1alpha1.CategoryText, v1alpha1.PlatformX)
		post.Spec.Targets[0].Caption = fmt.Sprintf("%0300d", 0)
		Eventually(func() error { return k8s.Create(ctx, post.DeepCopy(), client.DryRunAll) }).WithContext(ctx).
			Should(MatchError(ContainSubstring("280")), "the webhook is called")
	})

	DescribeTable("denies the internet-facing process all Secrets, and both processes the cluster's",
		func(ctx SpecContext, process, namespace string, allowed bool) {
			review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
				User:   "system:serviceaccount:" + home + ":" + release + "-" + process,
				Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + home, "system:authenticated"},
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Namespace: namespace, Verb: "get", Resource: "secrets", Name: "demo-x-credentials",
				},
			}}
			Expect(k8s.Create(ctx, review)).To(Succeed())
			Expect(review.Status.Allowed).To(Equal(allowed), review.Status.Reason)
		},
		Entry("the manager needs the tokens of a team", "manager", demo, true),
		Entry("the manager reads no Secret elsewhere", "manager", "kube-system", false),
		Entry("nor Secrets of its own namespace", "manager", home, false),
		Entry("the apiserver reads no token", "apiserver", demo, false),
		Entry("nor other Secrets", "apiserver", home, false),
	)

	It("loses nothing and publishes nothing twice when pods are killed and the network is cut", func(ctx SpecContext) {
		posts := 240
		if short {
			posts = 40
		}
		// This is long enough for each failure to happen once. Scheduled posts need a lead: requests are retried during
		// a partition, and a post cannot be scheduled for the past.
		const over = 100 * time.Second
		now, later := send(ctx, "at once", posts, over, 0), send(ctx, "scheduled", posts/4, over, 2*time.Minute)
		trouble(ctx, now)
		for _, sent := range []*traffic{now, later} {
			v := sent.settled(ctx)
			logf("%s, with pods killed and the network cut: %s", sent.marker, v)
			expectWhole(v, sent.posts)
			Expect(v.askable).To(BeZero(), "given up although the lookup is possible")
		}
	})

	// The pace is the maximum rate for a TikTok account, whose calls are made one after another.
	posts, pace := 1000, 300*time.Millisecond
	if short {
		posts = 100
	}
	over := time.Duration(posts) * pace

	It("publishes at the pace of the restart spec below", func(ctx SpecContext) {
		sent := send(ctx, "undisturbed", posts/4, over/4, scheduledAhead)
		pass(ctx, scheduledAhead+over/5)
		memory(ctx, fmt.Sprintf("with %d posts a minute", time.Minute/pace))
		v := sent.settled(ctx)
		logf("undisturbed: %s", v)
		expectWhole(v, posts/4)
		Expect(v.givenUp).To(BeZero())
	})

	It("loses nothing and publishes nothing twice while everything is restarted every 10 s", func(ctx SpecContext) {
		sent := send(ctx, "through restarts", posts, over, scheduledAhead)
		n := restart(ctx, sent)
		v := sent.settled(ctx)
		logf("%d roll-outs, one every %s: %s", n, restartEvery, v)
		expectWhole(v, posts)
		Expect(v.givenUp).To(BeZero(), "a roll-out does not interrupt calls")
	})

	It("leaves only CRDs and data after an uninstall", func(ctx SpecContext) {
		helm(ctx, "uninstall", release, "--wait")
		Eventually(func() []string { return listInventory(ctx).without(before).remaining() }).
			WithContext(ctx).WithTimeout(time.Minute).WithPolling(2 * time.Second).Should(BeEmpty())
	})

	It("continues with the data after a reinstallation", func(ctx SpecContext) {
		install(ctx, chart, tag)
		var old v1alpha1.Post
		Expect(k8s.Get(ctx, client.ObjectKey{Namespace: demo, Name: "text"}, &old)).To(Succeed())
		Expect(old.Status.Phase).To(Equal(v1alpha1.PhasePosted))
		begin(ctx)
		expectWhole(send(ctx, "after all", 5, time.Second, 0).settled(ctx), 5)
	})
})

// postTo returns a post for platforms. An evaluation's connections have the platforms' names.
func postTo(name string, category v1alpha1.Category, on ...v1alpha1.Platform) *v1alpha1.Post {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Namespace: demo, Name: name}, Spec: v1alpha1.PostSpec{Category: category}}
	for _, platform := range on {
		target := v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: "demo-" + string(platform)}}
		if category != v1alpha1.CategoryTree {
			target.Caption = "applied " + name
		}
		if platform == v1alpha1.PlatformYouTube {
			target.YouTube = &v1alpha1.YouTubeOptions{Title: "Applied"}
		}
		post.Spec.Targets = append(post.Spec.Targets, target)
	}
	return post
}

// applied creates posts of every category for every platform that accepts it, with previously uploaded files.
func applied(ctx context.Context) map[v1alpha1.Category]*v1alpha1.Post {
	GinkgoHelper()
	var uploaded v1alpha1.MediaList
	Expect(k8s.List(ctx, &uploaded, client.InNamespace(demo))).To(Succeed())
	file := func(of v1alpha1.MimeType) v1alpha1.MediaReference {
		for i := range uploaded.Items {
			if uploaded.Items[i].Spec.MimeType == of && uploaded.Items[i].Status.Phase == v1alpha1.MediaUploaded {
				return v1alpha1.MediaReference{Name: uploaded.Items[i].Name}
			}
		}
		Fail("no file of type " + string(of) + " is there")
		return v1alpha1.MediaReference{}
	}
	text := postTo("text", v1alpha1.CategoryText, v1alpha1.PlatformX, v1alpha1.PlatformThreads, v1alpha1.PlatformFacebook)
	picture := postTo("image", v1alpha1.CategoryImage,
		v1alpha1.PlatformX, v1alpha1.PlatformInstagram, v1alpha1.PlatformThreads, v1alpha1.PlatformTikTok, v1alpha1.PlatformFacebook)
	picture.Spec.Image = &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{file(v1alpha1.MimeJPEG)}}
	film := postTo("video", v1alpha1.CategoryVideo,
		v1alpha1.PlatformX, v1alpha1.PlatformInstagram, v1alpha1.PlatformThreads, v1alpha1.PlatformTikTok, v1alpha1.PlatformYouTube)
	film.Spec.Video = &v1alpha1.VideoContent{MediaRef: file(v1alpha1.MimeMP4)}
	tree := postTo("tree", v1alpha1.CategoryTree, v1alpha1.PlatformX, v1alpha1.PlatformThreads)
	tree.Spec.Tree = &v1alpha1.TreeContent{Cards: []v1alpha1.TreeCard{{Caption: "applied first"}, {Caption: "applied second"}}}
	return map[v1alpha1.Category]*v1alpha1.Post{
		v1alpha1.CategoryText: text, v1alpha1.CategoryImage: picture, v1alpha1.CategoryVideo: film, v1alpha1.CategoryTree: tree,
	}
}

// cleanUp returns the cluster to its initial state, without data.
func cleanUp(ctx SpecContext) {
	// Without a manager, nothing removes Herald's finalizers.
	deleteData(ctx)
	command(ctx, repository, filepath.Join(repository, "bin", "helm"), "uninstall", release, "--namespace", home, "--ignore-not-found", "--wait")
	for _, namespace := range []string{home, clients} {
		deleteNamespace(ctx, namespace)
	}
	deleteDefinitions(ctx)
}
