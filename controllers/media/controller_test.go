// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/suite"
)

// refusing is a source that fails with an error.
type refusing fetch.DownloadError

func (p *refusing) Get(context.Context, string, fetch.Expected, func(context.Context, int64, io.Reader) error) error {
	return (*fetch.DownloadError)(p)
}

var _ = Describe("a Media applied to a cluster with a manager", func() {
	It("offers an upload URL, detects the upload, and is deleted with its file", func(ctx SpecContext) {
		m := created(ctx, managed)
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload)(g, m)
			g.Expect(meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReconciling)).To(BeTrue())
			g.Expect(m.Status.UploadURL).NotTo(BeEmpty())
		}).Should(Succeed())
		req := suite.Must(http.NewRequestWithContext(ctx, http.MethodPut, m.Status.UploadURL, strings.NewReader("0123456789")))
		req.Header.Set("Content-Type", "image/png")
		response, err := new(http.Client).Do(req)
		Expect(err).NotTo(HaveOccurred())
		Expect(response.Body.Close()).To(Succeed())
		Expect(response.StatusCode).To(Equal(http.StatusOK))
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded)(g, m)
			g.Expect(m.Status.UploadURL).To(BeEmpty())
			g.Expect(m.Status.UploadURLExpiresAt).To(BeNil())
			g.Expect(m.Status.UnusedSince).NotTo(BeNil())
		}).Should(Succeed())
		Expect(k8s.Delete(ctx, m)).To(Succeed())
		Eventually(func() bool { return apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)) }).Should(BeTrue())
		Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
	})

	It("gets a thumbnail for lists, and is Uploaded even if that fails", func(ctx SpecContext) {
		d := newDesk(loose())
		var made []string
		d.MakeSmall = func(_ context.Context, m *v1alpha1.Media) error {
			made = append(made, m.Name+" "+m.Status.ETag)
			return errors.New("this is no picture")
		}
		m := d.uploaded(ctx, func(*v1alpha1.Media) {})
		Expect(made).To(Equal([]string{m.Name + " " + m.Status.ETag}))
	})

	It("is fetched from its source", func(ctx SpecContext) {
		m := created(ctx, managed, fromSource(web.URL+"/a.png"))
		Eventually(func(g Gomega) {
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded)(g, m)
		}).Should(Succeed())
		content := suite.Must(io.ReadAll(io.NewSectionReader(bucket.ReaderAt(ctx, store.Key(m), m.Status.ETag, 10), 0, 10)))
		Expect(string(content)).To(Equal("0123456789"))
		Expect(m.Status.SizeBytes).To(BeEquivalentTo(10))
	})
})

