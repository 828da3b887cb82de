// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/text"
)

// longestNote is how much of a message an event holds, in bytes. The Kubernetes
// API refuses an event whose note has more than 1,024.
const longestNote = 1000

// Status is the status of an object, with its conditions.
type Status interface{ GetConditions() []metav1.Condition }

// Reporter stores the status of objects of one kind, and emits an event when
// the reason of their Ready condition changes.
type Reporter struct {
	// Client writes the status.
	Client client.Client
	// Events takes the events; nil emits none.
	Events events.EventRecorder
	// Action is what the events say was done.
	Action string
	// Normal are the reasons that no person has to look at; an event with any
	// other reason is a warning.
	Normal []string
}

// Report stores after, the status of obj, under the resourceVersion of obj. It
// writes nothing if after means the same as before. An object that is gone is no
// error; other errors are those of the Kubernetes API, wrapped.
func (r *Reporter) Report(ctx context.Context, obj client.Object, before, after Status) error {
	if v1alpha1.SemanticEqual(before, after) {
		return nil
	}
	if err := r.Client.Status().Update(ctx, obj); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		return fmt.Errorf("cannot write the status: %w", err)
	}
	ready := meta.FindStatusCondition(after.GetConditions(), v1alpha1.ConditionReady)
	if r.Events == nil || ready == nil || ready.Reason == Reason(before.GetConditions()) {
		return nil
	}
	kind := corev1.EventTypeWarning
	if slices.Contains(r.Normal, ready.Reason) {
		kind = corev1.EventTypeNormal
	}
	r.Events.Eventf(obj, nil, kind, ready.Reason, r.Action, "%s", text.TruncateBytes(ready.Message, longestNote))
	return nil
}
