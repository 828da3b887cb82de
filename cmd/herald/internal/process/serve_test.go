// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/test/must"
)

// statusOf returns the status of a GET, or 0 if there was no response.
func statusOf(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		return 0
	}
	if err := resp.Body.Close(); err != nil {
		t.Error(err)
	}
	return resp.StatusCode
}

func TestProbesWhileWaiting(t *testing.T) {
	address := ports.ForTest(t)
	stop, err := ServeWaiting(t.Context(), configv1alpha1.Endpoint{BindAddress: address}, slog.New(slog.DiscardHandler))
	must.Succeed(t, err)
	if got := statusOf(t, "http://"+address+"/livez"); got != http.StatusOK {
		t.Errorf("a process that waits is alive: %d", got)
	}
	if got := statusOf(t, "http://"+address+"/readyz"); got != http.StatusServiceUnavailable {
		t.Errorf("a process that waits is not ready: %d", got)
	}
	if _, err := ServeWaiting(t.Context(), configv1alpha1.Endpoint{BindAddress: address}, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("a used address returned no error")
	}
	stop()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("the process itself listens there next: %v", err)
	}
	if err := listener.Close(); err != nil {
		t.Error(err)
	}
	for _, nowhere := range []string{"", "0"} {
		stop, err := ServeWaiting(t.Context(), configv1alpha1.Endpoint{BindAddress: nowhere}, slog.New(slog.DiscardHandler))
		must.Succeed(t, err)
		stop()
	}
}

func TestProfiles(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := slog.New(slog.DiscardHandler)
	address := ports.ForTest(t)
	must.Succeed(t, ServeProfiles(ctx, configv1alpha1.Endpoint{BindAddress: address}, log))
	for _, path := range []string{"", "heap", "goroutine", "profile?seconds=1", "trace?seconds=1"} {
		if got := statusOf(t, "http://"+address+"/debug/pprof/"+path); got != http.StatusOK {
			t.Errorf("%s: %d", path, got)
		}
	}
	if got := statusOf(t, "http://"+address+"/livez"); got != http.StatusNotFound {
		t.Errorf("an unknown path returned %d", got)
	}
	if err := ServeProfiles(ctx, configv1alpha1.Endpoint{BindAddress: address}, log); err == nil {
		t.Error("a used address returned no error")
	}
	if err := ServeProfiles(ctx, configv1alpha1.Endpoint{}, log); err != nil {
		t.Errorf("the default configuration returned %v", err)
	}
}
