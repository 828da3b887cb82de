// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
)

// syncEvery is how often a team's namespace, quota and role bindings are looked at when nothing tells that they changed.
const syncEvery = time.Hour

// syncTracker remembers of which teams the namespace, the quota and the role bindings are as they should be, so that a pass that
// only counts what the team uses asks the API server for none of them. What a watch tells ends that.
type syncTracker struct {
	mu sync.Mutex
	// changes counts what the watches told of each team.
	changes map[string]uint64
	done    map[string]synced
}

// synced is how a team was when all was as it should be.
type synced struct {
	uid        types.UID
	generation int64
	changes    uint64
	at         time.Time
}

// recordChange notes that something of teams has changed.
func (s *syncTracker) recordChange(teams []reconcile.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		s.changes = map[string]uint64{}
	}
	for _, team := range teams {
		s.changes[team.Name]++
	}
}

// start returns what end needs: what changes from here on is not among what is looked at.
func (s *syncTracker) start(team string) (changes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[team]
}

// markSynced notes that all is as it should be.
func (s *syncTracker) markSynced(team *v1alpha1.Team, changes uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = map[string]synced{}
	}
	s.done[team.Name] = synced{team.UID, team.Generation, changes, now}
}

// isSynced reports whether all is still as it should be, as far as the watches tell.
func (s *syncTracker) isSynced(team *v1alpha1.Team, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.done[team.Name]
	return ok && last.uid == team.UID && last.generation == team.Generation && last.changes == s.changes[team.Name] && now.Sub(last.at) < syncEvery
}

// forget drops what is remembered of a team that is gone.
func (s *syncTracker) forget(team string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.changes, team)
	delete(s.done, team)
}
