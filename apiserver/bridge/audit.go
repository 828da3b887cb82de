// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/request"
)

// Act is the reason in the event about a user's action. For an agent, "Agent" replaces "Person".
type Act string

// The actions of users in the web application.
const (
	ActCreated     Act = "CreatedByPerson"
	ActEdited      Act = "EditedByPerson"
	ActPublished   Act = "PublishedByPerson"
	ActScheduled   Act = "ScheduledByPerson"
	ActRescheduled Act = "RescheduledByPerson"
	ActCancelled   Act = "CancelledByPerson"
	ActSettled     Act = "SettledByPerson"
	ActDismissed   Act = "DismissedByPerson"

	ActConnected    Act = "ConnectedByPerson"
	ActReconnected  Act = "ReconnectedByPerson"
	ActDisconnected Act = "DisconnectedByPerson"

	ActUploadBegun Act = "UploadBegunByPerson"

	ActKeyCreated   Act = "KeyCreatedByPerson"
	ActTokenAdded   Act = "TokenAddedByPerson"
	ActTokenRemoved Act = "TokenRemovedByPerson"
	ActKeyRevoked   Act = "KeyRevokedByPerson"

	ActScheduleCreated   Act = "ScheduleCreatedByPerson"
	ActScheduleEdited    Act = "ScheduleEditedByPerson"
	ActScheduleSuspended Act = "ScheduleSuspendedByPerson"
	ActScheduleResumed   Act = "ScheduleResumedByPerson"
	ActScheduleDeleted   Act = "ScheduleDeletedByPerson"

	ActNotifierCreated   Act = "NotifierCreatedByPerson"
	ActNotifierEdited    Act = "NotifierEditedByPerson"
	ActNotifierSuspended Act = "NotifierSuspendedByPerson"
	ActNotifierResumed   Act = "NotifierResumedByPerson"
	ActSecretReplaced    Act = "NotifierSecretReplacedByPerson"
	ActResent            Act = "NotificationResentByPerson"
	ActNotifierDeleted   Act = "NotifierDeletedByPerson"

	ActAgentAllowed Act = "AgentAllowedByPerson"
	ActAgentRevoked Act = "AgentRevokedByPerson"
)

// eventTimeout is the timeout for writing an event, during which a user waits.
const eventTimeout = 2 * time.Second

// Events writes events into the Kubernetes API.
type Events interface {
	// Write stores an event about an object. reason is machine-readable; note is a human-readable description of the
	// action.
	Write(ctx context.Context, about *corev1.ObjectReference, reason, note string) error
}

// Acted records, as a log line and an event, that a user or an agent completed an action on an object. A failure to
// write the event is only logged. Callers with an API key are not recorded here.
func (s *Service) Acted(ctx context.Context, caller Caller, act Act, object metav1.Object) {
	if caller.Author == "" && caller.Agent == "" {
		return
	}
	about, reason := referenceTo(object), act.by(caller)
	log := s.Log
	if caller.Author != "" {
		log = log.With(slog.String("person", caller.Author))
	}
	if caller.Agent != "" {
		log = log.With(slog.String("agent", caller.Agent), slog.String("key", caller.Key))
	}
	log = log.With(slog.String("act", reason),
		slog.String("kind", about.Kind), slog.String("namespace", about.Namespace), slog.String("name", about.Name),
		slog.String("requestId", request.From(ctx).ID))
	if caller.Agent == "" {
		log.InfoContext(ctx, "A person acted")
	} else {
		log.InfoContext(ctx, "An agent acted")
	}
	if s.Events == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventTimeout)
	defer cancel()
	if err := s.Events.Write(ctx, about, reason, eventNote(caller)); err != nil {
		log.WarnContext(ctx, "Cannot write the event about an action", slog.Any("error", err))
	}
}

func (a Act) by(caller Caller) string {
	if caller.Agent == "" {
		return string(a)
	}
	return strings.TrimSuffix(string(a), "ByPerson") + "ByAgent"
}

// eventNote returns a human-readable description of the caller. An agent's name is self-reported and therefore quoted.
func eventNote(caller Caller) string {
	switch {
	case caller.Agent == "":
		return "by " + caller.Author + " in the web application"
	case caller.Author != "":
		return fmt.Sprintf("by the agent %q for %s", caller.Agent, caller.Author)
	default:
		return fmt.Sprintf("by the agent %q with API key %s", caller.Agent, caller.Key)
	}
}

func referenceTo(object metav1.Object) *corev1.ObjectReference {
	kind := ""
	switch object.(type) {
	case *v1alpha1.Post:
		kind = "Post"
	case *v1alpha1.Connection:
		kind = "Connection"
	case *v1alpha1.APIKey:
		kind = "APIKey"
	case *v1alpha1.Media:
		kind = "Media"
	case *v1alpha1.OAuthGrant:
		kind = "OAuthGrant"
	case *v1alpha1.PostSchedule:
		kind = "PostSchedule"
	case *v1alpha1.Notifier:
		kind = "Notifier"
	}
	return &corev1.ObjectReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: kind,
		Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID(), ResourceVersion: object.GetResourceVersion(),
	}
}

// signedByAny is like signed, but also records an API key. The policy herald-apiserver-posts rejects a change to a
// post's content that does not name who made it.
func signedByAny(object *metav1.ObjectMeta, caller Caller) {
	if caller.Author == "" {
		caller.Author = access.KeyAuthor + caller.Key
	}
	signed(object, caller)
}

// signed records the user who last changed an object in an annotation.
func signed(object *metav1.ObjectMeta, caller Caller) {
	if caller.Author != "" {
		metav1.SetMetaDataAnnotation(object, v1alpha1.LastAuthorAnnotation, caller.Author)
	}
}