var _ = Describe("a pending file", func() {
	It("expires after the API's upload URL and the grace period", func(ctx SpecContext) {
		d := newDesk(loose())
		m := created(ctx, byHand, fromTheAPI)
		d.step(ctx, m, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
		Expect(m.Status.UploadURL).To(BeEmpty(), "its client has an address already")
		d.clock.Step(v1alpha1.UploadURLLifetime + uploadGrace + time.Minute)
		d.step(ctx, m, is(v1alpha1.MediaExpired, v1alpha1.ReasonUploadExpired))
		Expect(meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue())

		By("deleting a file that arrives too late")
		put(ctx, m, "0123456789")
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
	})

	It("leaves no parts in the store when it expires or is deleted", func(ctx SpecContext) {
		large := func(m *v1alpha1.Media) {
			fromTheAPI(m)
			m.Spec.FileName, m.Spec.MimeType, m.Spec.SizeBytes = "a.mp4", v1alpha1.MimeMP4, store.PartSize+1
		}
		for name, end := range map[string]func(d *desk, m *v1alpha1.Media){
			"expired": func(d *desk, m *v1alpha1.Media) {
				d.clock.Step(v1alpha1.UploadURLLifetime + uploadGrace + time.Minute)
				d.step(ctx, m, is(v1alpha1.MediaExpired, v1alpha1.ReasonUploadExpired))
			},
			"deleted": func(d *desk, m *v1alpha1.Media) {
				Expect(k8s.Delete(ctx, m)).To(Succeed())
				d.removed(ctx, m)
			},
		} {
			d := newDesk(loose())
			m := created(ctx, byHand, large)
			d.step(ctx, m, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
			upload, other := suite.Must(bucket.BeginParts(ctx, store.Key(m), "video/mp4")), store.Key(m)+"0"
			others := suite.Must(bucket.BeginParts(ctx, other, "video/mp4"))
			end(d, m)
			_, _, err := bucket.PresignParts(ctx, store.Key(m), upload, 1)
			Expect(err).To(MatchError(store.ErrNotFound), name)
			_, _, err = bucket.PresignParts(ctx, other, others, 1)
			Expect(err).NotTo(HaveOccurred(), "%s: another file's upload continues", name)
		}
	})

	It("gets a new upload URL before the last one expires", func(ctx SpecContext) {
		d := newDesk(loose())
		m := created(ctx, byHand)
		d.step(ctx, m, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
		soon := v1alpha1.NewTimePtr(d.clock.Now().Add(renewAhead - time.Second))
		m.Status.UploadURLExpiresAt = soon
		Expect(k8s.Status().Update(ctx, m)).To(Succeed())
		d.step(ctx, m, func(g Gomega, m *v1alpha1.Media) {
			g.Expect(m.Status.UploadURLExpiresAt.After(soon.Time)).To(BeTrue())
		})
	})

	It("reports that the store does not respond, and continues when it does", func(ctx SpecContext) {
		d := newDesk(loose())
		verify := d.Verify
		d.Verify = func(context.Context, *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
			return v1alpha1.MediaStatus{}, errors.New("dial tcp 10.0.0.7: connection refused")
		}
		m := created(ctx, byHand, fromTheAPI)
		Eventually(func(g Gomega) {
			_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			g.Expect(err).To(Or(Succeed(), MatchError(ContainSubstring("connection refused"))))
			g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			is(v1alpha1.MediaPending, v1alpha1.ReasonStoreUnavailable)(g, m)
		}).Should(Succeed())
		Expect(meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady).Message).NotTo(ContainSubstring("10.0.0.7"))
		d.Verify = verify
		d.step(ctx, m, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
	})

	It("reports that the installation has no store, and does not block deletions", func(ctx SpecContext) {
		d := newDesk(loose())
		none := store.None()
		d.setStore(none)
		d.Verify = (&probe.Verifier{Store: none, Clock: d.clock}).Verify
		m := created(ctx, byHand, fromTheAPI)
		d.step(ctx, m, is(v1alpha1.MediaPending, v1alpha1.ReasonStoreUnavailable))
		Expect(meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionStalled)).To(BeTrue(), "the store needs an administrator")
		Expect(d.sweepFiles(ctx, nil)).To(Succeed())
		Expect(k8s.Delete(ctx, m)).To(Succeed())
		d.removed(ctx, m)
	})

	It("reports for a verified file that the store was removed, and that it is configured again", func(ctx SpecContext) {
		d := newDesk(loose())
		m, stored := d.uploaded(ctx, fromTheAPI), d.Store
		d.setStore(store.None())
		d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonStoreUnavailable))
		Expect(meta.IsStatusConditionFalse(m.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
		d.setStore(stored)
		d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
		Expect(meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReady)).To(BeTrue())
	})

	It("reports that a file keeps being overwritten, and continues afterwards", func(ctx SpecContext) {
		d := newDesk(loose())
		verify := d.Verify
		d.Verify = func(context.Context, *v1alpha1.Media) (v1alpha1.MediaStatus, error) {
			return v1alpha1.MediaStatus{}, fmt.Errorf("again and again: %w", store.ErrChanged)
		}
		m := created(ctx, byHand, fromTheAPI)
		put(ctx, m, "0123456789")
		d.step(ctx, m, is(v1alpha1.MediaPending, v1alpha1.ReasonBeingOverwritten))
		again, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		Expect(err).NotTo(HaveOccurred(), "the client caused the overwrite")
		Expect(again.RequeueAfter).To(BeNumerically(">", 0))
		Expect(hasFile(ctx, store.Key(m))).To(Succeed())
		d.Verify = verify
		d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
	})

	It("is rejected and deleted if it does not match its declaration, and the reason remains", func(ctx SpecContext) {
		d := newDesk(loose())
		m := created(ctx, byHand, fromTheAPI)
		put(ctx, m, "short")
		d.step(ctx, m, is(v1alpha1.MediaRejected, "SizeMismatch"))
		Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
		d.step(ctx, m, is(v1alpha1.MediaRejected, "SizeMismatch"))
	})
})

var _ = Describe("a source", func() {
	It("that is rejected is not retried", func(ctx SpecContext) {
		d := newDesk(&refusing{Message: "the file is empty", Final: true})
		m := created(ctx, byHand, fromSource("https://empty.example/a.png"))
		d.step(ctx, m, is(v1alpha1.MediaRejected, v1alpha1.ReasonSourceRefused))
		Expect(meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionStalled).Message).
			To(ContainSubstring("https://empty.example/a.png cannot be fetched: the file is empty."))
	})

	It("that does not respond is retried for some time", func(ctx SpecContext) {
		d := newDesk(&refusing{Message: "the server took too long"})
		m := created(ctx, byHand, fromSource("https://slow.example/a.png"))
		d.step(ctx, m, is(v1alpha1.MediaPending, v1alpha1.ReasonFetchFailed))
		Expect(meta.IsStatusConditionTrue(m.Status.Conditions, v1alpha1.ConditionReconciling)).To(BeTrue())
		d.clock.Step(fetchTimeout + time.Minute)
		d.step(ctx, m, is(v1alpha1.MediaRejected, v1alpha1.ReasonFetchFailed))
	})

	It("whose file is already in the store is not fetched again", func(ctx SpecContext) {
		d := newDesk(&refusing{Message: "nobody should ask", Final: true})
		m := created(ctx, byHand, fromSource("https://asked.example/a.png"))
		put(ctx, m, "0123456789")
		d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
	})
})

