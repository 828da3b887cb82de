// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/internal/apiclock"
)

// TestPodOfKubeconfig: a process with a kubeconfig may run in a pod of another cluster, where it must not write.
func TestPodOfKubeconfig(t *testing.T) {
	t.Setenv(podVariable, "herald-manager-1")
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [{"name": "a", "context": {"cluster": "a", "namespace": "elsewhere"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := (&commonFlags{kubeconfig: file}).kubeConfig("test")
	if err != nil {
		t.Fatal(err)
	}
	if cluster.namespace != "elsewhere" || cluster.pod != "" {
		t.Errorf("it takes itself for the pod %q in %s", cluster.pod, cluster.namespace)
	}
}

// TestReportClock checks that the condition is written. Package internal/clockcondition tests its contents.
func TestReportClock(t *testing.T) {
	asked := make(chan string, 10)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.Method + " " + r.URL.Path:
		default:
		}
		http.NotFound(w, r)
	}))
	defer api.Close()
	cluster := kubernetes{
		Config: &rest.Config{Host: api.URL}, namespace: "social", pod: "outreach-manager-1",
		clock: apiclock.New(apiclock.Options{Base: clock.RealClock{}}),
	}
	cluster.reportClock(t.Context(), slog.New(slog.DiscardHandler))
	if got, want := <-asked, "PATCH /api/v1/namespaces/social/pods/outreach-manager-1/status"; got != want {
		t.Errorf("the Kubernetes API is asked to %s, want %s", got, want)
	}

	cluster.pod = ""
	cluster.Config = nil // a request would need it
	cluster.reportClock(t.Context(), slog.New(slog.DiscardHandler))
}
