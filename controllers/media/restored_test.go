// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/media/store"
)

// restored creates a Media with the spec, labels and annotations of another one, as restoring a backup does.
func restored(ctx context.Context, from *v1alpha1.Media) *v1alpha1.Media {
	GinkgoHelper()
	m := newMedia(from.Namespace, func(m *v1alpha1.Media) {
		m.Spec, m.Labels, m.Annotations, m.Finalizers = from.Spec, from.Labels, from.Annotations, from.Finalizers
	})
	Expect(k8s.Create(ctx, m)).To(Succeed())
	return m
}

// lose removes a Media as if its cluster were lost: its file stays.
func lose(ctx context.Context, m *v1alpha1.Media) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(m), m)).To(Succeed())
		m.Finalizers = nil
		g.Expect(k8s.Update(ctx, m)).To(Succeed())
		g.Expect(k8s.Delete(ctx, m)).To(Succeed())
	}).Should(Succeed())
}

// delete deletes a Media and runs the reconciler until it is gone.
func (d *desk) delete(ctx context.Context, m *v1alpha1.Media) {
	GinkgoHelper()
	Expect(k8s.Delete(ctx, m)).To(Succeed())
	Eventually(func(g Gomega) {
		_, err := d.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(m)})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(apierrors.IsNotFound(k8s.Get(ctx, client.ObjectKeyFromObject(m), m))).To(BeTrue())
		cached := &v1alpha1.Media{}
		g.Expect(apierrors.IsNotFound(d.Client.Get(ctx, client.ObjectKeyFromObject(m), cached))).To(BeTrue())
	}).Should(Succeed())
}

