// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
)

// reportInterval is the pause between two checks for changed lists, and so between two writes of a Team.
const reportInterval = 3 * time.Second

// ListReporter writes the state of each team's lists into its status, whose watch updates the lists in memory.
type ListReporter struct {
	Archiver *Archiver
	// Metrics exposes the number of archived posts.
	Metrics *Metrics
}

// SetupWithManager adds the reporter to a manager.
func (t *ListReporter) SetupWithManager(mgr ctrl.Manager) error { return mgr.Add(t) }

// NeedLeaderElection implements manager.LeaderElectionRunnable: only the leader writes lists.
func (*ListReporter) NeedLeaderElection() bool { return true }

// Start implements manager.Runnable.
func (t *ListReporter) Start(ctx context.Context) error {
	log := ctrl.Log.WithName("archive")
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.Archiver.Clock.After(reportInterval):
		}
		for of := range t.Archiver.drainChanged() {
			if err := t.report(ctx, of); err != nil && ctx.Err() == nil {
				t.Archiver.markChanged(of) // retried later
				log.Error(err, "cannot report that the lists of a team have changed; retrying", "team", of.Name)
			}
		}
	}
}

func (t *ListReporter) report(ctx context.Context, of archive.Team) error {
	state, err := t.Archiver.Lists.Stats(ctx, lists.Team(of))
	if err != nil {
		return err //nolint:wrapcheck // the error has its context
	}
	var team v1alpha1.Team
	if err := t.Archiver.Client.Get(ctx, types.NamespacedName{Name: of.Name}, &team); err != nil {
		return client.IgnoreNotFound(err)
	}
	if team.Spec.Namespace != of.Namespace {
		return nil
	}
	t.Metrics.archivedPosts(of, state.Posts)
	stands := v1alpha1.TeamArchive{Revision: state.Revision, Posts: state.Posts}
	if team.Status.Archive == nil && stands == (v1alpha1.TeamArchive{}) || team.Status.Archive != nil && *team.Status.Archive == stands {
		return nil
	}
	before := team.DeepCopy()
	team.Status.Archive = &stands
	if err := t.Archiver.Client.Status().Patch(ctx, &team, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("cannot write the archive status of team %s: %w", of.Name, client.IgnoreNotFound(err))
	}
	return nil
}
