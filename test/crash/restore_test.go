// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/rollback"
)

// The times at which posts are due between the backup and the loss: the backup is taken before publishedIn, and the
// manager is killed at killedIn. A slower run fails with a message.
const (
	publishedIn = 40 * time.Second
	killedIn    = 70 * time.Second
)

// drilled are the posts of a restore drill, all to X.
type drilled struct {
	// before is published before the backup, and since after it.
	before, since *sent
	// cut is a post whose call was interrupted. asked means that the loss interrupted it: it has no record, and a user
	// must resolve it. Otherwise, it was interrupted before the backup.
	cut   *sent
	asked bool
	// later is scheduled for the next day, and draft is never promoted.
	later, draft *sent
}

// newDrilled creates the posts, and waits until a backup would contain all of them. The next post to be published is
// created last, to leave as much time as possible for the backup.
func newDrilled(ctx context.Context, tm *team) *drilled {
	GinkgoHelper()
	d := &drilled{
		before: tm.apply(ctx, aPicture, "before the backup", time.Time{}, false),
		later:  tm.apply(ctx, aText, "later", time.Now().Add(24*time.Hour), false),
		draft:  tm.apply(ctx, aPicture, "a draft", time.Time{}, true),
	}
	d.is(ctx, d.before, v1alpha1.PhasePosted)
	d.waitForRecord(ctx, tm, d.before)
	d.since = tm.apply(ctx, aText, "since the backup", time.Now().Add(publishedIn), false)
	for _, p := range []*sent{d.since, d.later} {
		d.is(ctx, p, v1alpha1.PhaseScheduled)
	}
	d.is(ctx, d.draft, v1alpha1.PhaseDraft)
	return d
}

// apply creates a post to X from a minimal manifest, as a user does; if at is zero, it is due now.
func (t *team) apply(ctx context.Context, k *kind, words string, at time.Time, draft bool) *sent {
	n := serial.Add(1)
	p := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", n), Namespace: t.namespace}}
	p.Spec.Draft = draft
	if !at.IsZero() {
		p.Spec.ScheduledAt = v1alpha1.NewTimePtr(at)
	}
	p.Spec.Targets = []v1alpha1.PostTarget{{ConnectionRef: v1alpha1.LocalReference{Name: string(v1alpha1.PlatformX)}}}
	k.fill(p, fmt.Sprintf("%s %d", words, n))
	create(ctx, p)
	return &sent{Post: p, kind: k}
}

// is expects that a post reaches a phase.
func (d *drilled) is(ctx context.Context, p *sent, phase v1alpha1.PostPhase) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		var now v1alpha1.Post
		g.Expect(k8s.Get(ctx, client.ObjectKeyFromObject(p.Post), &now)).To(Succeed())
		g.Expect(now.Status.Phase).To(Equal(phase), "%s: %+v", p.Spec.Targets[0].Caption, now.Status)
	}).Should(Succeed())
}

// waitForRecord waits until the post's record is in the bucket.
func (d *drilled) waitForRecord(ctx context.Context, tm *team, p *sent) {
	GinkgoHelper()
	Eventually(func(g Gomega) {
		shelfOf(tm).record(ctx, g, p.Name)
	}).Should(Succeed())
}

// backedUp checks that the backup was taken before the next post was published.
func (d *drilled) backedUp() {
	GinkgoHelper()
	Expect(time.Now()).To(BeTemporally("<", d.since.Spec.ScheduledAt.Time), "the backup took too long, and may contain later publications")
}

// goesOn publishes the posts that are missing from the backup.
func (d *drilled) goesOn(ctx context.Context, tm *team) {
	GinkgoHelper()
	d.is(ctx, d.since, v1alpha1.PhasePosted)
	d.waitForRecord(ctx, tm, d.since)
}

