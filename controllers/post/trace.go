// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/tracing"
)

// traceNear is the time after an immediate post's creation during which its delivery belongs to the request's trace.
// Collectors with tail sampling wait for seconds to minutes, and a trace that spans hours would show little but the
// wait.
const traceNear = 10 * time.Minute

// startTrace starts the span of a reconciliation. The span of an immediate post belongs to the trace of its request.
// Any other, such as the span of a scheduled post hours later, starts a new trace with a link to the request.
func startTrace(ctx context.Context, tracer *tracing.Tracer, post *v1alpha1.Post, now time.Time) (context.Context, tracing.Span) {
	if tracer == nil {
		return ctx, tracing.Span{}
	}
	near := post.Spec.ScheduledAt == nil && now.Sub(post.CreationTimestamp.Time) <= traceNear
	ctx, span := tracer.Resume(ctx, "deliver", post.Annotations[v1alpha1.TraceparentAnnotation], near)
	span.Text(tracing.Namespace, post.Namespace)
	span.Text(tracing.Post, post.Name)
	return ctrl.LoggerInto(ctx, tracing.Logger(ctx, ctrl.LoggerFrom(ctx))), span
}

// endTrace ends the span of a reconciliation, or drops it if there was nothing to do: most reconciliations only wait.
func endTrace(span tracing.Span, p *reconciliation, err error) {
	if !p.wrote && !p.calledPlatform && err == nil {
		return
	}
	span.Text(tracing.Phase, string(p.Post.Status.Phase))
	switch {
	case apierrors.IsConflict(err):
		span.Text(tracing.Outcome, "conflict") // a conflict is not a failure
	case err != nil:
		span.Fail("internal")
	}
	span.End()
}
