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

// traceNear is how long after its creation the delivery of an immediate post still belongs
// to the trace of the request. Collectors that choose among whole traces wait for seconds
// to minutes, and a trace of hours shows nothing but the waiting.
const traceNear = 10 * time.Minute

// trace begins the span of a pass. That of an immediate post goes on with the trace of its
// request. Any other, such as that of a scheduled post hours later, begins a trace of
// its own, with a link to the request's.
func (r *Reconciler) trace(ctx context.Context, post *v1alpha1.Post, now time.Time) (context.Context, tracing.Span) {
	if r.o.Tracer == nil {
		return ctx, tracing.Span{}
	}
	near := post.Spec.ScheduledAt == nil && now.Sub(post.CreationTimestamp.Time) <= traceNear
	ctx, span := r.o.Tracer.Resume(ctx, "deliver", post.Annotations[v1alpha1.TraceparentAnnotation], near)
	span.Text(tracing.Namespace, post.Namespace)
	span.Text(tracing.Post, post.Name)
	return ctrl.LoggerInto(ctx, tracing.Logger(ctx, ctrl.LoggerFrom(ctx))), span
}

// endTrace ends the span of a pass. One that found nothing to do leaves none: most passes
// only wait.
func endTrace(span tracing.Span, p *reconciliation, err error) {
	if !p.wrote && !p.calledPlatform && err == nil {
		return
	}
	span.Text(tracing.Phase, string(p.post.Status.Phase))
	switch {
	case apierrors.IsConflict(err):
		span.Text(tracing.Outcome, "conflict") // the ordinary end of a race, and no failure
	case err != nil:
		span.Fail("internal")
	}
	span.End()
}
