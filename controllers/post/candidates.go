// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// listCandidates lists candidates for the undecided targets and sets them in the status, which the caller stores. A
// target keeps its previous candidates if its account cannot be queried.
func (r *Reconciler) listCandidates(ctx context.Context, p *reconciliation, f *delivery.Facts, targets []int) {
	var undecided []int
	for _, i := range targets {
		if attempt.Undecided(posting.Target(p.post, i)) {
			undecided = append(undecided, i)
		}
	}
	if len(undecided) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmWithin)
	defer cancel()
	p.calledPlatform = true
	for _, found := range r.lookups.Candidates(ctx, f, undecided) {
		if found.Err != nil {
			p.log.Info("the posts of an account cannot be listed for the person who is asked", "uid", p.post.UID, "target", found.Target, "error", found.Err.Error())
			continue
		}
		posting.SetCandidates(p.post, posting.Target(p.post, found.Target), found.Posts)
	}
}

// answerRequest lists the candidates again if the annotation social.herald.dev/list-candidates requests it, and removes
// the annotation. Resolutions of a person and unrecorded results have precedence. It reports whether it has answered
// the request.
func (r *Reconciler) answerRequest(ctx context.Context, p *reconciliation, f *delivery.Facts) (answered bool, err error) {
	_, requested := p.post.Annotations[v1alpha1.ListCandidatesAnnotation]
	_, settles := p.post.Annotations[v1alpha1.SettleAnnotation]
	if !requested || settles || len(f.Results) > 0 || !p.post.DeletionTimestamp.IsZero() {
		return false, nil
	}
	var targets []int
	for i := range p.post.Status.Targets {
		if index := int(p.post.Status.Targets[i].Index); index < len(p.post.Spec.Targets) {
			targets = append(targets, index)
		}
	}
	r.listCandidates(ctx, p, f, targets)
	if err := r.write(ctx, p, nil); err != nil {
		return true, err
	}
	return true, r.removeAnnotation(ctx, p, v1alpha1.ListCandidatesAnnotation)
}

// removeAnnotation removes an annotation after its request was answered.
func (r *Reconciler) removeAnnotation(ctx context.Context, p *reconciliation, name string) error {
	base := p.post.DeepCopy()
	delete(p.post.Annotations, name)
	if err := r.o.Client.Patch(ctx, p.post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot remove the annotation %s: %w", name, err)
	}
	p.state.publish.RecordWrite(p.post)
	p.markStored()
	return nil
}
