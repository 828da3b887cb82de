// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"net/http"
	"strings"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

var _ = Describe("An Idempotency-Key", func() {
	var t *team
	BeforeEach(func(ctx SpecContext) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
	})

	keyed := func(ctx context.Context, key, body string) reply {
		GinkgoHelper()
		return do(ctx, instance, "POST", base+"/posts", body, map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": key})
	}

	It("makes one post of many requests, also of those that come at once", func(ctx SpecContext) {
		answers := make([]reply, 8)
		var requests sync.WaitGroup
		for i := range answers {
			requests.Go(func() {
				defer GinkgoRecover()
				answers[i] = keyed(ctx, "launch", text("acme-x", "once"))
			})
		}
		requests.Wait()
		for _, answer := range answers {
			Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
			Expect(as[postBody](answer).Data.ID).To(Equal(as[postBody](answers[0]).Data.ID))
		}
		Expect(as[listBody](t.call(ctx, "GET", "/posts", "")).Pagination.Total).To(Equal(1))
	})

	It("answers a repeated request with the post as it reads now", func(ctx SpecContext) {
		body := text("acme-x", "later", inAnHour())
		first := as[postBody](keyed(ctx, "k", body))
		Expect(t.call(ctx, "DELETE", "/posts/"+first.Data.ID, "").status).To(Equal(http.StatusOK))
		again := keyed(ctx, "k", body)
		Expect(again.status).To(Equal(http.StatusCreated), again.body)
		Expect(again.body).To(ContainSubstring(`"cancelled"`))
		Expect(again.header.Get("Idempotency-Replayed")).To(Equal("true"))
		Expect(again.header.Get("Location")).To(Equal(base + "/posts/" + first.Data.ID))
		again = keyed(ctx, "k", text("acme-x", "another body"))
		Expect(again.status).To(Equal(http.StatusConflict), again.body)
		Expect(again.body).To(And(ContainSubstring(`"CONFLICT"`), ContainSubstring(first.Data.ID)))
	})

	It("tells what is wrong with another body before it says that the key was used", func(ctx SpecContext) {
		Expect(keyed(ctx, "k", text("acme-x", "first")).status).To(Equal(http.StatusCreated))
		keyed(ctx, "k", text("nobody", "hello")).mustFail(400, "VALIDATION_ERROR", "nobody")
		keyed(ctx, "k", text("acme-x", "hello", `,"scheduled_at":"2020-01-01T00:00:00Z"`)).mustFail(400, "VALIDATION_ERROR", "scheduled_at")
		keyed(ctx, "k", text("acme-x", "second")).mustFail(409, "CONFLICT", "another request")
	})

	It("holds over replicas and restarts, for posts and for uploads", func(ctx SpecContext) {
		through := func(to *running, path, key, body string) reply {
			GinkgoHelper()
			return do(ctx, to, "POST", base+path, body, map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": key})
		}
		knows := func(replica *running) *running {
			GinkgoHelper()
			Eventually(func() int {
				return do(ctx, replica, "POST", base+"/posts", "{}", map[string]string{"Authorization": "Bearer " + t.token}).status
			}).Should(Equal(http.StatusBadRequest))
			return replica
		}
		other := knows(start(restricted))
		replicas := []*running{instance, other}
		body, file := text("acme-x", "once", inAnHour()), upload("a.png", "image/png", 9)
		var posts, files [8]reply
		var requests sync.WaitGroup
		for i := range posts {
			requests.Go(func() {
				defer GinkgoRecover()
				posts[i] = through(replicas[i%2], "/posts", "k", body)
				files[i] = through(replicas[i%2], "/media/upload-url", "k", file)
			})
		}
		requests.Wait()
		other.stop()
		restarted := knows(start(restricted))
		defer restarted.stop()
		first, upload := as[postBody](posts[0]).Data.ID, as[uploadBody](files[0]).Data.MediaID
		for _, answer := range append(posts[:], through(restarted, "/posts", "k", body)) {
			Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
			Expect(as[postBody](answer).Data.ID).To(Equal(first))
		}
		for _, answer := range append(files[:], through(restarted, "/media/upload-url", "k", file)) {
			Expect(answer.status).To(Equal(http.StatusCreated), answer.body)
			Expect(as[uploadBody](answer).Data.MediaID).To(Equal(upload))
		}
		through(restarted, "/posts", "k", text("acme-x", "twice")).mustFail(409, "CONFLICT", first)
		stored := &v1alpha1.PostList{}
		Expect(admin.List(ctx, stored, client.InNamespace(t.namespace))).To(Succeed())
		Expect(stored.Items).To(HaveLen(1))
	})

	It("does not remember what was refused", func(ctx SpecContext) {
		t.connect(ctx, "expired-x", v1alpha1.PlatformX)
		keyed(ctx, "k", text("nobody", "hello")).mustFail(400, "VALIDATION_ERROR", "nobody")
		keyed(ctx, "k", text("expired-x", "hello")).mustFail(409, "POSTING_READINESS_RECONNECT_REQUIRED", "expired-x")
		got := keyed(ctx, "k", text("acme-x", "hello"))
		Expect(got.status).To(Equal(http.StatusCreated), got.body)
		keyed(ctx, "k", text("expired-x", "hello")).mustFail(409, "CONFLICT", as[postBody](got).Data.ID)
	})

	It("is free again when somebody deletes the post in Kubernetes, where no record is kept", func(ctx SpecContext) {
		body := text("acme-x", "hello", draft)
		id := as[postBody](keyed(ctx, "k", body)).Data.ID
		post := t.stored(ctx, id)
		post.Finalizers = nil
		Expect(admin.Update(ctx, post)).To(Succeed())
		Expect(admin.Delete(ctx, post)).To(Succeed())
		again := keyed(ctx, "k", body)
		Expect(again.status).To(Equal(http.StatusCreated), again.body)
		Expect(t.stored(ctx, as[postBody](again).Data.ID).UID).NotTo(Equal(post.UID))
	})

	It("refuses a key that it cannot take", func(ctx SpecContext) {
		got := keyed(ctx, strings.Repeat("k", 256), text("acme-x", "hello"))
		Expect(got.status).To(Equal(http.StatusBadRequest), got.body)
		Expect(got.body).To(ContainSubstring("Idempotency-Key"))
	})
})
