// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"net/http"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/test/storetest"
)

// onBoth returns the body of a request for a post to both accounts.
func onBoth(caption string) string {
	return fmt.Sprintf(`{"category":"text","targets":[{"connection_id":"acme-x","caption":%q},{"connection_id":"acme-threads","caption":"and here"}]}`, caption)
}

// finished creates a post and finishes it: it is posted to X and, if failed is true, fails on Threads.
func (t *team) finished(ctx context.Context, caption string, failed bool) string {
	GinkgoHelper()
	id := t.create(ctx, onBoth(caption)).ID
	t.finish(ctx, id, failed)
	return id
}

// finish finishes a post to both accounts.
func (t *team) finish(ctx context.Context, id string, failed bool) {
	GinkgoHelper()
	now := time.Now()
	at := v1alpha1.NewTime(now)
	Expect(setStatus(ctx, t.stored(ctx, id), func(s *v1alpha1.PostStatus) {
		for i, platform := range []v1alpha1.Platform{v1alpha1.PlatformX, v1alpha1.PlatformThreads} {
			entry := claimed(int32(i), now)
			entry.Platform, entry.Phase, entry.Attempt.Outcome = platform, v1alpha1.PhasePosted, v1alpha1.OutcomePosted
			entry.ExternalID, entry.ExternalURL, entry.PostedAt = "17", "https://x.example/17", &at
			if failed && i == 1 {
				entry = claimed(1, now)
				entry.Platform, entry.Phase, entry.Attempt.Outcome = platform, v1alpha1.PhaseFailed, v1alpha1.OutcomeRefused
				entry.Reason, entry.Message = v1alpha1.ReasonRefused, "the platform does not want it"
			}
			s.Targets = append(s.Targets, entry)
		}
		s.Phase, s.Finished, s.FinishedAt, s.FinishedOn = v1alpha1.PhasePosted, true, &at, at.UTC().Format(time.DateOnly)
		if failed {
			s.Phase = v1alpha1.PhaseFailed
		}
	})).To(Succeed())
}

// archive archives finished posts as the manager does: it writes a record and an entry in the lists.
func (t *team) archive(ctx context.Context, ids ...string) {
	GinkgoHelper()
	var entries []lists.Entry
	for _, id := range ids {
		post := t.stored(ctx, id)
		t.record(ctx, post)
		entry := lists.Entry{
			Kind: lists.Kind{Status: posting.Of(post).Phase(), Category: post.Spec.Category},
			Name: id, UID: string(post.UID), DisplayAt: posting.Of(post).DisplayAt(), FinishedAt: post.Status.FinishedAt.Time,
			Title: posting.Of(post).Title(func(i int) v1alpha1.Platform { return post.Status.Targets[i].Platform }),
		}
		for i := range post.Spec.Targets {
			entry.Targets = append(entry.Targets, lists.Target{Platform: post.Status.Targets[i].Platform, Status: posting.Of(post).TargetPhase(i)})
		}
		entries = append(entries, entry)
	}
	Expect(lists.NewWriter(files, clock.RealClock{}).Add(ctx, lists.Team{Namespace: t.namespace, Name: t.resource.Name}, entries)).To(Succeed())
}

// record writes a post's record, as the manager does when the post is finished or deleted.
func (t *team) record(ctx context.Context, post *v1alpha1.Post) {
	GinkgoHelper()
	kept := record.New(post, t.resource.Name, func(string) (v1alpha1.Platform, string, bool) { return "", "", false })
	data, err := kept.Encode()
	Expect(err).NotTo(HaveOccurred())
	Expect(archive.New(files).Put(ctx, archive.Team{Namespace: t.namespace, Name: t.resource.Name}, post.Name, func([]byte) ([]byte, error) { return data, nil })).To(Succeed())
}

// removeArchived deletes posts, as the manager does after archiving them.
func (t *team) removeArchived(ctx context.Context, ids ...string) {
	GinkgoHelper()
	for _, id := range ids {
		post := t.stored(ctx, id)
		post.Finalizers = nil
		Expect(admin.Update(ctx, post)).To(Succeed())
		Expect(client.IgnoreNotFound(admin.Delete(ctx, post))).To(Succeed())
	}
}

