// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/herald-social/herald/api/v1alpha1"
)

func TestReport(t *testing.T) {
	long := strings.Repeat("é", 2000)
	broken := errors.New("broken")
	for name, tc := range map[string]struct {
		reason  string
		summary Summary
		gone    bool
		fails   error
		writes  int
		event   string
	}{
		"unchanged":    {"a write that says nothing wakes every watcher", Summary{Reason: "Waiting", Message: "a"}, false, nil, 0, ""},
		"more is said": {"the reason is the same, so it is no event", Summary{Reason: "Waiting", Message: "b"}, false, nil, 1, ""},
		"trouble":      {"a person has to look at it", Summary{Reason: "Broken", Message: "mend it"}, false, nil, 1, "Warning Broken mend it"},
		"done":         {"no person has to look at it", Summary{Reason: "Done", Message: "x", Ready: true}, false, nil, 1, "Normal Done x"},
		"a long story": {"the Kubernetes API would refuse the event", Summary{Reason: "Broken", Message: long}, false, nil, 1, "Warning Broken é"},
		"gone":         {"there is nothing to write to, and nothing to tell", Summary{Reason: "Broken"}, true, nil, 1, ""},
		"not written":  {"the next pass tells it", Summary{Reason: "Broken"}, false, broken, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
			Apply(&team.Status.Conditions, Summary{Reason: "Waiting", Message: "a"}, 1, noon)
			builder := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(team)
			if !tc.gone {
				builder = builder.WithObjects(team.DeepCopy())
			}
			writes := 0
			c := builder.WithInterceptorFuncs(interceptor.Funcs{
				SubResourceUpdate: func(ctx context.Context, c client.Client, name string, obj client.Object, opts ...client.SubResourceUpdateOption) error {
					writes++
					if tc.fails != nil {
						return tc.fails
					}
					return c.SubResource(name).Update(ctx, obj, opts...)
				},
			}).Build()
			if !tc.gone {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(team), team); err != nil {
					t.Fatal(err)
				}
			}
			recorder := events.NewFakeRecorder(1)
			reporter := &Reporter{Client: c, Events: recorder, Action: "Reconcile", Normal: []string{"Done"}}
			before := team.Status.DeepCopy()
			Apply(&team.Status.Conditions, tc.summary, 1, noon.Add(time.Minute))
			if err := reporter.Report(t.Context(), team, before, &team.Status); !errors.Is(err, tc.fails) || (err == nil) != (tc.fails == nil) {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			got := ""
			select {
			case got = <-recorder.Events:
			default:
			}
			if writes != tc.writes || !strings.HasPrefix(got, tc.event) || (got == "") != (tc.event == "") {
				t.Errorf("%s: %d writes and the event %q", tc.reason, writes, got)
			}
			if len(got) > 1024+len("Warning Broken ") || !utf8.ValidString(got) {
				t.Errorf("the event has %d bytes: %q", len(got), got)
			}
			if tc.summary.Message == long && len(got) < 900 {
				t.Errorf("the event keeps %d bytes of a long message", len(got))
			}
		})
	}
}

func TestReportWithoutRecorder(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	team := &v1alpha1.Team{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	c := fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(team).WithObjects(team).Build()
	Apply(&team.Status.Conditions, Summary{Reason: "Done"}, 1, noon)
	if err := (&Reporter{Client: c}).Report(t.Context(), team, &v1alpha1.TeamStatus{}, &team.Status); err != nil {
		t.Error(err)
	}
}
