// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"log/slog"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/apiserver/request"
)

// Guarded records, as a log line and an event, that Herald protected an object, for example by ending a grant whose
// token was stolen. reason is machine-readable; note is a human-readable description of the action.
func (s *Service) Guarded(ctx context.Context, object metav1.Object, reason, note string) {
	about := referenceTo(object)
	log := s.Log.With(
		slog.String("act", reason), slog.String("kind", about.Kind), slog.String("namespace", about.Namespace), slog.String("name", about.Name),
		slog.String("requestId", request.From(ctx).ID))
	log.WarnContext(ctx, "Herald protected an object", "note", note)
	if s.Events == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	if err := s.Events.Write(ctx, about, reason, note); err != nil {
		log.WarnContext(ctx, "Cannot write the event about an action", slog.Any("error", err))
	}
}
