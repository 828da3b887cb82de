// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/plan"
)

// +kubebuilder:rbac:groups="",resources=resourcequotas,verbs=get;list;watch,resourceNames=budget.social.herald.dev
// +kubebuilder:rbac:groups=social.herald.dev,resources=usages,verbs=get
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch

// Budgets computes teams' use of their budgets: the apiserver's last count, plus the posts that this process has
// admitted since. It does not include recent admissions by other replicas. Kubernetes' own object count has no such
// gap.
type Budgets struct {
	// Owner returns the team that owns a namespace, or nil.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Unfinished returns the number of unfinished posts in a namespace; Tally counts them.
	Unfinished func(namespace string) int64
	// Quotas reads the teams' ResourceQuotas from a cache.
	Quotas client.Reader
	// Usage reads a team's Usage from the API server.
	Usage func(ctx context.Context, namespace string, counter v1alpha1.UsageSpec) (*v1alpha1.Usage, error)

	admitted admitted
}

// reserve returns an error if the budget has no room for a post, which is new if before is nil. Posts may always
// shrink. An admitted post is counted immediately, except in a dry run; undo reverts that if another check rejects the
// post.
func (b *Budgets) reserve(ctx context.Context, now time.Time, before, post *v1alpha1.Post) (full *field.Error, undo func(), err error) {
	undo = func() {}
	if b == nil {
		return nil, undo, nil
	}
	team, err := b.Owner(ctx, post.Namespace)
	if err != nil || team == nil {
		return nil, undo, err
	}
	budget := plan.BudgetOf(team)
	used, err := b.used(ctx, post.Namespace)
	if err != nil {
		return nil, undo, err
	}
	change := growing{is: posting.Of(post).Footprint(), created: 1, at: now}
	if before != nil {
		change.was, change.created = posting.Of(before).Footprint(), 0
	}
	dry := dryRun(ctx)
	undo = b.admitted.reserve(post.Namespace, post.Name, change, used.countedAt, func(posts, bytes int64) bool {
		used.of[v1alpha1.BudgetPostBytes] += bytes
		if !used.live {
			used.of[v1alpha1.BudgetPosts] += posts
		}
		if lacks := budget.Shortage(team.Name, requirements(before, post, change, used.of)...); lacks != "" {
			full = field.Forbidden(field.NewPath("spec"), lacks)
		}
		return full == nil && !dry
	})
	return full, undo, nil
}

func dryRun(ctx context.Context) bool {
	req, err := admission.RequestFromContext(ctx)
	return err == nil && req.DryRun != nil && *req.DryRun
}

func requirements(before, post *v1alpha1.Post, change growing, used map[v1alpha1.BudgetItem]int64) (needs []plan.Demand) {
	want := func(item v1alpha1.BudgetItem, more int64) {
		needs = append(needs, plan.Demand{Item: item, Used: used[item], More: more})
	}
	if before == nil {
		want(v1alpha1.BudgetPosts, 1)
		want(v1alpha1.BudgetPostBytes, change.is)
		if !post.Spec.Cancelled { // it is finished from the start
			want(v1alpha1.BudgetUnfinishedPosts, 1)
		}
		return needs
	}
	if more := growth(before, post, change.is-change.was); more > 0 {
		want(v1alpha1.BudgetPostBytes, more)
	}
	if before.Spec.Draft && !post.Spec.Draft && !posting.Of(post).Cancelled() {
		want(v1alpha1.BudgetUnfinishedPosts, 0) // it already counts as unfinished
	}
	return needs
}

// cancelAllowance is the number of bytes that a cancel may add to a post without room in the budget, once per post. It
// covers the field and its author, and both again in the annotation of kubectl apply.
const cancelAllowance = 1 << 10

// growth returns the bytes that a change needs in the budget. It is 0 or less if the change does not need any.
func growth(before, post *v1alpha1.Post, more int64) int64 {
	if post.Spec.Cancelled && !posting.Of(before).Cancelled() && more <= cancelAllowance {
		return 0
	}
	return more
}

type budgetUse struct {
	of map[v1alpha1.BudgetItem]int64
	// countedAt is when the apiserver counted. live is true if Kubernetes itself counted the posts, which includes every
	// stored post.
	countedAt time.Time
	live      bool
}

func (b *Budgets) used(ctx context.Context, namespace string) (*budgetUse, error) {
	used := &budgetUse{of: map[v1alpha1.BudgetItem]int64{}}
	stored, err := b.Usage(ctx, namespace, plan.BudgetCounter())
	if err != nil {
		return nil, fmt.Errorf("cannot read the team's budget usage: %w", err)
	}
	for _, u := range stored.Status.Budget {
		used.of[u.Item] = u.Used
	}
	if at := stored.Status.CountedAt; at != nil {
		used.countedAt = at.Time
	}
	var q corev1.ResourceQuota
	err = b.Quotas.Get(ctx, types.NamespacedName{Namespace: namespace, Name: v1alpha1.BudgetQuota}, &q)
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("cannot read Kubernetes' count of the team's objects: %w", err)
	}
	if posts, counted := q.Status.Used[quota.ResourceNameOf("posts")]; counted {
		used.of[v1alpha1.BudgetPosts], used.live = posts.Value(), true
	}
	used.of[v1alpha1.BudgetUnfinishedPosts] = b.Unfinished(namespace)
	return used, nil
}