// whole publishes the remaining posts, and expects that each post was published exactly once.
func (d *drilled) whole(ctx context.Context, tm *team) {
	GinkgoHelper()
	d.is(ctx, d.later, v1alpha1.PhaseScheduled)
	d.is(ctx, d.draft, v1alpha1.PhaseDraft)
	soon := v1alpha1.NewTime(time.Now().Add(3 * time.Second)).String()
	patchPost(ctx, d.later, map[string]any{"scheduledAt": soon})
	patchPost(ctx, d.draft, map[string]any{"scheduledAt": soon, "draft": false})
	fresh := tm.apply(ctx, aPicture, "after the restore", time.Time{}, false)
	for _, p := range []*sent{d.before, d.since, d.later, d.draft, fresh} {
		d.is(ctx, p, v1alpha1.PhasePosted)
	}
	d.is(ctx, d.cut, map[bool]v1alpha1.PostPhase{true: v1alpha1.PhaseFailed, false: v1alpha1.PhasePosted}[d.asked])
	shown := tm.shown(ctx)
	now, err := tm.all(ctx)
	Expect(err).NotTo(HaveOccurred())
	for _, p := range []*sent{d.before, d.since, d.cut, d.later, d.draft, fresh} {
		is, words := now[p.Name], p.parts(tm, 0)[0]
		Expect(shown[words.words]).To(HaveLen(1), "%q is published once", words.text)
		if p == d.cut && d.asked {
			Expect(is.Status.Targets[0].Reason).To(Equal(v1alpha1.ReasonOutcomeUnknown), "the user gets a question")
			continue
		}
		Expect(is.Status.Targets[0].ExternalID).To(Equal(shown[words.words][0].ID))
		Expect(is.Status.Targets[0].ExternalURL).NotTo(BeEmpty(), "the status has the URL of %q", words.text)
		Expect(hashesOf(shown[words.words][0])).To(Equal(words.files), "with its file")
	}
	Expect(meta.IsStatusConditionTrue(now[d.since.Name].Status.Conditions, v1alpha1.ConditionAdopted)).To(BeTrue(), "the message mentions the earlier publication")
}

func patchPost(ctx context.Context, p *sent, spec map[string]any) {
	GinkgoHelper()
	patch, err := json.Marshal(map[string]any{"spec": spec})
	Expect(err).NotTo(HaveOccurred())
	Eventually(func() error { return k8s.Patch(ctx, p.DeepCopy(), client.RawPatch(types.MergePatchType, patch)) }).Should(Succeed())
}

// manifests returns a team's objects as a backup restores them: without status, UIDs and other fields that the API
// server sets.
func manifests(ctx context.Context, namespace string) (out []client.Object) {
	GinkgoHelper()
	var home corev1.Namespace
	Expect(k8s.Get(ctx, client.ObjectKey{Name: namespace}, &home)).To(Succeed())
	var owner v1alpha1.Team
	Expect(k8s.Get(ctx, client.ObjectKey{Name: namespace}, &owner)).To(Succeed())
	out = append(out, &home, &owner)
	for _, list := range []client.ObjectList{&corev1.SecretList{}, &v1alpha1.ConnectionList{}, &v1alpha1.MediaList{}, &v1alpha1.PostList{}} {
		Expect(k8s.List(ctx, list, client.InNamespace(namespace))).To(Succeed())
		Expect(meta.EachListItem(list, func(item runtime.Object) error {
			out = append(out, item.(client.Object))
			return nil
		})).To(Succeed())
	}
	for _, object := range out {
		object.SetUID("")
		object.SetResourceVersion("")
		object.SetGeneration(0)
		object.SetCreationTimestamp(metav1.Time{})
		object.SetManagedFields(nil)
		object.SetOwnerReferences(nil)
	}
	return out
}

// dataOf returns etcd's data directory.
func dataOf(etcd *server) string {
	for i, arg := range etcd.argv {
		if folder, ok := strings.CutPrefix(arg, "--data-dir="); ok {
			return folder
		}
		if arg == "--data-dir" {
			return etcd.argv[i+1]
		}
	}
	Fail("etcd was started without a folder for its data: " + fmt.Sprint(etcd.argv))
	return ""
}

// replaceControlPlane stops the control plane, changes its data, and starts it again.
func replaceControlPlane(ctx context.Context, change func(data string)) {
	GinkgoHelper()
	apiServer.kill()
	etcd.kill()
	change(dataOf(etcd))
	etcd.launch()
	apiServer.again(ctx)
}

