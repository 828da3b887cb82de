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

// Kubernetes' controller of quotas learns of new kinds each half minute. A quota that it sees before it knows Herald's has bounds
// without a count, and the API server refuses what is not counted: "status unknown for quota". By itself that controller counts
// again every five minutes. It does at once when a number in spec.hard changes; labels, annotations and another way to write the
// same number it passes over (k8s.io/kubernetes/pkg/controller/resourcequota, UpdateFunc of NewController).

const (
	// firstRecount is the pause before the first question. Each one after it is twice as long, so that one comes 35 seconds
	// after the quota was seen, when the half minute is over.
	firstRecount = 5 * time.Second
	// mostRecount is the longest pause: three questions an hour where Kubernetes never counts.
	mostRecount = 20 * time.Minute
)

// recountTrigger is the bound that comes into spec.hard to make Kubernetes count again, beside the others, which stay in force. It
// bounds nothing, for Teams are in no namespace. The next pass takes it out again, as it does whatever is not the budget's.
var recountTrigger = quota.ResourceNameOf("teams")

// uncounted reports whether Kubernetes has looked at a quota and could not count all that it bounds. A quota that it has not
// looked at refuses nothing, and is in its queue.
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

// recount asks Kubernetes to count what a quota bounds, if it could not and the time for it has come. Where a policy or a webhook of
// the cluster refuses the question, the Team is none the worse for it: Kubernetes counts by itself later.
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
	log.Info("Kubernetes refuses more of Herald's objects in the namespace, because it could not count those that there are; asking it to count again")
	bounds.Spec.Hard[recountTrigger] = *resource.NewQuantity(0, resource.DecimalSI)
	err := r.Client.Update(ctx, bounds)
	if apierrors.IsConflict(err) {
		return err
	}
	if err != nil {
		log.Error(err, "cannot ask Kubernetes to count, which it does by itself every five minutes; let the manager put "+string(recountTrigger)+" into spec.hard of the quota, and Teams take objects sooner")
	}
	r.recounts.recordRequest(team, now)
	return nil
}

// recounts remembers of which teams Kubernetes could not count what they store, and when it is asked again.
type recounts struct {
	mu     sync.Mutex
	byTeam map[string]recountWait
}

// recountWait is until when a question waits, and how long its pause is.
type recountWait struct {
	until time.Time
	pause time.Duration
}

// due reports whether the pause is over. The first one begins when a team is first asked about.
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

// recordRequest begins the next pause.
func (s *recounts) recordRequest(team string, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	pause := min(2*s.byTeam[team].pause, mostRecount)
	s.byTeam[team] = recountWait{until: now.Add(pause), pause: pause}
}

// forget drops what is remembered of a team that is counted, or gone.
func (s *recounts) forget(team string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byTeam, team)
}

// wait reports whether a team waits for its count, and for how long until Kubernetes is asked again.
func (s *recounts) wait(team string, now time.Time) (time.Duration, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait, ok := s.byTeam[team]
	return wait.until.Sub(now), ok
}
