// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// confirmTimeout limits the time for checking the ids in one post's resolutions with the platforms. A post has up to
// 100 targets, each call may take up to the platform's CallTimeout, and the responses must be stored before the
// reconciliation ends. An id that is not confirmed by then is stored as the user entered it.
const confirmTimeout = time.Minute

// listCandidates lists candidates for the undecided targets and sets them in the status, which the caller stores. A
// target keeps its previous candidates if its account cannot be queried.
func listCandidates(ctx context.Context, lookups *lookup.Lookups, p *reconciliation, f *delivery.Facts, targets []int) {
	var undecided []int
	for _, i := range targets {
		if attempt.Undecided(p.Target(i)) {
			undecided = append(undecided, i)
		}
	}
	if len(undecided) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, confirmTimeout)
	defer cancel()
	p.calledPlatform = true
	for _, found := range lookups.Candidates(ctx, f, undecided) {
		if found.Err != nil {
			p.log.Info("cannot list the candidates on an account", "uid", p.Post.UID, "target", found.Target, "error", found.Err.Error())
			continue
		}
		posting.SetCandidates(p.Post, p.Target(found.Target), found.Posts)
	}
}

func removeAnnotation(ctx context.Context, c client.Client, p *reconciliation, name string) error {
	base := p.Post.DeepCopy()
	delete(p.Post.Annotations, name)
	if err := c.Patch(ctx, p.Post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot remove the annotation %s: %w", name, err)
	}
	p.state.publish.RecordWrite(p.Post)
	p.markStored()
	return nil
}
