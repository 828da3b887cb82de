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

// syncEvery is the interval of a full sync without a watch event.
const syncEvery = time.Hour

// syncTracker records the teams whose namespace, quota and role bindings are in sync, so that a reconciliation that
// only counts usage makes no API requests for them. A watch event invalidates the record.
type syncTracker struct {
	mu      sync.Mutex
	changes map[string]uint64
	done    map[string]synced
}

type synced struct {
	uid        types.UID
	generation int64
	changes    uint64
	at         time.Time
}

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

// start returns the event counter for markSynced. It is read before the sync, so that later events invalidate it.
func (s *syncTracker) start(team string) (changes uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changes[team]
}

func (s *syncTracker) markSynced(team *v1alpha1.Team, changes uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = map[string]synced{}
	}
	s.done[team.Name] = synced{team.UID, team.Generation, changes, now}
}

func (s *syncTracker) isSynced(team *v1alpha1.Team, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.done[team.Name]
	return ok && last.uid == team.UID && last.generation == team.Generation && last.changes == s.changes[team.Name] && now.Sub(last.at) < syncEvery
}

func (s *syncTracker) forget(team string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.changes, team)
	delete(s.done, team)
}
