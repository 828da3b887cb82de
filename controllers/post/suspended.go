// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/delivery"
)

type suspensionReader struct {
	o      *Options
	states *postStates
}

// read reads whether the post's team is suspended. If so, it subscribes the post to the end of the suspension and reads
// again, so it does not miss an end of the suspension between the two.
func (s *suspensionReader) read(ctx context.Context, p *reconciliation) (err error) {
	for waits := false; ; waits = true {
		if p.suspended, p.suspensions, err = s.get(ctx, p.key.Namespace); err != nil {
			return fmt.Errorf("cannot read whether the team is suspended: %w", err)
		}
		if !p.suspended || waits {
			return nil
		}
		s.states.subscribe(p.key, suspensionInput(p.key.Namespace))
	}
}

func (s *suspensionReader) get(ctx context.Context, namespace string) (suspended bool, recent []v1alpha1.Suspension, err error) {
	braked := s.o.SuspendAll.On()
	if s.o.Suspension == nil {
		return braked, nil, nil
	}
	suspended, recent, err = s.o.Suspension(ctx, namespace)
	if err == nil && s.o.Shard != nil {
		// The post has an outdated label, or the label is newer than the cached Team.
		var team *v1alpha1.Team
		team, err = s.o.Team(ctx, namespace)
		suspended = suspended || team != nil && team.Status.Shard != s.o.Shard.Name
	}
	return suspended || braked, recent, err
}

// now reports whether claims are suspended in a namespace. Call it just before the claim: the state may have changed
// during the reconciliation. A suspension after the claim does not stop the call, which is recorded.
func (s *suspensionReader) now(ctx context.Context, namespace string) bool {
	suspended, _, err := s.get(ctx, namespace)
	return suspended || err != nil
}

// shift returns the suspensions that move the deadlines of a namespace's posts. If they cannot be read, the
// team counts as suspended, so that no target fails at its deadline before a later reconciliation has read them.
func (s *suspensionReader) shift(ctx context.Context, namespace string) *delivery.Deadlines {
	suspended, recent, err := s.get(ctx, namespace)
	return &delivery.Deadlines{Suspended: suspended || err != nil, Suspensions: recent, StartingDeadline: s.o.StartingDeadline, LongestDelay: s.o.LongestDelay}
}
