// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/request"
)

// Act says what a person did. It is the reason of the event about it.
type Act string

// The acts of people.
const (
	ActCreated     Act = "CreatedByPerson"
	ActEdited      Act = "EditedByPerson"
	ActPublished   Act = "PublishedByPerson"
	ActScheduled   Act = "ScheduledByPerson"
	ActRescheduled Act = "RescheduledByPerson"
	ActCancelled   Act = "CancelledByPerson"
	ActSettled     Act = "SettledByPerson"

	ActConnected    Act = "ConnectedByPerson"
	ActReconnected  Act = "ReconnectedByPerson"
	ActDisconnected Act = "DisconnectedByPerson"

	ActKeyCreated   Act = "KeyCreatedByPerson"
	ActTokenAdded   Act = "TokenAddedByPerson"
	ActTokenRemoved Act = "TokenRemovedByPerson"
	ActKeyRevoked   Act = "KeyRevokedByPerson"

	ActAgentAllowed Act = "AgentAllowedByPerson"
	ActAgentRevoked Act = "AgentRevokedByPerson"
)

// eventWithin bounds the writing of an event: a person waits for it.
const eventWithin = 2 * time.Second

// Events writes events into the Kubernetes API.
type Events interface {
	// Write stores an event about an object. Reason is a word for programs, note says
	// what happened, for people.
	Write(ctx context.Context, about *corev1.ObjectReference, reason, note string) error
}

// Acted leaves the trail of what a person did to a Post, a Connection, an APIKey or an OAuthGrant, once
// it is done: a line of the log and an event. An event that cannot be written is logged,
// and the act stands. A caller that is no person leaves no trail here.
func (s *Service) Acted(ctx context.Context, caller Caller, act Act, object metav1.Object) {
	if caller.Author == "" {
		return
	}
	about := referenceTo(object)
	log := s.trail(ctx, about, string(act)).With(slog.String("person", caller.Author))
	log.InfoContext(ctx, "A person acted")
	s.writeEvent(ctx, log, about, string(act), "by "+caller.Author+" in the web application")
}

// Guarded leaves the trail of what Herald did to an object to keep it safe, such as the end of a
// grant of which a token was stolen. reason is a word for programs, note says what happened, for
// people.
func (s *Service) Guarded(ctx context.Context, object metav1.Object, reason, note string) {
	about := referenceTo(object)
	log := s.trail(ctx, about, reason)
	log.WarnContext(ctx, note)
	s.writeEvent(ctx, log, about, reason, note)
}

// trail is a logger that says what is done to which object.
func (s *Service) trail(ctx context.Context, about *corev1.ObjectReference, act string) *slog.Logger {
	return s.Log.With(slog.String("act", act), slog.String("kind", about.Kind), slog.String("namespace", about.Namespace),
		slog.String("name", about.Name), slog.String("requestId", request.From(ctx).ID))
}

func (s *Service) writeEvent(ctx context.Context, log *slog.Logger, about *corev1.ObjectReference, reason, note string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventWithin)
	defer cancel()
	if err := s.Events.Write(ctx, about, reason, note); err != nil {
		log.WarnContext(ctx, "Cannot write the event about what was done", slog.Any("error", err))
	}
}

// referenceTo names an object as an event does.
func referenceTo(object metav1.Object) *corev1.ObjectReference {
	kind := ""
	switch object.(type) {
	case *v1alpha1.Post:
		kind = "Post"
	case *v1alpha1.Connection:
		kind = "Connection"
	case *v1alpha1.APIKey:
		kind = "APIKey"
	case *v1alpha1.OAuthGrant:
		kind = "OAuthGrant"
	}
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind,
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

// signed notes on an object who changes it.
func signed(object *metav1.ObjectMeta, caller Caller) {
	if caller.Author != "" {
		metav1.SetMetaDataAnnotation(object, v1alpha1.LastAuthorAnnotation, caller.Author)
	}
}
