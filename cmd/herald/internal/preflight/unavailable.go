// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// responseTimeout is the timeout for one request in a check.
const responseTimeout = 10 * time.Second

// ErrUnavailable means that the Kubernetes API did not respond, or failed in a way that may be transient.
var ErrUnavailable = errors.New("the Kubernetes API does not answer")

// asUnavailable wraps a request's error with ErrUnavailable, unless it is a decision by the Kubernetes API.
func asUnavailable(err error) error {
	var decided apierrors.APIStatus
	transient := !errors.As(err, &decided) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
	if !transient {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
