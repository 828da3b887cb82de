// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"net/http"
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

	It("answers a repeated request with the post's present state", func(ctx SpecContext) {
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

	It("holds across replicas and restarts, for posts and for uploads", func(ctx SpecContext) {
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
		Expect(t.media(ctx, upload).Annotations).To(HaveKey(v1alpha1.UploadUntilAnnotation), "the manager waits for the later address too")
		through(restarted, "/posts", "k", text("acme-x", "twice")).mustFail(409, "CONFLICT", first)
		stored := &v1alpha1.PostList{}
		Expect(admin.List(ctx, stored, client.InNamespace(t.namespace))).To(Succeed())
		Expect(stored.Items).To(HaveLen(1))
	})
})