var _ = Describe("a verified file", func() {
	It("that was overwritten is rejected", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, fromTheAPI)
		put(ctx, m, "9876543210")
		d.clock.Step(v1alpha1.UploadURLLifetime + recheckAfterEnd + 2*time.Second)
		etag := m.Status.ETag
		d.step(ctx, m, is(v1alpha1.MediaRejected, v1alpha1.ReasonFileChanged))
		Expect(m.Status.ETag).To(Equal(etag))
		Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
	})

	It("that was overwritten through a second upload URL is rejected when that URL expires", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, fromTheAPI)
		d.clock.Step(20 * time.Minute)
		again := d.clock.Now().Add(v1alpha1.UploadURLLifetime)
		m.Annotations = map[string]string{v1alpha1.UploadUntilAnnotation: again.Format(time.RFC3339)}
		Expect(k8s.Update(ctx, m)).To(Succeed())
		d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
		put(ctx, m, "9876543210")
		var next ctrl.Result
		Eventually(func(g Gomega) {
			var err error
			next, err = d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(next.RequeueAfter).To(BeNumerically(">", v1alpha1.UploadURLLifetime), "the next check is after the upload URL expired")
		}).Should(Succeed())
		d.clock.Step(next.RequeueAfter)
		d.step(ctx, m, is(v1alpha1.MediaRejected, v1alpha1.ReasonFileChanged))
	})

	It("that was overwritten later is found by the sweep", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, fromTheAPI)
		put(ctx, m, "9876543210")
		Expect(d.sweep(ctx)).To(Succeed())
		d.step(ctx, m, is(v1alpha1.MediaRejected, v1alpha1.ReasonFileChanged))
	})

	It("that is missing is not abandoned, and found again", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, fromTheAPI)
		Expect(bucket.Delete(ctx, store.Key(m))).To(Succeed())
		Expect(d.sweep(ctx)).To(Succeed())
		d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonFileMissing))
		Expect(conditions.IsReady(m.Status.Conditions)).To(BeFalse())
		put(ctx, m, "0123456789")
		Expect(d.sweep(ctx)).To(Succeed())
		d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
		Expect(conditions.IsReady(m.Status.Conditions)).To(BeTrue())
	})
})