var _ = Describe("a Media restored from a backup", func() {
	It("finds its file, does not request an upload, and protects the file from the sweep", func(ctx SpecContext) {
		d := newDesk(loose())
		original := d.uploaded(ctx, func(m *v1alpha1.Media) { fromTheAPI(m); m.Spec.WhenUnused = v1alpha1.KeepWhenUnused })
		key := store.UIDKey(original)
		Expect(original.Annotations).To(HaveKeyWithValue(v1alpha1.FileAnnotation, key))
		lose(ctx, original)
		copied := restored(ctx, original)
		d.step(ctx, copied, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
		Expect(copied.Status.UploadURL).To(BeEmpty())
		Expect(copied.Status.ETag).To(Equal(original.Status.ETag))
		Expect(copied.Annotations).To(HaveKeyWithValue(v1alpha1.FileAnnotation, key), "the next backup finds it too")

		d.sweepAfter(ctx, 30*24*time.Hour)
		Expect(hasFile(ctx, key)).To(Succeed())
		d.delete(ctx, copied)
		Expect(hasFile(ctx, key)).To(MatchError(store.ErrNotFound))
	})

	It("is uploaded again under its own key if the file is missing", func(ctx SpecContext) {
		d := newDesk(loose())
		original := d.uploaded(ctx, func(*v1alpha1.Media) {})
		old := store.UIDKey(original)
		lose(ctx, original)
		Expect(bucket.Delete(ctx, old)).To(Succeed())
		copied := restored(ctx, original)
		d.step(ctx, copied, is(v1alpha1.MediaPending, v1alpha1.ReasonAwaitingUpload))
		Expect(copied.Status.UploadURL).To(ContainSubstring(store.UIDKey(copied)), "an annotation cannot select another file's key")
		Expect(bucket.Put(ctx, store.UIDKey(copied), "image/png", 10, strings.NewReader("9876543210"))).Error().NotTo(HaveOccurred())
		d.clock.Step(time.Minute)
		d.step(ctx, copied, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
		Expect(store.Restored(copied)).To(BeFalse())
	})

	It("shares its file with a copy, and the last of them deletes it", func(ctx SpecContext) {
		d := newDesk(loose())
		original := d.uploaded(ctx, func(*v1alpha1.Media) {})
		key := store.UIDKey(original)
		first := restored(ctx, original)
		second := restored(ctx, original)
		for _, m := range []*v1alpha1.Media{first, second} {
			d.step(ctx, m, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
		}
		d.delete(ctx, first)
		Expect(hasFile(ctx, key)).To(Succeed(), "the original has it")
		d.delete(ctx, original)
		Expect(hasFile(ctx, key)).To(Succeed(), "the copy uses the same file")
		d.delete(ctx, second)
		Expect(hasFile(ctx, key)).To(MatchError(store.ErrNotFound))
	})

	It("does not cause another Media's file to be deleted when it is rejected", func(ctx SpecContext) {
		d := newDesk(loose())
		original := d.uploaded(ctx, func(*v1alpha1.Media) {})
		wrong := created(ctx, byHand, func(m *v1alpha1.Media) { m.Annotations, m.Spec.SizeBytes = original.Annotations, 11 })
		d.step(ctx, wrong, is(v1alpha1.MediaRejected, "SizeMismatch"))
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(hasFile(ctx, store.UIDKey(original))).To(Succeed())
	})

	It("does not touch another cluster's files in a shared bucket, except its own", func(ctx SpecContext) {
		d := newDesk(loose())
		d.setMayDelete(func(context.Context) error { return &installation.ForeignBucketError{Cluster: "first", Own: "second"} })
		orphan, lost, own := d.uploaded(ctx, func(*v1alpha1.Media) {}), d.uploaded(ctx, func(*v1alpha1.Media) {}), d.uploaded(ctx, func(*v1alpha1.Media) {})
		lose(ctx, orphan)
		lose(ctx, lost)
		copied := restored(ctx, lost)
		d.step(ctx, copied, is(v1alpha1.MediaUploaded, v1alpha1.ReasonUploaded))
		d.sweepAfter(ctx, 30*24*time.Hour)
		d.delete(ctx, copied)
		d.delete(ctx, own)
		Expect(hasFile(ctx, store.UIDKey(orphan))).To(Succeed())
		Expect(hasFile(ctx, store.UIDKey(lost))).To(Succeed())
		Expect(hasFile(ctx, store.UIDKey(own))).To(MatchError(store.ErrNotFound))

		By("sweeping them after an administrator took over the bucket")
		d.setMayDelete(func(context.Context) error { return nil })
		Expect(d.sweep(ctx)).To(Succeed())
		Expect(hasFile(ctx, store.UIDKey(orphan))).To(MatchError(store.ErrNotFound))
		Expect(hasFile(ctx, store.UIDKey(lost))).To(MatchError(store.ErrNotFound))
	})

	It("may be restored a week after its namespace was recreated", func(ctx SpecContext) {
		d := newDesk(loose())
		m := d.uploaded(ctx, func(*v1alpha1.Media) {})
		lose(ctx, m)
		namespace := &corev1.Namespace{}
		Expect(k8s.Get(ctx, client.ObjectKey{Name: byHand}, namespace)).To(Succeed())
		before := map[string]time.Time{string(m.UID): namespace.CreationTimestamp.Add(-time.Hour)}
		d.clock.SetTime(namespace.CreationTimestamp.Add(restoreWithin - time.Second))
		Expect(d.removeOrphans(ctx, byHand, before)).To(Succeed())
		Expect(hasFile(ctx, store.UIDKey(m))).To(Succeed())
		d.clock.Step(time.Second)
		Expect(d.removeOrphans(ctx, byHand, before)).To(Succeed())
		Expect(hasFile(ctx, store.UIDKey(m))).To(MatchError(store.ErrNotFound))
	})
})

// TestAwaitsRestore checks which files without a Media are kept for a restore.
func TestAwaitsRestore(t *testing.T) {
	created := time.Date(2026, 11, 23, 9, 0, 0, 0, time.UTC)
	for _, row := range []struct {
		name        string
		stored, now time.Time
		want        bool
	}{
		{"older than its namespace, which is new", created.Add(-time.Hour), created.Add(time.Hour), true},
		{"the namespace was created a week ago", created.Add(-time.Hour), created.Add(restoreWithin), false},
		{"stored later: its Media was deleted here", created.Add(time.Hour), created.Add(48 * time.Hour), false},
	} {
		if got := awaitsRestore(row.stored, created, row.now); got != row.want {
			t.Errorf("%s: %v", row.name, got)
		}
	}
	if awaitsRestore(created, time.Time{}, created.Add(time.Hour)) {
		t.Error("a deleted namespace must not wait")
	}
}
