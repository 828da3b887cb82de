// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"context"
	"errors"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/test/must"
)

func TestWatch(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		reason      string
		before, now *coordinationv1.Lease
		// found is true if the lease was unknown when the watch started.
		found  bool
		err    error
		holder string
	}{
		"StaysGone":   {reason: "no manager leads"},
		"StaysFree":   {reason: "no manager leads", before: by("", 0), now: by("", 0)},
		"StaysKilled": {reason: "a killed manager's name stays on the lease", before: by("them", 0), now: by("them", 0)},
		"Deleted":     {reason: "an uninstall deletes the lease", before: by("them", 0)},
		"GivenBack":   {reason: "the other manager acquired and released the lease", before: by("", 0), now: by("", time.Second)},
		"Installed":   {reason: "a manager starts without a lease", now: by("us", 0), holder: "us"},
		"Acquired":    {reason: "a manager was started again", before: by("", 0), now: by("us", time.Second), holder: "us"},
		"TakenOver":   {reason: "another manager follows the killed one", before: by("them", 0), now: by("us", time.Second), holder: "us"},
		"Renewed":     {reason: "the unresponsive manager responds again", before: by("them", 0), now: by("them", time.Second), holder: "them"},
		"Elsewhere":   {reason: "one was installed in another namespace", now: by("us", 0), found: true, holder: "us"},
		"Away":        {reason: "the API server does not report whether a manager is active", before: by("", 0), err: away},
	} {
		t.Run(name, func(t *testing.T) {
			now, err := tc.before, error(nil)
			w := Watch{
				Observer: Observer{Leases: &story{tell: func(time.Duration) (*coordinationv1.Lease, error) { return now, err }}},
				Find: func(context.Context) (names []types.NamespacedName, _ error) {
					if !tc.found || now != tc.before {
						names = append(names, types.NamespacedName{Namespace: "herald", Name: "herald-manager"})
					}
					return names, nil
				},
			}
			must.Succeed(t, w.Snapshot(t.Context()))
			now, err = tc.now, tc.err
			if holder, err := w.NewHolder(t.Context()); holder != tc.holder || !errors.Is(err, tc.err) {
				t.Errorf("%s: got holder %q, error %v; want %q, %v", tc.reason, holder, err, tc.holder, tc.err)
			}
		})
	}
}
