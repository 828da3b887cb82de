// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package clockcondition

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/apiclock"
)

const (
	// every is the interval of the checks, and so the minimum interval of the writes. Processes request the Kubernetes
	// API's time at the same interval.
	every = time.Minute
	// within is the timeout of a write.
	within = 10 * time.Second
)

// Pods are the pods of one namespace; client-go's typed client implements it.
type Pods interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error)
}

// Writer maintains the condition of a pod. All fields are required.
type Writer struct {
	Pods Pods
	// Pod is the name of the pod that this process runs in.
	Pod   string
	State func() apiclock.Measurement
	// Clock is the clock of the process. It dates the transitions.
	Clock clock.WithTicker
	Log   *slog.Logger

	// current is the pod's condition, or nil if it has none. It is valid once read is true.
	current *corev1.PodCondition
	read    bool
	// failing is true once a failed write has been logged.
	failing bool
}

// Run writes the condition when it changes, until ctx ends. The condition is informational: a failed write is logged
// once and retried every minute.
func (w *Writer) Run(ctx context.Context) {
	ticker := w.Clock.NewTicker(every)
	defer ticker.Stop()
	for {
		w.report(ctx)
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return
		}
	}
}

func (w *Writer) report(ctx context.Context) {
	err := w.write(ctx)
	if err != nil && !w.failing && ctx.Err() == nil {
		w.Log.WarnContext(ctx, "The condition of this pod cannot tell whether its clock agrees, and nothing else is wrong: the metric herald_clock_skew_seconds tells it too. "+
			"If the account may not write it, apply the roles and policies of this version (config/rbac, or the chart)", "pod", w.Pod, "condition", Type, "error", err)
	}
	w.failing = err != nil
}

// write writes the condition if the pod's condition differs.
func (w *Writer) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if !w.read {
		// The account may not read pods, but the response to an empty patch contains the pod.
		if err := w.patch(ctx); err != nil {
			return fmt.Errorf("cannot read the pod: %w", err)
		}
	}
	want := Of(w.State())
	want.LastTransitionTime = metav1.NewTime(w.Clock.Now())
	if w.current != nil {
		if w.current.Status == want.Status {
			want.LastTransitionTime = w.current.LastTransitionTime
		}
		if w.current.Status == want.Status && w.current.Reason == want.Reason && w.current.Message == want.Message {
			return nil
		}
	}
	if err := w.patch(ctx, want); err != nil {
		return fmt.Errorf("cannot write the condition: %w", err)
	}
	return nil
}

// patch adds conditions to the pod's status, and reads the resulting condition.
func (w *Writer) patch(ctx context.Context, conditions ...corev1.PodCondition) error {
	patch := map[string]any{}
	if len(conditions) > 0 {
		patch["status"] = map[string]any{"conditions": conditions}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	// Conditions are merged by type.
	pod, err := w.Pods.Patch(ctx, w.Pod, types.StrategicMergePatchType, data, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	w.read, w.current = true, nil
	for _, condition := range pod.Status.Conditions {
		if condition.Type == Type {
			w.current = &condition
		}
	}
	return nil
}