func postWith(m *v1alpha1.Media) *v1alpha1.Post {
	return &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: "of-" + m.Name},
		Spec: v1alpha1.PostSpec{
			Category: v1alpha1.CategoryImage, Draft: true,
			Image:   &v1alpha1.ImageContent{MediaRefs: []v1alpha1.MediaReference{{Name: m.Name}}},
			Targets: []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: "x"}}},
		},
	}
}

var _ = Describe("an unused file", func() {
	It("is deleted after a day, with its content; used and kept files remain", func(ctx SpecContext) {
		d := newDesk(loose())
		idle := d.uploaded(ctx, fromTheAPI)
		kept := d.uploaded(ctx, func(m *v1alpha1.Media) { m.Spec.WhenUnused = v1alpha1.KeepWhenUnused })
		used := d.uploaded(ctx, fromTheAPI)
		Expect(used.Status.UnusedSince).NotTo(BeNil())
		post := postWith(used)
		Expect(k8s.Create(ctx, post)).To(Succeed())
		d.step(ctx, used, func(g Gomega, m *v1alpha1.Media) { g.Expect(m.Status.UnusedSince).To(BeNil()) })

		Expect(d.sweep(ctx)).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(idle), idle)).To(Succeed())
		Expect(idle.DeletionTimestamp).To(BeNil(), "its day is not over")

		d.sweepAfter(ctx, d.UnusedAfter+time.Second)
		d.removed(ctx, idle)
		Expect(hasFile(ctx, store.Key(idle))).To(MatchError(store.ErrNotFound))
		for _, m := range []*v1alpha1.Media{kept, used} {
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			Expect(m.DeletionTimestamp).To(BeNil())
			Expect(hasFile(ctx, store.Key(m))).To(Succeed())
		}

		By("counting the day from when the end of its use was detected")
		Expect(k8s.Delete(ctx, post)).To(Succeed())
		Eventually(func() (bool, error) { return d.references.inUse(ctx, used) }).Should(BeFalse())
		d.sweepAfter(ctx, d.UnusedAfter+time.Second)
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(used), used)).To(Succeed())
		Expect(used.DeletionTimestamp).To(BeNil())
		Expect(used.Status.UnusedSince).NotTo(BeNil())
	})

	It("is deleted when the last post that needs it is archived, and not before", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, fromTheAPI)
		first, last := postWith(m), postWith(m)
		last.Name += "-again"
		for _, post := range []*v1alpha1.Post{first, last} {
			Expect(k8s.Create(ctx, post)).To(Succeed())
			post.Status = v1alpha1.PostStatus{Phase: v1alpha1.PhasePosted, Finished: true, FinishedAt: v1alpha1.NewTimePtr(d.clock.Now())}
			Expect(k8s.Status().Update(ctx, post)).To(Succeed())
		}
		d.step(ctx, m, func(g Gomega, m *v1alpha1.Media) { g.Expect(m.Status.UnusedSince).To(BeNil()) })
		stays := func(why string) {
			GinkgoHelper()
			d.sweepAfter(ctx, d.UnusedAfter+time.Second)
			Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
			Expect(m.DeletionTimestamp).To(BeNil(), why)
			Expect(hasFile(ctx, store.Key(m))).To(Succeed())
		}
		stays("two posts that are finished refer to it")
		Expect(k8s.Delete(ctx, first)).To(Succeed())
		stays("one of them is in the cluster")
		Expect(k8s.Delete(ctx, last)).To(Succeed())
		Eventually(func() (bool, error) { return d.references.inUse(ctx, m) }).Should(BeFalse())
		stays("the sweep notices that the file is unused, and starts its day")
		d.sweepAfter(ctx, d.UnusedAfter+time.Second)
		d.removed(ctx, m)
		Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
	})

	It("is deleted in the first sweep after a start, too", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, fromTheAPI)
		d.sweepAfter(ctx, d.UnusedAfter+time.Second)
		Eventually(func() bool {
			err := k8s.Get(ctx, client.ObjectKeyFromObject(m), m)
			return apierrors.IsNotFound(err) || !m.DeletionTimestamp.IsZero()
		}).Should(BeTrue())
	})

	It("is also searched for in posts that the manager does not watch", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, fromTheAPI)
		Expect(k8s.Create(ctx, postWith(m))).To(Succeed())
		Eventually(func() (bool, error) { return d.references.inUse(ctx, m) }).Should(BeTrue())
		found := suite.Must(d.references.referenced(ctx, byHand, map[string]bool{m.Name: true, "other": true}))
		Expect(found).To(Equal(map[string]bool{m.Name: true}))
	})
})

