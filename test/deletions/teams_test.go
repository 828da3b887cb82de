// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package deletions_test

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/test/suite"
)

// launch gives a post the same name as an earlier post.
func launch(p *v1alpha1.Post) { p.Name = "launch" }

// openArchive opens the archive in the bucket.
func openArchive() *archive.Archive {
	GinkgoHelper()
	bucket := suite.Must(store.New(installation.Store))
	return archive.New(bucket)
}

// recordOf returns a Team's record of the launch post.
func (t *team) recordOf(ctx context.Context, owner string) (*record.Record, error) {
	data, err := openArchive().Get(ctx, archive.Team{Namespace: t.name, Name: owner}, "launch")
	if err != nil {
		return nil, err
	}
	return record.Decode(data)
}

// teamNamed returns a Team that owns the namespace.
func (t *team) teamNamed(name string) *v1alpha1.Team {
	return &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.TeamSpec{
		Namespace: t.name, Subscription: v1alpha1.Subscription{Plan: v1alpha1.PlanStarter, State: v1alpha1.SubscriptionActive},
	}}
}

// lose deletes the Team and its namespace without removing the records, as when a cluster is lost: no manager is
// running.
func (t *team) lose(ctx context.Context) {
	GinkgoHelper()
	args := hook(ctx)
	manager.Stop()
	code, log := released(append(args, "--namespace="+t.name)...)
	Expect(code).To(Equal(0), log)
	t.remove(ctx)
	startManager()
}

// remove deletes the Team and its namespace.
func (t *team) remove(ctx context.Context) {
	GinkgoHelper()
	for _, object := range []client.Object{
		&v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: t.name}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.name}},
	} {
		Expect(admin.Delete(ctx, object)).To(Succeed())
		Eventually(gone(ctx, object)).Should(BeTrue(), "%T", object)
	}
}

var _ = DescribeTable("A post with the name of an earlier Team's post, in a namespace of the same name,", func(
	ctx SpecContext, earlier func(*team, context.Context), owner string, out int,
) {
	t := newTeam(ctx)
	first := t.post(ctx, "hello", launch)
	Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhasePosted))
	uid, url := first.UID, first.Status.Targets[0].ExternalURL
	Eventually(func() (*record.Record, error) { return t.recordOf(ctx, t.name) }).Should(HaveField("UID", uid))

	earlier(t, ctx)
	if owner == "" {
		owner = t.name
	}
	t.make(ctx, t.teamNamed(owner))
	second := t.post(ctx, "hello once more", launch) // X rejects a duplicate text.
	Eventually(phase(ctx, second)).Should(Equal(v1alpha1.PhasePosted))
	Expect(second.UID).NotTo(Equal(uid))
	published := suite.Must(platform.Posts(ctx, "x", t.account.ID))
	Expect(published).To(HaveLen(out))
	adopted := meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionAdopted)
	if out == 1 {
		Expect(adopted).NotTo(BeNil())
		Expect(second.Status.Targets[0].ExternalURL).To(Equal(url))
		return
	}
	Expect(adopted).To(BeNil(), "the post belongs to another Team")
	Eventually(func() (*record.Record, error) { return t.recordOf(ctx, owner) }).Should(And(HaveField("UID", second.UID), HaveField("Earlier", BeEmpty())))
},
	Entry("continues from its record if the same Team was recreated after a loss", (*team).lose, "", 1),
	Entry("is published if the Team is a new one without the records", (*team).lose, "another", 2),
	Entry("is published if the Team was deleted with its records", (*team).remove, "", 2),
)

var _ = It("A Team finds its records again after another Team has used its namespace", func(ctx SpecContext) {
	t := newTeam(ctx)
	first := t.post(ctx, "hello", launch)
	Eventually(phase(ctx, first)).Should(Equal(v1alpha1.PhasePosted))
	uid := first.UID
	Eventually(func() (*record.Record, error) { return t.recordOf(ctx, t.name) }).Should(HaveField("UID", uid))
	t.lose(ctx)

	tenant := *t
	tenant.make(ctx, t.teamNamed("guest-of-"+t.name))
	Expect(admin.Delete(ctx, t.teamNamed("guest-of-"+t.name))).To(Succeed())
	Eventually(gone(ctx, t.teamNamed("guest-of-"+t.name))).Should(BeTrue(), "with its own records, of which it has none")
	found := suite.Must(t.recordOf(ctx, t.name))
	Expect(found.UID).To(Equal(uid))
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: t.name}}
	Expect(admin.Delete(ctx, namespace)).To(Succeed())
	Eventually(gone(ctx, namespace)).Should(BeTrue())

	t.make(ctx, t.teamNamed(t.name))
	second := t.post(ctx, "hello once more", launch) // X rejects a duplicate text.
	Eventually(phase(ctx, second)).Should(Equal(v1alpha1.PhasePosted))
	Expect(meta.FindStatusCondition(second.Status.Conditions, v1alpha1.ConditionAdopted)).NotTo(BeNil())
})

var _ = It("An API post deleted before its first reconciliation leaves a record of its request", func(ctx SpecContext) {
	t := newTeam(ctx)
	manager.Stop()
	p := t.post(ctx, "never seen", func(p *v1alpha1.Post) {
		p.Finalizers = []string{v1alpha1.DeliveryFinalizer} // the apiserver creates it like this
		p.Labels = map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginAPI}
		p.Annotations = map[string]string{v1alpha1.RequestAnnotation: "v1:abc", v1alpha1.BornAnnotation: v1alpha1.NewTime(time.Now()).String()}
	})
	Expect(admin.Delete(ctx, p)).To(Succeed())
	Expect(gone(ctx, p)()).To(BeFalse())
	startManager()
	Eventually(gone(ctx, p)).Should(BeTrue())
	request := suite.Must(openArchive().Request(ctx, archive.Team{Namespace: t.name, Name: t.name}, p.Name))
	Expect(request).To(And(HaveField("UID", p.UID), HaveField("Fingerprint", "v1:abc")))
	published := suite.Must(platform.Posts(ctx, "x", t.account.ID))
	Expect(published).To(BeEmpty())
})
