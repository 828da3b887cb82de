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
	// every is how often the state is looked at, and so how often at most the condition is written. A process asks the
	// Kubernetes API for its time as often.
	every = time.Minute
	// within bounds one write.
	within = 10 * time.Second
)

// Pods are those of one namespace, as client-go's typed client has them.
type Pods interface {
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*corev1.Pod, error)
}

// Writer keeps the condition of a pod. All fields are required.
type Writer struct {
	Pods Pods
	// Pod is the name of the pod that this process runs in.
	Pod   string
	State func() apiclock.Measurement
	// Clock is that of the process. Times of transitions are by it.
	Clock clock.WithTicker
	Log   *slog.Logger

	// current is the condition that the pod has, nil if it has none. It is known once the pod was read.
	current *corev1.PodCondition
	read    bool
	// failing: it was logged that the condition cannot be written.
	failing bool
}

// Run writes the condition when it changes, until ctx ends. Nothing depends on the condition: if it cannot be written, the log
// says so once, and the next minute tries again.
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

// write writes the condition if the pod has another one.
func (w *Writer) write(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if !w.read {
		// The account may not read pods. The answer to a patch that changes nothing is the pod.
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

// patch puts conditions into the status of the pod, beside those that it has, and reads what it has then.
func (w *Writer) patch(ctx context.Context, conditions ...corev1.PodCondition) error {
	patch := map[string]any{}
	if len(conditions) > 0 {
		patch["status"] = map[string]any{"conditions": conditions}
	}
	data, err := json.Marshal(patch)
	if err != nil {
		return err
	}
	// Conditions are merged by their type.
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
