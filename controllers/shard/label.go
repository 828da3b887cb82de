// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting/placement"
)

// labelNamespace labels the unfinished posts of a namespace with its team's shard. A move ends once none of them has
// another label. Posts that no team owns get a shard that exists: its holder reports this, and releases them when they are
// deleted.
func (r *Reconciler) labelNamespace(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	namespace := req.Name
	owner, err := r.Owner(ctx, namespace)
	switch {
	case err != nil || !r.Namespaces.Include(namespace):
		return reconcile.Result{}, err //nolint:wrapcheck // the error names the operation
	case owner == nil:
		return reconcile.Result{}, r.labelAll(ctx, namespace, placement.Name(0), selection.NotIn, placement.Names(r.Shards)...)
	}
	// An outdated Team would move labels back.
	var team v1alpha1.Team
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(owner), &team); err != nil || team.Status.Shard == "" {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := r.labelAll(ctx, namespace, team.Status.Shard, selection.NotEquals, team.Status.Shard); err != nil || !team.Moving() {
		return reconcile.Result{}, err
	}
	if err := r.endMove(ctx, &team); apierrors.IsConflict(err) {
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	} else if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	return reconcile.Result{}, nil
}

// endMove records that a team has been moved. The controller of suspensions then resumes it.
func (r *Reconciler) endMove(ctx context.Context, team *v1alpha1.Team) error {
	base := team.DeepCopy()
	team.Status.Move.Until = v1alpha1.NewTimePtr(r.Clock.Now())
	if err := r.Client.Status().Patch(ctx, team, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot end the move of team %s: %w", team.Name, err)
	}
	ctrl.LoggerFrom(ctx).Info("moved a team", "team", team.Name, "from", team.Status.Move.From, "shard", team.Status.Shard)
	return nil
}

// labelAll labels the unfinished posts of a namespace whose label meets a condition, until there are none. A post that
// cannot be labelled does not stop the others: an admission webhook may reject it. Such posts are tried again while passes
// label others, and reported after the last pass.
func (r *Reconciler) labelAll(ctx context.Context, namespace, shard string, is selection.Operator, values ...string) error {
	others, err := labels.NewRequirement(v1alpha1.ShardLabel, is, values)
	if err != nil {
		return fmt.Errorf("cannot select the posts outside shard %s: %w", shard, err)
	}
	for {
		labelled, failed, err := r.labelPosts(ctx, namespace, shard, others)
		if err != nil || labelled == 0 {
			return errors.Join(err, failed.err(namespace, shard))
		}
		ctrl.LoggerFrom(ctx).V(1).Info("labelled posts with their shard", "namespace", namespace, "shard", shard, "posts", labelled)
	}
}

// maxNamed limits the posts that an error names.
const maxNamed = 10

// failures are the posts that could not be labelled.
type failures struct {
	posts []string
	first error
}

func (f *failures) add(post string, err error) {
	f.posts = append(f.posts, post)
	if f.first == nil {
		f.first = err
	}
}

// err returns an error that names the posts, or nil if there are none.
func (f *failures) err(namespace, shard string) error {
	if f.first == nil {
		return nil
	}
	names := strings.Join(f.posts[:min(len(f.posts), maxNamed)], ", ")
	if more := len(f.posts) - maxNamed; more > 0 {
		names += fmt.Sprintf(", and %d more", more)
	}
	return fmt.Errorf("cannot label posts of namespace %s with shard %s: %s; the first error: %w", namespace, shard, names, f.first)
}

// labelPosts labels the unfinished posts of a namespace that the API server lists for a requirement. It returns the number
// of labelled posts, and those that could not be labelled.
func (r *Reconciler) labelPosts(ctx context.Context, namespace, shard string, others *labels.Requirement) (labelled int, failed failures, err error) {
	err = kubeclient.EachUnfinishedPost(ctx, r.APIReader, func(page []metav1.PartialObjectMetadata) error {
		for i := range page {
			if err := r.labelPost(ctx, &page[i], shard); err != nil {
				failed.add(page[i].Name, err)
			} else {
				labelled++
			}
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return nil
	}, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*others)})
	if err != nil {
		err = fmt.Errorf("cannot list and label the posts of namespace %s: %w", namespace, err)
	}
	return labelled, failed, err
}

// labelPost writes one label. It does not depend on the post's version: a claim that was read before it conflicts, and
// one that was stored before it moves with the post.
func (r *Reconciler) labelPost(ctx context.Context, post *metav1.PartialObjectMetadata, shard string) error {
	post.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	base := post.DeepCopy()
	metav1.SetMetaDataLabel(&post.ObjectMeta, v1alpha1.ShardLabel, shard)
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, post, client.MergeFrom(base))); err != nil {
		return fmt.Errorf("cannot write the label: %w", err)
	}
	// A webhook may also restore the label. The post would be labelled again and again.
	if stored := post.Labels[v1alpha1.ShardLabel]; stored != shard {
		return fmt.Errorf("the Kubernetes API stored the label %q instead; an admission webhook may have changed it", stored)
	}
	return nil
}