var _ = Describe("A restore drill", Serial, func() {
	var m *process
	var tm *team
	BeforeEach(func(ctx SpecContext) {
		m = startManager()
		tm = newTeam(ctx)
	})
	AfterEach(func() { m.kill() })

	It("publishes nothing twice and loses nothing when an etcd snapshot is restored", func(ctx SpecContext) {
		d := newDrilled(ctx, tm)
		d.cut, d.asked = tm.apply(ctx, aText, "cut off", time.Now().Add(killedIn), false), true
		d.is(ctx, d.cut, v1alpha1.PhaseScheduled)
		snapshot := filepath.Join(GinkgoT().TempDir(), "etcd")
		replaceControlPlane(ctx, func(data string) {
			Expect(os.CopyFS(snapshot, os.DirFS(data))).To(Succeed())
			d.backedUp()
		})
		// Restart the manager, so it counts immediately: it counts once a minute, and a real restore takes longer than
		// that.
		m.kill()
		var counted int64
		Eventually(func(g Gomega) { counted = d.count(ctx, g).Number }).Should(Succeed())
		m = startManager()
		d.goesOn(ctx, tm)
		Expect(time.Now()).To(BeTemporally("<", d.cut.Spec.ScheduledAt.Time), "the restore took too long, and the call cannot be cut off")
		killed := points.once(post.PointAfterAnswer, func() { m.kill() })
		d.waitForCount(ctx, tm, func(g Gomega, bucket rollback.Count) { g.Expect(bucket.Number).To(BeNumerically(">", counted)) })
		Eventually(killed).Should(BeClosed())
		replaceControlPlane(ctx, func(data string) {
			Expect(os.RemoveAll(data)).To(Succeed())
			Expect(os.CopyFS(data, os.DirFS(snapshot))).To(Succeed())
		})
		m = startManager()
		// The bucket is written last: objects created after that do not predate the rollback.
		d.waitForCount(ctx, tm, func(g Gomega, bucket rollback.Count) {
			g.Expect(bucket.LastRollback).NotTo(BeNil(), "the manager notices the restore")
			g.Expect(time.Since(bucket.LastRollback.DetectedAt)).To(BeNumerically(">", time.Second), "Kubernetes stores whole seconds")
		})
		d.whole(ctx, tm)
	})

	It("publishes nothing twice and loses nothing when manifests are applied to a new cluster", func(ctx SpecContext) {
		d := newDrilled(ctx, tm)
		before := clusterOf(ctx)
		killed := points.once(post.PointAfterAnswer, func() { m.kill() })
		d.cut = tm.apply(ctx, aText, "cut off", time.Time{}, false)
		Eventually(killed).Should(BeClosed())
		backup := manifests(ctx, tm.namespace)
		d.backedUp()
		m = startManager()
		d.goesOn(ctx, tm)
		d.is(ctx, d.cut, v1alpha1.PhasePosted)
		d.waitForRecord(ctx, tm, d.cut)
		m.kill()
		replaceControlPlane(ctx, func(data string) { Expect(os.RemoveAll(data)).To(Succeed()) })
		_, err := envtest.InstallCRDs(kubernetes, envtest.CRDInstallOptions{Paths: []string{definitions}})
		Expect(err).NotTo(HaveOccurred())
		create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "herald-system"}})
		for _, object := range backup {
			create(ctx, object)
		}
		m = withTakeover(before).start()
		d.whole(ctx, tm)
		Expect(clusterOf(ctx)).NotTo(Equal(before))
		Eventually(func(g Gomega) {
			data, _, err := shelfOf(tm).bucket.ReadDocument(ctx, installation.Key, "", 1<<10)
			g.Expect(err).NotTo(HaveOccurred())
			var marker installation.Marker
			g.Expect(json.Unmarshal(data, &marker)).To(Succeed())
			g.Expect(marker.Cluster).To(Equal(clusterOf(ctx)), "the bucket belongs to the new cluster")
		}).Should(Succeed())
	})
})

// count returns the cluster's count. The managers' kubeconfig has no namespace.
func (d *drilled) count(ctx context.Context, g Gomega) (count rollback.Count) {
	var lease coordinationv1.Lease
	g.Expect(k8s.Get(ctx, client.ObjectKey{Namespace: metav1.NamespaceDefault, Name: "herald-clock"}, &lease)).To(Succeed())
	g.Expect(json.Unmarshal([]byte(lease.Annotations[rollback.Annotation]), &count)).To(Succeed())
	return count
}

// waitForCount waits until the bucket contains a matching count. A count that a killed manager has not written is lost
// with the cluster.
func (d *drilled) waitForCount(ctx context.Context, tm *team, wanted func(g Gomega, bucket rollback.Count)) {
	GinkgoHelper()
	key := rollback.Key(clusterOf(ctx), types.NamespacedName{Namespace: metav1.NamespaceDefault, Name: "herald-clock"})
	Eventually(func(g Gomega) {
		data, _, err := shelfOf(tm).bucket.ReadDocument(ctx, key, "", 1<<10)
		g.Expect(err).NotTo(HaveOccurred())
		var count rollback.Count
		g.Expect(json.Unmarshal(data, &count)).To(Succeed())
		wanted(g, count)
	}).Should(Succeed())
}

// clusterOf returns the cluster's identity.
func clusterOf(ctx context.Context) string {
	GinkgoHelper()
	var system corev1.Namespace
	Eventually(func() error { return k8s.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, &system) }).Should(Succeed())
	return string(system.UID)
}

// withTakeover returns this version with managers that take over another cluster's bucket.
func withTakeover(from string) *version {
	GinkgoHelper()
	config, err := os.ReadFile(inFolder(present.configuration))
	Expect(err).NotTo(HaveOccurred())
	text := strings.Replace(string(config), "\nmedia:\n", "\nmedia:\n  takeOverFrom: "+from+"\n", 1)
	Expect(text).To(ContainSubstring(from))
	v := &version{name: "this version replaces another cluster", program: present.program, configuration: "takeover.yaml"}
	v.next = present
	Expect(os.WriteFile(inFolder(v.configuration), []byte(text), 0o600)).To(Succeed())
	return v
}