// answers returns the API's responses about a team's posts, by path.
func (t *team) answers(ctx context.Context, ids []string) map[string]string {
	GinkgoHelper()
	paths := []string{}
	for _, id := range ids {
		paths = append(paths, "/posts/"+id)
	}
	for _, filter := range []string{"", "&status=posted", "&status=failed", "&status=draft", "&platform=threads", "&platform=x&status=failed", "&platform=tiktok"} {
		for page := 1; page <= 4; page++ {
			paths = append(paths, fmt.Sprintf("/posts?limit=3&page=%d%s", page, filter))
		}
	}
	out := map[string]string{}
	for _, path := range paths {
		r := t.call(ctx, "GET", path, "")
		Expect(r.status).To(Equal(http.StatusOK), "%s: %s", path, r.body)
		out[path] = r.body
	}
	return out
}

var _ = Describe("posts that left the cluster", func() {
	var (
		t   *team
		ids []string
	)
	BeforeEach(func(ctx context.Context) {
		t = newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		ids = nil
		for i := range 7 {
			ids = append(ids, t.finished(ctx, fmt.Sprint("post ", i), i%3 == 0))
		}
		// A draft, which is never archived.
		t.create(ctx, text("acme-x", "later", draft))
		Eventually(func() int {
			return as[listBody](t.call(ctx, "GET", "/posts?status=processing", "")).Pagination.Total
		}).Should(BeZero())
	})

	It("are read and listed as before, byte for byte, at each step of the archival", func(ctx context.Context) {
		before := t.answers(ctx, ids)
		t.archive(ctx, ids[:5]...)
		Expect(t.answers(ctx, ids)).To(Equal(before), "archived, and in the cluster as well")
		t.removeArchived(ctx, ids[:3]...)
		Consistently(func() map[string]string { return t.answers(ctx, ids) }).WithTimeout(2*time.Second).Should(Equal(before), "some posts were removed")
		t.removeArchived(ctx, ids[3:5]...)
		t.archive(ctx, ids[5:]...)
		t.removeArchived(ctx, ids[5:]...)
		Consistently(func() map[string]string { return t.answers(ctx, ids) }).WithTimeout(2*time.Second).Should(Equal(before), "all posts were removed")

		By("requesting them from a server that has just started")
		other := start(restricted)
		defer other.stop()
		for path, body := range before {
			r := do(ctx, other, "GET", base+path, "", map[string]string{"Authorization": "Bearer " + t.token})
			Expect(r.body).To(Equal(body), path)
		}
	})

	It("reject the changes that finished posts reject, and are visible to their team only", func(ctx context.Context) {
		cancel := t.call(ctx, "DELETE", "/posts/"+ids[0], "")
		Expect(cancel.status).To(Equal(http.StatusConflict))
		t.archive(ctx, ids[0])
		t.removeArchived(ctx, ids[0])
		Eventually(func() string { return t.call(ctx, "DELETE", "/posts/"+ids[0], "").body }).Should(Equal(cancel.body))
		Expect(newTeam(ctx).call(ctx, "GET", "/posts/"+ids[0], "").status).To(Equal(http.StatusNotFound))
	})

	It("are answered with 503 and Retry-After by a server that cannot reach the store", func(ctx context.Context) {
		t.archive(ctx, ids[0])
		t.removeArchived(ctx, ids[0])
		t.resource.Status.Archive = &v1alpha1.TeamArchive{Posts: 1, Revision: 1} // as the manager writes it
		Expect(admin.Status().Update(ctx, t.resource)).To(Succeed())
		config := storetest.Start(GinkgoT())
		config.Endpoint = "127.0.0.1:1"
		away, err := store.New(config)
		Expect(err).NotTo(HaveOccurred())
		other := start(restricted, func(c *apiserver.Config) { c.Bucket = away })
		defer other.stop()
		for _, path := range []string{"/posts", "/posts/" + ids[0]} {
			r := do(ctx, other, "GET", base+path, "", map[string]string{"Authorization": "Bearer " + t.token})
			r.mustFail(http.StatusServiceUnavailable, "INTERNAL_ERROR", "try again in half a minute")
			Expect(r.header.Get("Retry-After")).NotTo(BeEmpty())
		}
		r := do(ctx, other, "DELETE", base+"/posts/"+ids[0], "", map[string]string{"Authorization": "Bearer " + t.token})
		r.mustFail(http.StatusServiceUnavailable, "INTERNAL_ERROR", "try again in half a minute")
		r = do(ctx, other, "GET", base+"/posts/"+ids[1], "", map[string]string{"Authorization": "Bearer " + t.token})
		Expect(r.status).To(Equal(http.StatusOK), "posts in the cluster remain readable: %s", r.body)
	})

	It("keep their Idempotency-Key when a user has deleted them in Kubernetes", func(ctx context.Context) {
		send := func() reply {
			return do(ctx, instance, "POST", base+"/posts", onBoth("once"), map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": "archived-key"})
		}
		first := as[postBody](send()).Data.ID
		t.finish(ctx, first, false)
		t.archive(ctx, first)
		t.removeArchived(ctx, first)
		again := send()
		Expect(again.status).To(Equal(http.StatusCreated), again.body)
		Expect(as[postBody](again).Data.ID).To(Equal(first))
		Expect(again.header.Get("Idempotency-Replayed")).To(Equal("true"))
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: first}, &v1alpha1.Post{})).To(MatchError(apierrors.IsNotFound, "the post is not recreated"))
	})

	It("keep it too when they were deleted during publication", func(ctx context.Context) {
		send := func(body string) reply {
			return do(ctx, instance, "POST", base+"/posts", body, map[string]string{"Authorization": "Bearer " + t.token, "Idempotency-Key": "stopped-key"})
		}
		first := as[postBody](send(onBoth("stop it"))).Data.ID
		now := time.Now()
		at := v1alpha1.NewTime(now)
		Expect(setStatus(ctx, t.stored(ctx, first), func(s *v1alpha1.PostStatus) {
			out := claimed(0, now)
			out.Platform, out.Phase, out.State, out.Attempt.Outcome = v1alpha1.PlatformX, v1alpha1.PhasePosted, v1alpha1.TargetPosted, v1alpha1.OutcomePosted
			out.ExternalID, out.PostedAt = "17", &at
			s.Phase, s.Targets = v1alpha1.PhaseProcessing, []v1alpha1.TargetStatus{out}
		})).To(Succeed())
		t.record(ctx, t.stored(ctx, first))
		t.removeArchived(ctx, first)
		again := send(onBoth("stop it"))
		again.mustFail(http.StatusConflict, "CONFLICT", "was deleted while it was being published")
		Expect(again.body).To(ContainSubstring(first))
		send(onBoth("something else")).mustFail(http.StatusConflict, "CONFLICT", "used for another request")
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: t.namespace, Name: first}, &v1alpha1.Post{})).To(MatchError(apierrors.IsNotFound, "a stopped post is not published"))
		Expect(t.call(ctx, "GET", "/posts/"+first, "").status).To(Equal(http.StatusNotFound), "the post never finished")
	})

	It("are not found after their retention, even if the sweep is late", func(ctx context.Context) {
		t.archive(ctx, ids[0])
		t.removeArchived(ctx, ids[0])
		Expect(t.call(ctx, "GET", "/posts/"+ids[0], "").status).To(Equal(http.StatusOK))
		t.resource.Spec.Retention = v1alpha1.TeamRetention{InCluster: &v1alpha1.Duration{}, Archived: &v1alpha1.Duration{}}
		Expect(admin.Update(ctx, t.resource)).To(Succeed())
		Eventually(func() int { return t.call(ctx, "GET", "/posts/"+ids[0], "").status }).Should(Equal(http.StatusNotFound))
	})
})
