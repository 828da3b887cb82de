// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package deletions_test

import (
	"context"
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/chart"
	"github.com/herald-social/herald/test/managertest"
	"github.com/herald-social/herald/test/suite"
)

// foreign is another program's finalizer.
const foreign = "example.com/kept"

// hook creates the manager's Deployment and what the chart's uninstall hook creates before its Job. It returns the
// arguments of the Job's command.
func hook(ctx context.Context) (args []string) {
	GinkgoHelper()
	objects := suite.Must(chart.Render(ctx, "herald", managertest.Namespace, "minimal-values.yaml"))
	for _, object := range objects {
		ofHook := object.GetLabels()["app.kubernetes.io/component"] == "release"
		switch {
		case ofHook && object.GetKind() == "Job":
			Expect(admin.Create(ctx, object.DeepCopy(), client.DryRunAll)).To(Succeed())
			var job batchv1.Job
			Expect(runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &job)).To(Succeed())
			args = job.Spec.Template.Spec.Containers[0].Args[1:]
		case ofHook, object.GetKind() == "Deployment" && object.GetName() == "herald-manager":
			Expect(admin.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner("helm"), client.ForceOwnership)).To(Succeed())
		}
	}
	Expect(args).NotTo(BeEmpty())
	return args
}

// released runs `herald release` until it exits, and returns its exit code and log.
func released(args ...string) (code int, log string) {
	GinkgoHelper()
	p := installation.Release(GinkgoT(), args...)
	return p.ExitCode(), p.Log()
}

func finalizers(ctx context.Context, object client.Object) func() ([]string, error) {
	return func() ([]string, error) {
		err := admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		return object.GetFinalizers(), err
	}
}

// work contains a team's unfinished objects when its manager stops.
type work struct {
	*team

	itself                             *v1alpha1.Team
	posted, scheduled, doubtful, draft *v1alpha1.Post
	file                               *v1alpha1.Media
}

// newWork creates the posts and waits until the manager has nothing left to do for now.
func newWork(ctx context.Context) *work {
	GinkgoHelper()
	w := &work{team: newTeam(ctx)}
	w.itself = &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
	w.posted = w.post(ctx, "out")
	Eventually(phase(ctx, w.posted)).Should(Equal(v1alpha1.PhasePosted))
	// The API creates it with the finalizer.
	w.scheduled = w.post(ctx, "later", at(time.Hour), func(p *v1alpha1.Post) { p.Finalizers = []string{v1alpha1.DeliveryFinalizer, foreign} })
	Eventually(phase(ctx, w.scheduled)).Should(Equal(v1alpha1.PhaseScheduled))
	w.draft = w.post(ctx, "kept", func(p *v1alpha1.Post) { p.Spec.Draft, p.Finalizers = true, []string{v1alpha1.DeliveryFinalizer} })
	w.file = &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: w.name, Name: "awaited"}, Spec: v1alpha1.MediaSpec{
		FileName: "a.png", MimeType: v1alpha1.MimePNG, SizeBytes: 10,
	}}
	Expect(admin.Create(ctx, w.file)).To(Succeed())
	w.doubtful = w.inDoubt(ctx)
	for object, finalizer := range w.protected() {
		Eventually(finalizers(ctx, object)).Should(ContainElement(finalizer), "%T %s", object, object.GetName())
	}
	return w
}

// protected returns the objects that Herald's finalizers protect while it is running.
func (w *work) protected() map[client.Object]string {
	return map[client.Object]string{
		w.posted: v1alpha1.DeliveryFinalizer, w.doubtful: v1alpha1.DeliveryFinalizer, w.file: v1alpha1.MediaFileFinalizer,
		w.itself: v1alpha1.RecordsFinalizer,
	}
}

// published returns the number of the account's posts on the platform.
func (w *work) published(ctx context.Context) int {
	GinkgoHelper()
	found := suite.Must(platform.Posts(ctx, "x", w.account.ID))
	return len(found)
}

