// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	typedcoordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/herald-social/herald/test/must"
)

// holding is what a Lease's holder does with it.
type holding int

const (
	renewing holding = iota
	killed
)

// storedLeases are the held Leases of a cluster, by namespace and name.
type storedLeases struct {
	typedcoordinationv1.LeaseInterface

	namespace string
	held      map[string]holding
	failure   error
}

func (s storedLeases) Leases(namespace string) typedcoordinationv1.LeaseInterface {
	s.namespace = namespace
	return s
}

func (s storedLeases) Get(_ context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	by, found := s.held[s.namespace+"/"+name]
	switch {
	case s.failure != nil:
		return nil, s.failure
	case !found:
		return nil, apierrors.NewNotFound(coordinationv1.Resource("leases"), name)
	}
	lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{
		HolderIdentity: new("replica"), LeaseDurationSeconds: new(int32(15)), RenewTime: &metav1.MicroTime{Time: time.Unix(0, 0)},
	}}
	if by == renewing {
		lease.Spec.RenewTime.Time = time.Now()
	}
	return lease, nil
}

func (s storedLeases) List(_ context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	list := &coordinationv1.LeaseList{}
	for key := range s.held {
		namespace, name, _ := strings.Cut(key, "/")
		if options.FieldSelector == fields.OneTermEqualSelector(metav1.ObjectNameField, name).String() {
			list.Items = append(list.Items, coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
		}
	}
	return list, s.failure
}

func TestStopManager(t *testing.T) {
	away := errors.New("away")
	for name, tc := range map[string]struct {
		reason string
		// anywhere searches all namespaces.
		anywhere bool
		held     map[string]holding
		failure  error
		// holds is the lease that a manager holds, if that is refused.
		holds string
		// watched is how long the leases are watched.
		watched time.Duration
		// started is the lease that a manager acquires after the check, and holder is the manager that is then found.
		started, holder string
	}{
		"None":          {reason: "Herald was uninstalled, and its leases with it"},
		"Leader":        {reason: "a manager leads", held: map[string]holding{"herald/herald-manager": renewing}, holds: "herald/herald-manager", watched: time.Second},
		"Member":        {reason: "a replica delivers the posts of its shards, although nobody leads", held: map[string]holding{"herald/herald-member-00": renewing}, holds: "herald/herald-member-00", watched: time.Second},
		"LastMember":    {reason: "any of 16 leases may be that of the last replica", held: map[string]holding{"herald/herald-member-15": renewing}, holds: "herald/herald-member-15", watched: time.Second},
		"AllKilled":     {reason: "killed replicas do not renew their leases; these are watched at once", held: map[string]holding{"herald/herald-manager": killed, "herald/herald-member-00": killed, "herald/herald-member-01": killed}, watched: 15 * time.Second},
		"LeaderKilled":  {reason: "another replica still delivers the posts of its shards", held: map[string]holding{"herald/herald-manager": killed, "herald/herald-member-01": renewing}, holds: "herald/herald-member-01", watched: 15 * time.Second},
		"OtherRelease":  {reason: "another installation in the namespace has posts of its own", held: map[string]holding{"herald/other-member-00": renewing}},
		"Elsewhere":     {reason: "another installation has the same name", held: map[string]holding{"other/herald-member-00": renewing}},
		"Found":         {reason: "the leader's lease shows where the other replicas' leases are", anywhere: true, held: map[string]holding{"social/herald-manager": killed, "social/herald-member-02": renewing}, holds: "social/herald-member-02", watched: 15 * time.Second},
		"Unreadable":    {reason: "it is unknown whether a manager is active", failure: away},
		"Unsearchable":  {reason: "it is unknown where a manager may be active", anywhere: true, failure: away},
		"LeaderStarts":  {reason: "a manager was started again", started: "herald/herald-manager", holder: "replica"},
		"ReplicaStarts": {reason: "a replica takes shards of an earlier leader", started: "herald/herald-member-03", holder: "replica"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				args := []string{"--install-namespace=herald"}
				if tc.anywhere {
					args = nil
				}
				f, err := parseReleaseFlags(args)
				must.Succeed(t, err)
				stored, began := storedLeases{held: map[string]holding{}, failure: tc.failure}, time.Now()
				maps.Copy(stored.held, tc.held)
				active, err := f.stopManager(t.Context(), releaseClients{coordination: stored}, io.Discard)
				if refused := err != nil && strings.Contains(err.Error(), "replica holds the lease "+tc.holds); refused != (tc.holds != "") || !errors.Is(err, tc.failure) && !refused {
					t.Errorf("%s: got error %v, want one that names %q, or %v", tc.reason, err, tc.holds, tc.failure)
				}
				if watched := time.Since(began); watched != tc.watched {
					t.Errorf("%s: the leases were watched for %s, want %s", tc.reason, watched, tc.watched)
				}
				if err != nil {
					return
				}
				if tc.started != "" {
					stored.held[tc.started] = renewing
				}
				if holder, err := active(t.Context()); holder != tc.holder || err != nil {
					t.Errorf("%s: got holder %q, error %v; want %q", tc.reason, holder, err, tc.holder)
				}
			})
		})
	}
}
