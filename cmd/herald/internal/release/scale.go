// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedappsv1 "k8s.io/client-go/kubernetes/typed/apps/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/util/retry"
	"k8s.io/utils/clock"
)

// pollInterval is the pause between two checks for running pods.
const pollInterval = time.Second

// Scaler stops the pods of Deployments. All fields are required.
type Scaler struct {
	Deployments typedappsv1.DeploymentsGetter
	Pods        typedcorev1.PodsGetter
	// Namespace is the namespace of the Deployments.
	Namespace string
	Clock     clock.Clock
	// Out receives the progress.
	Out io.Writer
}

// Down scales Deployments to 0 and waits up to timeout until their pods have terminated. The manager's pod finishes
// its running calls and records their outcomes. A Deployment that does not exist has no pods.
func (s *Scaler) Down(ctx context.Context, names []string, timeout time.Duration) error {
	selectors := map[string]string{}
	for _, name := range names {
		selector, err := s.toZero(ctx, name)
		if err != nil {
			return err
		}
		selectors[name] = selector
	}
	until := s.Clock.Now().Add(timeout)
	for _, name := range names {
		if err := s.waitPodsEnded(ctx, name, selectors[name], until); err != nil {
			return err
		}
	}
	return nil
}

// waitPodsEnded waits until a Deployment's pods have terminated.
func (s *Scaler) waitPodsEnded(ctx context.Context, name, selector string, until time.Time) error {
	for selector != "" {
		left, err := s.pods(ctx, selector)
		switch {
		case err != nil:
			return err
		case len(left) == 0:
			return nil
		case !s.Clock.Now().Before(until):
			return fmt.Errorf("pods of Deployment %s/%s still run: %s; check why they do not terminate, and whether something scales it up again, then run this again, with a longer --wait if they only need more time",
				s.Namespace, name, strings.Join(left, ", "))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("stopped while pods of Deployment %s/%s were ending: %w", s.Namespace, name, ctx.Err())
		case <-s.Clock.After(pollInterval):
		}
	}
	return nil
}

// toZero scales a Deployment to 0 and returns the selector of its pods, or "" if the Deployment does not exist.
func (s *Scaler) toZero(ctx context.Context, name string) (selector string, err error) {
	deployments := s.Deployments.Deployments(s.Namespace)
	err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		scale, err := deployments.GetScale(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		selector = scale.Status.Selector
		if scale.Spec.Replicas == 0 {
			return nil
		}
		scale.Spec.Replicas = 0
		_, err = deployments.UpdateScale(ctx, name, scale, metav1.UpdateOptions{FieldManager: fieldOwner})
		return err
	})
	switch {
	case apierrors.IsNotFound(err):
		_, err = fmt.Fprintf(s.Out, "there is no Deployment %s/%s to scale down\n", s.Namespace, name)
		return "", err
	case err != nil:
		return "", fmt.Errorf("cannot scale Deployment %s/%s to 0; do so manually, or run this again: %w", s.Namespace, name, err)
	}
	_, err = fmt.Fprintf(s.Out, "Deployment %s/%s is scaled to 0; waiting for its pods to end\n", s.Namespace, name)
	return selector, err
}

func (s *Scaler) pods(ctx context.Context, selector string) (names []string, err error) {
	found, err := s.Pods.Pods(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return nil, fmt.Errorf("cannot list the pods with %s in namespace %s; run this again: %w", selector, s.Namespace, err)
	}
	for i := range found.Items {
		if phase := found.Items[i].Status.Phase; phase != corev1.PodSucceeded && phase != corev1.PodFailed {
			names = append(names, found.Items[i].Name)
		}
	}
	return names, nil
}