var _ = Describe("Objects left behind by Herald", func() {
	It("cannot be deleted without a manager until they are released", func(ctx SpecContext) {
		args := hook(ctx)
		w := newWork(ctx)
		code, log := released("--install-namespace=" + managertest.Namespace)
		Expect(code).To(Equal(1), log)
		Expect(log).To(ContainSubstring("a manager is running: test holds the lease herald-system/herald-manager; scale its Deployment to 0"))
		manager.Stop()

		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.name}}
		Expect(admin.Delete(ctx, w.itself)).To(Succeed())
		Expect(admin.Delete(ctx, namespace)).To(Succeed())
		Eventually(func() ([]corev1.NamespaceCondition, error) {
			err := admin.Get(ctx, client.ObjectKeyFromObject(namespace), namespace)
			return namespace.Status.Conditions, err
		}).Should(ContainElement(And(
			HaveField("Type", corev1.NamespaceFinalizersRemaining), HaveField("Status", corev1.ConditionTrue),
			HaveField("Message", ContainSubstring(v1alpha1.DeliveryFinalizer)),
		)), "no controller removes the finalizers")

		code, log = released("--install-namespace="+managertest.Namespace, "--dry-run")
		Expect(code).To(Equal(0), log)
		Expect(log).To(ContainSubstring("would remove social.herald.dev/delivery from Post %s/%s\n", w.name, w.posted.Name))
		Expect(log).To(ContainSubstring("would remove social.herald.dev/records from Team %s\n", w.name))
		Expect(finalizers(ctx, w.posted)()).To(ContainElement(v1alpha1.DeliveryFinalizer), "a dry run changes nothing")

		code, log = released(args...)
		Expect(code).To(Equal(0), log)
		Expect(finalizers(ctx, w.scheduled)()).To(Equal([]string{foreign}), "only the foreign finalizer remains")
		Expect(admin.Patch(ctx, w.scheduled, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))).To(Succeed())
		Eventually(gone(ctx, namespace)).Should(BeTrue(), "%+v", namespace.Status.Conditions)
		Expect(gone(ctx, w.itself)()).To(BeTrue())
		Expect(w.published(ctx)).To(Equal(2), "the published and the unknown post")

		code, log = released(args...)
		Expect(code).To(Equal(0), log)
		Expect(log).To(ContainSubstring("no object has a finalizer of Herald"), "the removal is idempotent")
	})

	It("continue after reinstallation, without duplicate posts", func(ctx SpecContext) {
		args := hook(ctx)
		w, elsewhere := newWork(ctx), newWork(ctx)
		manager.Stop()
		code, log := released("--install-namespace="+managertest.Namespace, "--namespace="+w.name)
		Expect(code).To(Equal(0), log)
		Expect(finalizers(ctx, w.itself)()).To(BeEmpty())
		Expect(finalizers(ctx, elsewhere.itself)()).To(ContainElement(v1alpha1.RecordsFinalizer), "another team was not named")
		Expect(finalizers(ctx, elsewhere.posted)()).To(ContainElement(v1alpha1.DeliveryFinalizer))
		code, log = released(args...)
		Expect(code).To(Equal(0), log)
		for _, object := range []client.Object{w.posted, w.doubtful, w.draft, w.file, w.itself, elsewhere.posted} {
			Expect(finalizers(ctx, object)()).To(BeEmpty(), "%T %s", object, object.GetName())
		}
		Expect(w.draft.Spec.Targets[0].Caption).To(Equal("kept"), "objects stay as they are")

		startManager()
		for _, object := range []client.Object{w.doubtful, w.file, w.itself} {
			Eventually(finalizers(ctx, object)).Should(ContainElement(w.protected()[object]), "%T %s", object, object.GetName())
		}
		now := []byte(`{"spec":{"scheduledAt":null}}`)
		Expect(admin.Patch(ctx, w.scheduled, client.RawPatch(types.MergePatchType, now))).To(Succeed())
		Eventually(phase(ctx, w.scheduled)).Should(Equal(v1alpha1.PhasePosted))
		Expect(finalizers(ctx, w.scheduled)()).To(ConsistOf(v1alpha1.DeliveryFinalizer, foreign))
		Expect(phase(ctx, w.posted)()).To(Equal(v1alpha1.PhasePosted))
		Expect(w.doubtful.Status.Targets[0].Attempt.Outcome).To(BeEmpty(), "the lookup is still open")
		Expect(w.published(ctx)).To(Equal(3), "no post was published twice")
	})
})

