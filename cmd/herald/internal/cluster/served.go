// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
)

// absentEvery is how often a manager checks whether it may now work in a namespace that it left out at startup.
const absentEvery = time.Minute

// ErrNamespaceServed stops a manager that may now work in a namespace that it left out at startup. Its container starts
// again.
var ErrNamespaceServed = errors.New("a namespace of the configuration can be served now; the manager starts again with it")

// ServedNamespaces are the configured namespaces where the manager has a Role, and those that it leaves out. A
// namespace that was deleted, or never created, has no Role: its caches would never fill, and teams in other namespaces
// would wait for them.
type ServedNamespaces struct {
	// Absent are the namespaces that are left out.
	Absent []string

	reviews authorizationclient.SelfSubjectAccessReviewInterface
	clock   clock.WithTicker
	stop    context.CancelCauseFunc
}

// NewServedNamespaces asks the Kubernetes API about each configured namespace, and leaves out those that it has no
// access to. It returns an error if none is left. stop is called once a namespace that was left out can be served.
func NewServedNamespaces(ctx context.Context, config *rest.Config, c *configv1alpha1.ManagerConfiguration, clk clock.WithTicker,
	stop context.CancelCauseFunc, log *slog.Logger,
) (*ServedNamespaces, error) {
	if len(c.Namespaces) == 0 {
		return &ServedNamespaces{}, nil
	}
	api, err := authorizationclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("cannot check the rights in the namespaces: %w", err)
	}
	s := &ServedNamespaces{reviews: api.SelfSubjectAccessReviews(), clock: clk, stop: stop}
	var present configv1alpha1.Namespaces
	for _, namespace := range c.Namespaces {
		allowed, err := s.allowed(ctx, namespace)
		switch {
		case err != nil:
			return nil, err
		case allowed:
			present = append(present, namespace)
		default:
			s.Absent = append(s.Absent, namespace)
		}
	}
	if len(present) == 0 {
		return nil, fmt.Errorf("namespaces: this account may not list posts in %s; create the namespaces and install the chart again, which has a Role for each",
			strings.Join(c.Namespaces, ", "))
	}
	if len(s.Absent) > 0 {
		log.ErrorContext(ctx, "No rights in some namespaces, which are left out; create them and run helm upgrade, or remove them from namespaces", "namespaces", s.Absent)
	}
	c.Namespaces = present
	return s, nil
}

// allowed reports whether this account may list posts in a namespace.
func (s *ServedNamespaces) allowed(ctx context.Context, namespace string) (bool, error) {
	review, err := s.reviews.Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: "list", Group: v1alpha1.GroupVersion.Group, Resource: "posts",
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, fmt.Errorf("cannot check the rights in namespace %q: %w", namespace, err)
	}
	return review.Status.Allowed, nil
}

var _ manager.LeaderElectionRunnable = (*ServedNamespaces)(nil)

// NeedLeaderElection implements manager.LeaderElectionRunnable. Each replica has its own caches.
func (*ServedNamespaces) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable. It stops the process once the account has access to a namespace that was left out.
func (s *ServedNamespaces) Start(ctx context.Context) error {
	if len(s.Absent) == 0 {
		return nil
	}
	ticks := s.clock.NewTicker(absentEvery)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C():
		}
		if slices.ContainsFunc(s.Absent, func(namespace string) bool {
			allowed, err := s.allowed(ctx, namespace)
			return err == nil && allowed
		}) {
			s.stop(ErrNamespaceServed)
			return nil
		}
	}
}
