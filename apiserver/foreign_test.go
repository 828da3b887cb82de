// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Teams are isolated: no team can read, name, use or guess another's objects. Every operation is called with every kind
// of id from another team, and must respond as it does to an id that does not exist: byte for byte, except for the id.
var _ = Describe("What belongs to another team", Ordered, func() {
	// Ids of the same length that do not exist.
	const (
		noConnection = "nobody-has-it-x"
		noMedia      = "nobody-has-it-m"
		noPost       = "pnobodyhasthisid0000000000"
	)
	var (
		mine, theirs *team
		theirPost    post
		theirDraft   post
		// theirMedia has been uploaded; for theirAddress, only the upload URL has been issued.
		theirMedia, theirAddress string
	)
	BeforeAll(func(ctx context.Context) {
		mine, theirs = newTeam(ctx), newTeam(ctx)
		mine.connect(ctx, "mine-x", v1alpha1.PlatformX)
		mine.connect(ctx, "mine-threads", v1alpha1.PlatformThreads)
		theirs.connect(ctx, "theirs-only-x", v1alpha1.PlatformX)
		theirPost = theirs.create(ctx, text("theirs-only-x", "their secret plan", inAnHour()))
		theirDraft = theirs.create(ctx, text("theirs-only-x", "their secret draft", draft))
		theirMedia = theirs.uploaded(ctx, "secret.png", "image/png", sample("picture.png"))
		theirAddress = as[uploadBody](theirs.call(ctx, "POST", "/media/upload-url", upload("secret-later.png", "image/png", 10))).Data.MediaID
	})

	// alike sends a request twice, with the other team's id and with one that does not exist, and expects the same
	// response.
	alike := func(ctx context.Context, method, path, body, foreign, nobodys string, status int) {
		GinkgoHelper()
		Expect(foreign).NotTo(BeEmpty())
		with := func(id string) reply {
			return mine.call(ctx, method, strings.ReplaceAll(path, "{id}", id), strings.ReplaceAll(body, "{id}", id))
		}
		theirsAnswer, nobodysAnswer := with(foreign), with(nobodys)
		Expect(theirsAnswer.status).To(Equal(status), theirsAnswer.body)
		Expect(nobodysAnswer.status).To(Equal(status), nobodysAnswer.body)
		without := func(body, id string) string {
			asSent, err := url.PathUnescape(id)
			Expect(err).NotTo(HaveOccurred())
			return strings.ReplaceAll(body, asSent, "{id}")
		}
		Expect(without(theirsAnswer.body, foreign)).To(Equal(without(nobodysAnswer.body, nobodys)))
		for _, secret := range []string{"secret", theirs.namespace, "Account of theirs"} {
			Expect(without(theirsAnswer.body, foreign)).NotTo(ContainSubstring(secret))
		}
		for _, header := range []string{"Content-Type", "Cache-Control", "Location", "ETag"} {
			Expect(theirsAnswer.header.Get(header)).To(Equal(nobodysAnswer.header.Get(header)), header)
		}
	}

	DescribeTable("cannot be distinguished from a missing object: a post", func(ctx context.Context, method string) {
		alike(ctx, method, "/posts/{id}", "", theirPost.ID, noPost, http.StatusNotFound)
		alike(ctx, method, "/posts/{id}", "", theirDraft.ID, noPost, http.StatusNotFound)
		// The name in Kubernetes does not work either.
		alike(ctx, method, "/posts/{id}", "", theirs.namespace+"%2F"+theirPost.ID, "team-12345678%2F"+noPost, http.StatusNotFound)
		Expect(theirs.stored(ctx, theirPost.ID).Spec.Cancelled).To(BeFalse())
		Expect(theirs.stored(ctx, theirDraft.ID).Spec.Cancelled).To(BeFalse())
	},
		Entry("read", "GET"),
		Entry("cancelled", "DELETE"),
	)

	// Bodies with {id} in place of an id. The caller's own targets are mine-x, so only the foreign id can be invalid.
	connectionBodies := func() map[string]string {
		bodies := map[string]string{}
		for when, more := range map[string]string{"now": "", "later": inAnHour(), "draft": draft} {
			bodies["text "+when] = text("{id}", "a", more)
			bodies["second of two "+when] = `{"category":"text","targets":[{"connection_id":"mine-x","caption":"a"},{"connection_id":"{id}","caption":"a"}]` + more + `}`
			bodies["tree "+when] = treeOf(2, more, "mine-threads", "{id}")
			bodies["image "+when] = `{"category":"image","media_ids":["` + noMedia + `"],"targets":[{"connection_id":"{id}","caption":"a"}]` + more + `}`
			bodies["video "+when] = `{"category":"video","media_id":"` + noMedia + `","targets":[{"connection_id":"{id}","caption":"a"}]` + more + `}`
		}
		return bodies
	}
	It("cannot be distinguished from a missing object: a connection", func(ctx context.Context) {
		for what, body := range connectionBodies() {
			By(what)
			alike(ctx, "POST", "/posts", body, "theirs-only-x", noConnection, http.StatusBadRequest)
		}
		alike(ctx, "POST", "/posts", text("{id}", "a"), theirs.namespace+"/theirs-only-x", "team-12345678/"+noConnection, http.StatusBadRequest)
	})

	It("cannot be distinguished from a missing object: a media file", func(ctx context.Context) {
		for when, more := range map[string]string{"now": "", "later": inAnHour(), "draft": draft} {
			for what, body := range map[string]string{
				"image":      `{"category":"image","media_ids":["{id}"],"targets":[{"connection_id":"mine-x","caption":"a"}]` + more + `}`,
				"video":      `{"category":"video","media_id":"{id}","targets":[{"connection_id":"mine-x","caption":"a"}]` + more + `}`,
				"first card": `{"category":"tree","targets":[{"connection_id":"mine-x"}],"tree_cards":[{"media_ids":["{id}"]},{"caption":"b"}]` + more + `}`,
				"last card":  `{"category":"tree","targets":[{"connection_id":"mine-x"}],"tree_cards":[{"caption":"a"},{"caption":"b","media_ids":["{id}"]}]` + more + `}`,
			} {
				By(what + " " + when)
				alike(ctx, "POST", "/posts", body, theirMedia, noMedia, http.StatusBadRequest)
				alike(ctx, "POST", "/posts", body, theirAddress, noMedia, http.StatusBadRequest)
			}
		}
		used := fmt.Sprintf(`{"category":"image","media_ids":[%q],"targets":[{"connection_id":"theirs-only-x","caption":"a"}]%s}`, theirMedia, inAnHour())
		theirs.create(ctx, used)
	})

	It("is not listed", func(ctx context.Context) {
		own := mine.create(ctx, text("mine-x", "my own", inAnHour()))
		Expect(as[listBody](mine.call(ctx, "GET", "/connections", "")).ids()).To(ConsistOf("mine-x", "mine-threads"))
		Expect(as[listBody](theirs.call(ctx, "GET", "/connections", "")).ids()).To(ConsistOf("theirs-only-x"))
		for _, query := range []string{"", "?platform=x", "?status=scheduled", "?limit=100&page=1"} {
			list := as[listBody](mine.call(ctx, "GET", "/posts"+query, ""))
			Expect(list.ids()).To(Equal([]string{own.ID}), query)
			Expect(list.Pagination.Total).To(Equal(1), "lists do not count other teams' posts")
		}
		Expect(as[listBody](mine.call(ctx, "GET", "/posts?status=draft", "")).Pagination.Total).To(BeZero())
		Expect(mine.call(ctx, "DELETE", "/posts/"+own.ID, "").status).To(Equal(http.StatusOK))
	})

	It("may have the same name", func(ctx context.Context) {
		for _, t := range []*team{mine, theirs} {
			t.connect(ctx, "main", v1alpha1.PlatformX)
		}
		made := map[*team]post{}
		keyed := func(t *team, body string) reply {
			GinkgoHelper()
			return do(ctx, instance, "POST", base+"/posts", body, map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": "launch"})
		}
		for _, t := range []*team{mine, theirs} {
			r := keyed(t, text("main", "of "+t.namespace))
			Expect(r.status).To(Equal(http.StatusCreated), r.body)
			made[t] = as[postBody](r).Data
		}
		Expect(made[mine].ID).NotTo(Equal(made[theirs].ID), "equal Idempotency-Keys of two teams must yield independent ids")
		for _, t := range []*team{mine, theirs} {
			Expect(t.stored(ctx, made[t].ID).Spec.Targets[0].Caption).To(Equal("of " + t.namespace))
			Expect(as[postBody](keyed(t, text("main", "of "+t.namespace))).Data.ID).To(Equal(made[t].ID))
		}
		media := map[*team]string{}
		for _, t := range []*team{mine, theirs} {
			r := do(ctx, instance, "POST", base+"/media/upload-url", upload("a.png", "image/png", 10),
				map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": "launch"})
			Expect(r.status).To(Equal(http.StatusCreated), r.body)
			media[t] = as[uploadBody](r).Data.MediaID
		}
		Expect(media[mine]).NotTo(Equal(media[theirs]))
		mine.call(ctx, "GET", "/posts/"+made[theirs].ID, "").mustFail(404, "NOT_FOUND", made[theirs].ID)
	})

	It("has Idempotency-Keys of its own, even if they are equal", func(ctx context.Context) {
		Expect(mine.key.Name).To(Equal(theirs.key.Name))
		Expect(theirs.call(ctx, "GET", "/posts/"+theirPost.ID, "").status).To(Equal(http.StatusOK))
		Expect(mine.call(ctx, "GET", "/posts/"+theirPost.ID, "").status).To(Equal(http.StatusNotFound))
		patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"revoked":true}}`))
		Expect(admin.Patch(ctx, theirs.key, patch)).To(Succeed())
		Eventually(func() int { return theirs.call(ctx, "GET", "/posts", "").status }).Should(Equal(http.StatusUnauthorized))
		Expect(mine.call(ctx, "GET", "/posts", "").status).To(Equal(http.StatusOK), "revoking one team's key leaves the other's")
	})

	It("does not count against this team's plan", func(ctx context.Context) {
		one, other := newTeam(ctx, onStarter), newTeam(ctx, onStarter)
		for _, t := range []*team{one, other} {
			t.connect(ctx, "main", v1alpha1.PlatformX)
		}
		one.create(ctx, treeOf(30, inMarch, "main"))
		one.call(ctx, "POST", "/posts", text("main", "a", inMarch)).mustFail(403, "SUBSCRIPTION_REQUIRED", "30 of March 2199")
		other.create(ctx, treeOf(30, inMarch, "main"))
		Expect(one.usages(ctx)).To(HaveLen(1))
		Expect(other.usages(ctx)).To(HaveExactElements(HaveField("Status.Used", int32(30))))
	})
})
