// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
)

// story returns the lease at the given time since the start, or nil if there is none.
type story struct {
	typedcoordinationv1.LeaseInterface

	begun time.Time
	tell  func(since time.Duration) (*coordinationv1.Lease, error)
}

func (s *story) Leases(string) typedcoordinationv1.LeaseInterface { return s }

func (s *story) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	found, err := s.tell(time.Since(s.begun))
	if err == nil && found == nil {
		err = apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	return found, err
}

// by returns a 15-second lease that was renewed at the given time by the holder's clock.
func by(holder string, at time.Duration) *coordinationv1.Lease {
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: time.Unix(0, 0).Add(at)},
	}}
}

func TestObserver(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		reason  string
		tell    func(since time.Duration) (*coordinationv1.Lease, error)
		timeout time.Duration
		holder  string
		err     error
		// took is how long the lease was watched.
		took time.Duration
	}{
		"None": {
			reason: "Herald was uninstalled, and its lease with it",
			tell:   func(time.Duration) (*coordinationv1.Lease, error) { return nil, nil },
		},
		"GivenBack": {
			reason: "the manager stopped in order",
			tell:   func(time.Duration) (*coordinationv1.Lease, error) { return by("", 0), nil },
		},
		"Renewed": {
			reason: "a manager is active, even if its clock in the lease is at 1970",
			tell: func(since time.Duration) (*coordinationv1.Lease, error) {
				return by("them", (since / 2).Truncate(time.Second)), nil
			},
			holder: "them", took: 2 * time.Second,
		},
		"Killed": {
			reason: "a killed manager's name stays on the lease without renewals",
			tell:   func(time.Duration) (*coordinationv1.Lease, error) { return by("them", time.Hour), nil },
			took:   15 * time.Second,
		},
		"TakenOver": {
			reason: "another replica became the leader",
			tell: func(since time.Duration) (*coordinationv1.Lease, error) {
				if since < 10*time.Second {
					return by("them", 0), nil
				}
				return by("others", 0), nil
			},
			holder: "others", took: 10 * time.Second,
		},
		"Patient": {
			reason: "the observer waits for a manager that is about to stop",
			tell: func(since time.Duration) (*coordinationv1.Lease, error) {
				if since < 40*time.Second {
					return by("them", since.Truncate(time.Second)), nil
				}
				return by("", 0), nil
			},
			timeout: time.Minute, took: 40 * time.Second,
		},
		"OutOfPatience": {
			reason:  "the other manager is active again",
			tell:    func(since time.Duration) (*coordinationv1.Lease, error) { return by("them", since), nil },
			timeout: 30 * time.Second, holder: "them", took: 30 * time.Second,
		},
		"Away": {
			reason: "the lease is unknown",
			tell:   func(time.Duration) (*coordinationv1.Lease, error) { return nil, away },
			err:    away,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				started := time.Now()
				o := Observer{Leases: &story{begun: started, tell: tc.tell}, Clock: clock.RealClock{}}
				holder, err := o.WaitFree(t.Context(), types.NamespacedName{Namespace: "herald", Name: "herald-manager"}, tc.timeout)
				if holder != tc.holder || !errors.Is(err, tc.err) || time.Since(started) != tc.took {
					t.Errorf("%s: got holder %q, error %v after %s; want %q, %v after %s", tc.reason, holder, err, time.Since(started), tc.holder, tc.err, tc.took)
				}
			})
		})
	}
}
