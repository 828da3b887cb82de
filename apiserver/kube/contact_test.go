// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// TestContact verifies which responses from the Kubernetes API count as contact: successful ones, at the time of their
// request.
func TestContact(t *testing.T) {
	t.Parallel()
	begun := time.Unix(1_000_000, 0)
	clock := clocktesting.NewFakePassiveClock(begun)
	away := errors.New("away")
	var failing error
	source := &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			clock.SetTime(clock.Now().Add(5 * time.Second)) // a response takes some time
			return &v1alpha1.APIKeyList{}, failing
		},
		WatchFuncWithContext: func(_ context.Context, options metav1.ListOptions) (apiwatch.Interface, error) {
			if options.TimeoutSeconds == nil || *options.TimeoutSeconds != 90 {
				t.Errorf("a watch is to last %v seconds, want 90", options.TimeoutSeconds)
			}
			return apiwatch.NewFake(), failing
		},
	}
	c := &contact{clock: clock}
	noted := c.observe(source)
	list := func() error { _, err := noted.ListWithContext(t.Context(), metav1.ListOptions{}); return err }
	watch := func() error {
		events, err := noted.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: new(int64(600))})
		if err == nil {
			events.Stop()
		}
		return err
	}
	for _, tt := range []struct {
		reason  string
		ask     func() error
		failing error
		want    time.Time
	}{
		{"a list that failed tells nothing", list, away, time.Time{}},
		{"one that came is as old as the question", list, nil, begun.Add(time.Minute + 5*time.Second)},
		{"a watch that cannot be taken up tells nothing", watch, away, begun.Add(time.Minute + 5*time.Second)},
		{"one that can has missed nothing", watch, nil, begun.Add(3*time.Minute + 10*time.Second)},
	} {
		failing = tt.failing
		if err := tt.ask(); !errors.Is(err, tt.failing) {
			t.Errorf("%s: %v", tt.reason, err)
		}
		if got := c.LastContact(); !got.Equal(tt.want) {
			t.Errorf("%s: heard at %s, want %s", tt.reason, got, tt.want)
		}
		clock.SetTime(clock.Now().Add(time.Minute))
	}
}

// TestDenied verifies that only a response shows that the permissions in a namespace are back.
func TestDenied(t *testing.T) {
	t.Parallel()
	var failing error
	c := &contact{clock: clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))}
	source := c.observe(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1alpha1.APIKeyList{}, failing
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) {
			return apiwatch.NewFake(), failing
		},
	})
	for _, tt := range []struct {
		reason  string
		failing error
		want    bool
	}{
		{"an unavailable API denies nothing", errors.New("away"), false},
		{"the Role is gone", apierrors.NewForbidden(v1alpha1.GroupVersion.WithResource("apikeys").GroupResource(), "", nil), true},
		{"an unavailable API does not show that it is back", errors.New("away"), true},
		{"the Role is back", nil, false},
	} {
		failing = tt.failing
		_, _ = source.ListWithContext(t.Context(), metav1.ListOptions{})
		if got := c.denied.Load(); got != tt.want {
			t.Errorf("%s: denied is %v", tt.reason, got)
		}
	}
}

// TestSilentWatch verifies that a watch ends even if the server does not end it.
func TestSilentWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked context.Context
		source := &cache.ListWatch{
			ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, nil },
			WatchFuncWithContext: func(ctx context.Context, _ metav1.ListOptions) (apiwatch.Interface, error) {
				asked = ctx //nolint:fatcontext // the test inspects its end
				return apiwatch.NewFake(), nil
			},
		}
		begun := time.Now()
		events, err := (&contact{clock: clocktesting.NewFakePassiveClock(begun)}).observe(source).WatchWithContext(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		<-asked.Done()
		if took := time.Since(begun); took != cutAfter {
			t.Errorf("cut after %s, want %s", took, cutAfter)
		}
		events.Stop()
	})
}
