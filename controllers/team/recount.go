// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package team

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/internal/quota"
)

// Kubernetes' quota controller discovers new resource kinds every 30 seconds. If it processes a quota before it has
// discovered Herald's kinds, the quota has limits without usage, and the API server rejects the objects: "status
// unknown for quota". The controller recounts every five minutes, and immediately when a number in spec.hard changes.
// It ignores changed labels and annotations, and different notations of the same number
// (k8s.io/kubernetes/pkg/controller/resourcequota, UpdateFunc of NewController).

const (
	// firstRecount is the pause before the first request for a recount. The pauses double, so that the third request
	// comes 35 seconds after the quota was seen, past the discovery interval.
	firstRecount = 5 * time.Second
	// maxRecount is the longest pause: three requests an hour if Kubernetes never counts.
	maxRecount = 20 * time.Minute
)

// recountTrigger is an entry in spec.hard that triggers a recount. The other limits remain in force. It does not limit
// anything, because Teams are cluster-scoped. The next reconciliation removes it, like every entry that is not in the
// budget.
var recountTrigger = quota.ResourceNameOf("teams")

// uncounted reports whether Kubernetes has processed a quota without counting all its resources. A quota that it has
// not processed yet does not reject anything, and is still in its queue.
func uncounted(q *corev1.ResourceQuota) bool {
	for name := range q.Spec.Hard {
		_, isSeen := q.Status.Hard[name]
		_, isCounted := q.Status.Used[name]
		if isSeen && !isCounted {
			return true
		}
	}
	return false
}

// recount triggers a recount of a quota that Kubernetes could not count, once the pause is over. One of the cluster's
// policies or webhooks may reject the update. That does not affect the Team: Kubernetes recounts later on its own.
func (r *Reconciler) recount(ctx context.Context, team string, bounds *corev1.ResourceQuota) error {
	if !uncounted(bounds) {
		r.recounts.forget(team)
		return nil
	}
	now := r.Clock.Now()
	if !r.recounts.due(team, now) {
		return nil
	}
	log := ctrl.LoggerFrom(ctx).WithValues("namespace", bounds.Namespace, "resourceQuota", bounds.Name)
	log.Info("Kubernetes rejects Herald's objects in the namespace, because it has not counted the existing ones; requesting a recount")
	bounds.Spec.Hard[recountTrigger] = *resource.NewQuantity(0, resource.DecimalSI)
	err := r.Client.Update(ctx, bounds)
	if apierrors.IsConflict(err) {
		return err
	}
	if err != nil {
		log.Error(err, "cannot request a recount, which Kubernetes makes by itself every five minutes; allow the manager to put "+string(recountTrigger)+" into spec.hard of the quota to make it sooner")
	}
	r.recounts.recordRequest(team, now)
	return nil
}

type recounts struct {
	mu     sync.Mutex
	byTeam map[string]recountWait
}

type recountWait struct {
	until time.Time
	pause time.Duration
}

// due reports whether the pause is over. The first call for a team starts its first pause.
func (s *recounts) due(team string, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, ok := s.byTeam[team]
	if ok {
		return !now.Before(wait.until)
	}
	if s.byTeam == nil {
		s.byTeam = map[string]recountWait{}
	}
	s.byTeam[team] = recountWait{until: now.Add(firstRecount), pause: firstRecount}
	return false
}

func (s *recounts) recordRequest(team string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := min(2*s.byTeam[team].pause, maxRecount)
	s.byTeam[team] = recountWait{until: now.Add(pause), pause: pause}
}

func (s *recounts) forget(team string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byTeam, team)
}

func (s *recounts) wait(team string, now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, ok := s.byTeam[team]
	return wait.until.Sub(now), ok
}
