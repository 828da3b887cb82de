// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/plan"
)

// Quotas returns the cache options for resource quotas: those that Herald creates and SetupWithManager watches.
func Quotas() cache.ByObject { return named(v1alpha1.BudgetQuota) }

// wantedQuota ignores changes to the usage, which every post causes, unless the quota becomes counted or uncounted.
var wantedQuota = predicate.Funcs{
	UpdateFunc: func(e event.UpdateEvent) bool {
		before, isBefore := e.ObjectOld.(*corev1.ResourceQuota)
		after, isAfter := e.ObjectNew.(*corev1.ResourceQuota)
		return !isBefore || !isAfter || !equality.Semantic.DeepEqual(before.Spec, after.Spec) ||
			!maps.Equal(before.Labels, after.Labels) || !equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			uncounted(before) != uncounted(after)
	},
}

// ensureQuota creates or corrects the ResourceQuota of a team's namespace, and triggers a recount if Kubernetes has not
// counted it. Like the role bindings, the quota is deleted with the release.
func (r *Reconciler) ensureQuota(ctx context.Context, team *v1alpha1.Team) error {
	owners, err := r.owners(ctx, r.Names.ClusterRole)
	if err != nil {
		return err
	}
	budget := plan.BudgetOf(team)
	wanted := quotaOf(team.Spec.Namespace, &budget, owners)
	var found corev1.ResourceQuota
	err = r.APIReader.Get(ctx, client.ObjectKeyFromObject(wanted), &found)
	switch {
	case apierrors.IsNotFound(err):
		err = r.Client.Create(ctx, wanted)
	case err != nil:
	case equality.Semantic.DeepEqual(found.Spec, wanted.Spec) && found.Labels[managedBy] == managedByHerald &&
		equality.Semantic.DeepEqual(found.OwnerReferences, owners):
		err = r.recount(ctx, team.Name, &found)
	default:
		found.Spec, found.OwnerReferences = wanted.Spec, owners
		metav1.SetMetaDataLabel(&found.ObjectMeta, managedBy, managedByHerald)
		if err = r.Client.Update(ctx, &found); err == nil {
			err = r.recount(ctx, team.Name, &found)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot limit namespace %q by ResourceQuota %s: %w", wanted.Namespace, wanted.Name, err)
	}
	return nil
}

// quotaOf returns the ResourceQuota that limits users' objects in a team's namespace. It does not limit objects that
// Herald creates, so that a refusal cannot lose a post. Their number is limited by other means: Usages and the Secrets
// of renewed tokens and uploads by the connections, keys and posts that they belong to, and Events by their TTL of an
// hour.
func quotaOf(namespace string, budget *plan.Budget, owners []metav1.OwnerReference) *corev1.ResourceQuota {
	hard := corev1.ResourceList{}
	for kind, most := range map[string]int64{
		"posts": budget.Posts, "media": budget.Files, "apikeys": budget.Keys, "connections": budget.Connections, "oauthgrants": budget.Grants,
		"postschedules": budget.Schedules, "notifiers": budget.Notifiers,
	} {
		hard[quota.ResourceNameOf(kind)] = *resource.NewQuantity(most, resource.DecimalSI)
	}
	return &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: namespace, Name: v1alpha1.BudgetQuota, Labels: map[string]string{managedBy: managedByHerald}, OwnerReferences: owners,
		},
		Spec: corev1.ResourceQuotaSpec{Hard: hard},
	}
}

// used returns the team's usage of its budget as last counted by the apiserver, because the manager does not cache
// finished posts. It returns nil if the usage is unknown.
func (r *Reconciler) used(ctx context.Context, team *v1alpha1.Team) []v1alpha1.BudgetUse {
	stored, err := r.Quota.Read(ctx, team.Spec.Namespace, plan.BudgetCounter())
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot read the team's budget usage; retrying later")
		return nil
	}
	budget := plan.BudgetOf(team)
	uses := make([]v1alpha1.BudgetUse, len(stored.Status.Budget))
	for i, u := range stored.Status.Budget {
		uses[i] = budget.Use(u.Item, u.Used)
	}
	return uses
}