var _ = Describe("files without a Media", func() {
	It("keep no parts of an upload that was never finished", func(ctx SpecContext) {
		d := newDesk(loose())
		d.uploaded(ctx, func(m *v1alpha1.Media) { m.Spec.WhenUnused = v1alpha1.KeepWhenUnused })
		const uid = "/0a1b2c3d-0000-4000-8000-0000000000aa"
		uploads := map[string]string{}
		for _, key := range []string{byHand + uid, "elsewhere" + uid, byHand + "/notes.txt"} {
			uploads[key] = suite.Must(bucket.BeginParts(ctx, key, "video/mp4"))
		}
		waits := func(key string) error {
			_, _, err := bucket.PresignParts(ctx, key, uploads[key], 1)
			return err
		}
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(waits(byHand+uid)).To(Succeed(), "a user may resume the upload for a day")
		d.sweepAfter(ctx, orphanAfter+time.Minute)
		Expect(waits(byHand + uid)).To(MatchError(store.ErrNotFound))
		Expect(waits("elsewhere"+uid)).To(Succeed(), "another installation's")
		Expect(waits(byHand+"/notes.txt")).To(Succeed(), "the file does not belong to Herald")
	})

	It("are deleted if they are old, have the form of Herald's keys, and are in served namespaces", func(ctx SpecContext) {
		d := newDesk(loose())
		d.uploaded(ctx, func(m *v1alpha1.Media) { m.Spec.WhenUnused = v1alpha1.KeepWhenUnused })
		const uid = "/0a1b2c3d-0000-4000-8000-00000000abcd"
		keys := map[string]error{
			byHand + uid: store.ErrNotFound, "elsewhere" + uid: nil, byHand + "/notes.txt": nil, "backup/" + byHand + uid: nil,
		}
		for key := range keys {
			Expect(bucket.Put(ctx, key, "image/png", 1, strings.NewReader("x"))).Error().NotTo(HaveOccurred())
		}
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(hasFile(ctx, byHand+uid)).To(Succeed(), "its Media may be about to be created")
		d.sweepAfter(ctx, orphanAfter+time.Minute)
		for key, want := range keys {
			if want == nil {
				Expect(hasFile(ctx, key)).To(Succeed(), key)
			} else {
				Expect(hasFile(ctx, key)).To(MatchError(want), key)
			}
		}
	})
})

