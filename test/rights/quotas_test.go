// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rights_test

import (
	"context"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// bounding returns the ResourceQuota that the manager creates in a namespace, with the edits.
func bounding(namespace string, edits ...func(*corev1.ResourceQuota)) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: v1alpha1.BudgetQuota},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/posts.social.herald.dev": resource.MustParse("1")}},
	}
	for _, edit := range edits {
		edit(q)
	}
	return q
}

var _ = Describe("The teams' ResourceQuotas", Ordered, func() {
	BeforeAll(func(ctx SpecContext) {
		role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "powerful-quotas"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Verbs: []string{"*"}, Resources: []string{"resourcequotas", "resourcequotas/status"}},
		}}
		Expect(admin.Create(ctx, role)).To(Succeed())
		Expect(admin.Create(ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: role.Name},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "powerful"}},
		})).To(Succeed())
		Expect(admin.Create(ctx, bounding(misused))).To(Succeed())
		Expect(admin.Create(ctx, bounding(foreign, func(q *corev1.ResourceQuota) { q.Name = "theirs" }))).To(Succeed())
		Eventually(func() error { return powerful.Create(ctx, bounding(foreign), client.DryRunAll) }).
			Should(MatchError(ContainSubstring("herald-manager-budgets")))
	})

	DescribeTable("the manager", func(ctx SpecContext, attempt func(context.Context) error, words ...string) {
		outcomeIs(attempt(ctx), words...)
	},
		Entry("creates one in a team's namespace, as its controller does", func(ctx context.Context) error {
			return manager.Create(ctx, bounding(ofTeam), client.DryRunAll)
		}, nobody),
		Entry("corrects it", func(ctx context.Context) error {
			return manager.Update(ctx, bounding(misused), client.DryRunAll)
		}, nobody),
		Entry("makes Kubernetes count again, with a limit on a cluster-scoped kind", func(ctx context.Context) error {
			return manager.Update(ctx, bounding(misused, func(q *corev1.ResourceQuota) { q.Spec.Hard["count/teams.social.herald.dev"] = resource.MustParse("0") }), client.DryRunAll)
		}, nobody),
		Entry("lists them, for its cache", func(ctx context.Context) error {
			return manager.List(ctx, &corev1.ResourceQuotaList{}, client.MatchingFields{"metadata.name": v1alpha1.BudgetQuota})
		}, nobody),
		Entry("lists other ResourceQuotas", func(ctx context.Context) error { return manager.List(ctx, &corev1.ResourceQuotaList{}) }, roles),
		Entry("deletes its own", func(ctx context.Context) error { return manager.Delete(ctx, bounding(misused), client.DryRunAll) }, roles),
		Entry("deletes another program's", func(ctx context.Context) error {
			return manager.Delete(ctx, bounding(foreign, func(q *corev1.ResourceQuota) { q.Name = "theirs" }), client.DryRunAll)
		}, roles),
		Entry("creates one outside team namespaces, where it could block all workloads", func(ctx context.Context) error {
			return manager.Create(ctx, bounding(foreign), client.DryRunAll)
		}, policy, "team namespaces"),
		Entry("creates one in kube-system", func(ctx context.Context) error {
			return manager.Create(ctx, bounding("kube-system"), client.DryRunAll)
		}, policy, "team namespaces"),
		Entry("creates one with another name, which would never be deleted", func(ctx context.Context) error {
			return manager.Create(ctx, bounding(ofTeam, func(q *corev1.ResourceQuota) { q.Name = "mine" }), client.DryRunAll)
		}, policy, "can only write the ResourceQuota"),
		Entry("limits another program's objects, which could block a team's workloads", func(ctx context.Context) error {
			return manager.Create(ctx, bounding(ofTeam, func(q *corev1.ResourceQuota) { q.Spec.Hard["pods"] = resource.MustParse("0") }), client.DryRunAll)
		}, policy, "can only limit the number of Herald's own objects"),
		Entry("deletes one, with any roles", func(ctx context.Context) error {
			return powerful.Delete(ctx, bounding(misused), client.DryRunAll)
		}, policy, "cannot delete any"),
		Entry("writes the status outside team namespaces, with any roles", func(ctx context.Context) error {
			return powerful.Status().Update(ctx, bounding(foreign, func(q *corev1.ResourceQuota) { q.Name = "theirs" }),
				&client.SubResourceUpdateOptions{UpdateOptions: client.UpdateOptions{DryRun: []string{metav1.DryRunAll}}})
		}, policy, "can only write the ResourceQuota"),
	)
})
