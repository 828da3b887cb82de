// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/config/crd"
)

// api responds like a Kubernetes API whose CRDs change.
type api struct {
	definitions []*apiextensionsv1.CustomResourceDefinition

	mu sync.Mutex
	// version is the resourceVersion of every CRD, status is the status of an error, and older is whether a CRD is
	// outdated.
	version string
	status  int
	older   bool
	// compared counts how often whole CRDs are read.
	compared int
}

func (a *api) set(change func(*api)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	change(a)
}

// ServeHTTP implements http.Handler.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/version" {
		_ = json.NewEncoder(w).Encode(map[string]string{"gitVersion": "v1.37.1"})
		return
	}
	if a.status != 0 {
		w.WriteHeader(a.status)
		return
	}
	for _, definition := range a.definitions {
		if !strings.HasSuffix(r.URL.Path, "/"+definition.Name) {
			continue
		}
		c := definition.DeepCopy()
		c.ResourceVersion = a.version
		if r.Header.Get("Accept") == onlyMetadata {
			_ = json.NewEncoder(w).Encode(map[string]any{"metadata": c.ObjectMeta})
			return
		}
		a.compared++
		if a.older {
			c.Spec.Versions[0].SelectableFields = nil
		}
		_ = json.NewEncoder(w).Encode(c)
	}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	definitions, err := read(crd.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	// The definitions are read once: parsing them for each request exceeds the response timeout on a busy machine.
	server := &api{definitions: definitions, version: "1"}
	site := httptest.NewServer(server)
	defer site.Close()
	clock := clocktesting.NewFakeClock(time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC))
	ctx, stop := context.WithCancel(t.Context())
	watch := &Watch{Config: &rest.Config{Host: site.URL}, Definitions: crd.Definitions, Clock: clock, Log: slog.New(slog.DiscardHandler)}
	ended := make(chan error, 1)
	go func() { ended <- watch.Start(ctx) }()
	// looked waits for the next check. It returns false if the watch has ended.
	looked := func() bool {
		for !clock.HasWaiters() {
			select {
			case err := <-ended:
				ended <- err
				return false
			case <-time.After(time.Millisecond):
			}
		}
		return true
	}
	compared := func() (n int) {
		server.set(func(a *api) { n = a.compared })
		return n
	}
	looked()
	first := compared()
	for _, tt := range []struct {
		reason string
		change func(*api)
		again  bool // it compares whole CRDs again
		ends   bool
	}{
		{"the definitions are unchanged", func(*api) {}, false, false},
		{"the definitions were applied again without changes", func(a *api) { a.version = "2" }, true, false},
		{"the API is unavailable", func(a *api) { a.status = http.StatusServiceUnavailable }, false, false},
		{"the permission was revoked", func(a *api) { a.status = http.StatusForbidden }, false, false},
		{"the CRDs were deleted, as during an uninstall", func(a *api) { a.status = http.StatusNotFound }, false, false},
		{"the definitions are unchanged", func(a *api) { a.status = 0 }, false, false},
		{"another release has brought older ones", func(a *api) { a.version, a.older = "3", true }, true, true},
	} {
		before := compared()
		server.set(tt.change)
		clock.Step(checkInterval)
		if goesOn := looked(); goesOn == tt.ends {
			t.Fatalf("%s: continues: %v", tt.reason, goesOn)
		}
		if again := compared() > before; again != tt.again {
			t.Errorf("%s: compared again: %v", tt.reason, again)
		}
	}
	if err := <-ended; !errors.Is(err, ErrOlder) || first == 0 {
		t.Errorf("the watch ended with %v, after %d comparisons", err, first)
	}
	stop()
	if err := watch.Start(ctx); err != nil {
		t.Errorf("at the end of the process: %v", err)
	}
}
