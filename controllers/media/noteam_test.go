// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/test/envtest"
)

var _ = Describe("A Media in a namespace that no Team owns", func() {
	It("gets no upload address and is not fetched, until a Team owns it", func(ctx SpecContext) {
		upload, fetched := newMedia(homeless, func(*v1alpha1.Media) {}), newMedia(homeless, fromSource(web.URL+"/a.png"))
		state := func(m *v1alpha1.Media) func() (string, error) {
			return func() (string, error) {
				err := k8s.Get(ctx, client.ObjectKeyFromObject(m), m)
				return conditions.Reason(m.Status.Conditions), err
			}
		}
		for _, m := range []*v1alpha1.Media{upload, fetched} {
			Expect(k8s.Create(ctx, m)).To(Succeed())
			Eventually(state(m)).Should(Equal(v1alpha1.ReasonNoTeam))
			Expect(m.Status.Phase).To(Equal(v1alpha1.MediaPending))
			Expect(m.Status.UploadURL).To(BeEmpty())
			Expect(m.Finalizers).To(BeEmpty(), "there is no file to wait for")
			Expect(hasFile(ctx, store.Key(m))).To(MatchError(store.ErrNotFound))
		}

		Expect(passes.Longest()).To(And(BeNumerically(">", 0), BeNumerically("<=", pacing.MediaTimeout)), "a pass has an end")

		team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: homeless}, Spec: v1alpha1.TeamSpec{Namespace: homeless}}
		Expect(envtest.Own(ctx, k8s, team)).To(Succeed())
		Eventually(state(upload)).Should(Equal(v1alpha1.ReasonAwaitingUpload))
		Expect(upload.Status.UploadURL).NotTo(BeEmpty())
		Eventually(state(fetched)).Should(Equal(v1alpha1.ReasonUploaded))

		Expect(k8s.Delete(ctx, team)).To(Succeed())
		Eventually(state(upload)).Should(Equal(v1alpha1.ReasonNoTeam))
		Expect(upload.Status.UploadURL).To(BeEmpty())
		Consistently(state(fetched), 300*time.Millisecond).Should(Equal(v1alpha1.ReasonUploaded), "what is there stays as it is")
	})
})