var _ = Describe("files of a team that another installation serves", func() {
	It("remain, because that team's Media are not watched", func(ctx SpecContext) {
		const theirs = "team-of-others"
		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "others"}}
		team.Spec.Namespace = theirs
		team.Spec.Subscription = v1alpha1.Subscription{Plan: v1alpha1.PlanUnlimited, State: v1alpha1.SubscriptionActive}
		Expect(k8s.Create(ctx, team)).To(Succeed())
		DeferCleanup(func(ctx SpecContext) { Expect(k8s.Delete(ctx, team)).To(Succeed()) })
		const key = theirs + "/0a1b2c3d-0000-4000-8000-00000000abcd"
		Expect(bucket.Put(ctx, key, "image/png", 1, strings.NewReader("x"))).Error().NotTo(HaveOccurred())
		d := newDesk(loose())
		d.Namespaces = configv1alpha1.Namespaces{byHand}
		d.sweepAfter(ctx, orphanAfter+time.Minute)
		Expect(hasFile(ctx, key)).To(Succeed())

		By("serving the team")
		d.Namespaces = nil
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(hasFile(ctx, key)).To(MatchError(store.ErrNotFound))
	})
})

var _ = Describe("a Media's renditions and verified copy", func() {
	made := func(ctx context.Context, key string) string {
		GinkgoHelper()
		rendition := store.Derived(key, "0123456789abcdef")
		Expect(bucket.Put(ctx, rendition, "image/jpeg", 1, strings.NewReader("x"))).Error().NotTo(HaveOccurred())
		return rendition
	}
	// copied returns the copy that platforms fetch if a file may be overwritten.
	copied := func(ctx context.Context, m *v1alpha1.Media) string {
		GinkgoHelper()
		key := suite.Must(bucket.Verified(ctx, store.Key(m), m.Status.ETag, true))
		Expect(key).NotTo(Equal(store.Key(m)))
		return key
	}

	It("are deleted with it", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, func(m *v1alpha1.Media) { m.Spec.WhenUnused = v1alpha1.KeepWhenUnused })
		rendition, copied := made(ctx, store.Key(m)), copied(ctx, m)
		d.sweepAfter(ctx, orphanAfter+time.Minute)
		Expect(hasFile(ctx, rendition)).To(Succeed(), "the sweep deletes renditions without Media only")
		Expect(hasFile(ctx, copied)).To(Succeed(), "the sweep deletes copies without Media only")
		Expect(k8s.Delete(ctx, m)).To(Succeed())
		d.removed(ctx, m)
		Expect(hasFile(ctx, rendition)).To(MatchError(store.ErrNotFound))
		Expect(hasFile(ctx, copied)).To(MatchError(store.ErrNotFound))
		Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
	})

	It("are deleted with its file when the file was changed", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, func(m *v1alpha1.Media) { m.Spec.WhenUnused = v1alpha1.KeepWhenUnused })
		rendition, copied := made(ctx, store.Key(m)), copied(ctx, m)
		put(ctx, m, "9876543210")
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		is(v1alpha1.MediaRejected, v1alpha1.ReasonFileChanged)(Default, m)
		Expect(hasFile(ctx, rendition)).To(MatchError(store.ErrNotFound))
		Expect(hasFile(ctx, copied)).To(MatchError(store.ErrNotFound))

		By("arriving late")
		made(ctx, store.Key(m))
		Eventually(func(g Gomega) {
			g.Expect(d.sweep(ctx)).To(Succeed())
			g.Expect(hasFile(ctx, rendition)).To(MatchError(store.ErrNotFound))
		}).Should(Succeed())
	})

	It("are deleted when it does not exist", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, func(m *v1alpha1.Media) { m.Spec.WhenUnused = v1alpha1.KeepWhenUnused })
		gone := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: byHand, UID: "0a1b2c3d-0000-4000-8000-00000000dcba"}, Spec: m.Spec, Status: m.Status}
		put(ctx, gone, "0123456789")
		rendition, copied := made(ctx, store.Key(gone)), copied(ctx, gone)
		Expect(bucket.Delete(ctx, store.Key(gone))).To(Succeed())
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(hasFile(ctx, rendition)).To(Succeed(), "its Media may be about to be created")
		d.sweepAfter(ctx, orphanAfter+time.Minute)
		Expect(hasFile(ctx, rendition)).To(MatchError(store.ErrNotFound))
		Expect(hasFile(ctx, copied)).To(MatchError(store.ErrNotFound))
	})
})