var _ = Describe("A deleted post whose record cannot be written", func() {
	It("keeps its finalizer, unless its namespace is deleted or a user accepts the loss", func(ctx SpecContext) {
		const accepted = "--without-records"
		args := hook(ctx)
		Expect(args).To(ContainElement(accepted), "the values that the suite renders have no bucket")
		args = slices.DeleteFunc(args, func(arg string) bool { return arg == accepted })
		t, ending := newTeam(ctx), newTeam(ctx)
		sent, kept, last := t.post(ctx, "out"), t.post(ctx, "stays"), ending.post(ctx, "out too")
		for _, p := range []*v1alpha1.Post{sent, kept, last} {
			Eventually(phase(ctx, p)).Should(Equal(v1alpha1.PhasePosted))
		}
		manager.Stop()
		Expect(admin.Delete(ctx, sent)).To(Succeed())
		Expect(admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ending.name}})).To(Succeed())
		Eventually(func() (*metav1.Time, error) {
			err := admin.Get(ctx, client.ObjectKeyFromObject(last), last)
			return last.DeletionTimestamp, err
		}).ShouldNot(BeNil())

		code, log := released("--install-namespace="+managertest.Namespace, "--dry-run")
		Expect(code).To(Equal(0), log)
		Expect(log).To(ContainSubstring("would not yet remove social.herald.dev/delivery from Post %s/%s\n", t.name, sent.Name))

		code, log = released(args...)
		Expect(code).To(Equal(1), log)
		Expect(log).To(And(
			ContainSubstring("cannot remove the finalizer from Post %s/%s: it is being deleted", t.name, sent.Name),
			ContainSubstring("run this again after "), ContainSubstring(accepted),
			ContainSubstring("1 posts that were being deleted are gone: %s/%s.", ending.name, last.Name),
		))
		Expect(finalizers(ctx, sent)()).To(ContainElement(v1alpha1.DeliveryFinalizer))
		Expect(finalizers(ctx, kept)()).To(BeEmpty(), "a post that is not deleted keeps its record")
		Expect(gone(ctx, last)()).To(BeTrue(), "a namespace ends without a manager and without a bucket")

		code, log = released(append(args, accepted)...)
		Expect(code).To(Equal(0), log)
		Expect(log).To(ContainSubstring("1 posts that were being deleted are gone: %s/%s.", t.name, sent.Name))
		Expect(gone(ctx, sent)()).To(BeTrue())
	})
})

var _ = Describe("A manager that restarts while finalizers are removed", func() {
	It("stops the removal, and continues", func(ctx SpecContext) {
		args := hook(ctx)
		w := newWork(ctx)
		manager.Stop()
		// More than one list page.
		var drafts []*v1alpha1.Post
		for range 60 {
			drafts = append(drafts, w.post(ctx, "kept", func(p *v1alpha1.Post) { p.Spec.Draft, p.Finalizers = true, []string{v1alpha1.DeliveryFinalizer} }))
		}
		held := func() (count int) {
			for _, p := range drafts {
				if found, err := finalizers(ctx, p)(); err == nil && len(found) > 0 {
					count++
				}
			}
			return count
		}
		// The first page of the list takes some seconds.
		process := installation.Release(GinkgoT(), append(args, "--namespace="+w.name, "--rate=10")...)
		Eventually(held).Should(BeNumerically("<", len(drafts)))
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: managertest.Namespace, Name: "herald-manager"}}
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(lease), lease)).To(Succeed())
		lease.Spec.HolderIdentity, lease.Spec.RenewTime = new("another"), new(metav1.NowMicro())
		Expect(admin.Update(ctx, lease)).To(Succeed())

		Expect(process.ExitCode()).To(Equal(3), process.Log())
		Expect(process.Log()).To(And(
			ContainSubstring("stopped: the manager another works again"), ContainSubstring("finalizers removed so far: posts 50, media 0, teams 0"),
			ContainSubstring("scale its Deployment to 0"),
		))
		Expect(held()).To(BeNumerically(">", 0))
		Expect(finalizers(ctx, w.itself)()).To(ContainElement(v1alpha1.RecordsFinalizer), "the removal did not continue")
	})
})

var _ = Describe("The manager stopped by an uninstall", func() {
	It("exits before any finalizer is removed", func(ctx SpecContext) {
		args := hook(ctx)
		w := newWork(ctx)
		manager.Stop()
		var deployment appsv1.Deployment
		Expect(admin.Get(ctx, client.ObjectKey{Namespace: managertest.Namespace, Name: "herald-manager"}, &deployment)).To(Succeed())
		Expect(*deployment.Spec.Replicas).To(BeNumerically(">", 0))
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: managertest.Namespace, Name: "herald-manager-1", Labels: deployment.Spec.Template.Labels},
			Spec:       deployment.Spec.Template.Spec,
		}
		Expect(admin.Create(ctx, pod)).To(Succeed())

		code, log := released(append(args, "--wait=0s")...)
		Expect(code).To(Equal(1), log)
		Expect(log).To(ContainSubstring("pods of Deployment herald-system/herald-manager still run: herald-manager-1; check why"))
		Expect(admin.Get(ctx, client.ObjectKeyFromObject(&deployment), &deployment)).To(Succeed())
		Expect(*deployment.Spec.Replicas).To(BeZero())
		Expect(finalizers(ctx, w.posted)()).To(ContainElement(v1alpha1.DeliveryFinalizer), "its calls may still need a record")

		Expect(admin.Delete(ctx, pod)).To(Succeed())
		code, log = released(args...)
		Expect(code).To(Equal(0), log)
		Expect(finalizers(ctx, w.posted)()).To(BeEmpty())
	})
})
