// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/text"
)

const (
	// maxNote limits an event's note, in bytes (events.k8s.io/v1: 1 kB), and maxInstance the name of the reporting
	// instance.
	maxNote, maxInstance = 1024, 128
	// actionOfPerson and actionOfAgent are the actions of this package's events.
	actionOfPerson, actionOfAgent = "PersonActed", "AgentActed"
)

// Events writes events.
type Events struct {
	client   rest.Interface
	instance string
	clock    clock.PassiveClock
}

// NewEvents returns an Events.
func NewEvents(config *rest.Config, userAgent string, clock clock.PassiveClock) (*Events, error) {
	client, err := newClient(config, userAgent, "/apis", eventsv1.SchemeGroupVersion, kinds(eventsv1.SchemeGroupVersion, &eventsv1.Event{}))
	if err != nil {
		return nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("read the name of this machine for events: %w", err)
	}
	return &Events{client: client, instance: text.TruncateBytes(FieldOwner+"-"+host, maxInstance), clock: clock}, nil
}

// Write stores an event about an object, in the object's namespace. Each call creates an event. Events are not
// aggregated, because each describes a different action.
func (e *Events) Write(ctx context.Context, about *corev1.ObjectReference, reason, note string) error {
	action := actionOfPerson
	if strings.HasSuffix(reason, "ByAgent") {
		action = actionOfAgent
	}
	event := &eventsv1.Event{
		ObjectMeta:          metav1.ObjectMeta{Namespace: about.Namespace, Name: "herald-" + strings.ToLower(rand.Text())},
		EventTime:           metav1.NewMicroTime(e.clock.Now()),
		ReportingController: FieldOwner,
		ReportingInstance:   e.instance,
		Action:              action,
		Reason:              reason,
		Regarding:           *about,
		Note:                text.TruncateBytes(note, maxNote),
		Type:                corev1.EventTypeNormal,
	}
	return e.client.Post().Namespace(about.Namespace).Resource("events").Body(event).Do(ctx).Error()
}
