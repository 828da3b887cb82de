// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// answerWithin bounds one request of a check.
const answerWithin = 10 * time.Second

// ErrUnavailable says that the Kubernetes API did not answer, or not as one that works: what
// may be otherwise a moment later.
var ErrUnavailable = errors.New("the Kubernetes API does not answer")

// asUnavailable marks an error of a request as ErrUnavailable, unless the Kubernetes API has decided it.
func asUnavailable(err error) error {
	var decided apierrors.APIStatus
	passes := !errors.As(err, &decided) || apierrors.IsServiceUnavailable(err) || apierrors.IsInternalError(err) ||
		apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err)
	if !passes {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnavailable, err)
}
