// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/cmd/herald/internal/preflight"
	"github.com/herald-social/herald/test/must"
)

// hurriedClock is a clock whose timers fire immediately.
type hurriedClock struct{ *clocktesting.FakeClock }

func (c hurriedClock) After(d time.Duration) <-chan time.Time {
	over := c.FakeClock.After(d)
	c.Step(d)
	return over
}

// TestAwait starts while the Kubernetes API is unavailable.
func TestAwait(t *testing.T) {
	away := fmt.Errorf("%w: connection refused", preflight.ErrUnavailable)
	for name, tc := range map[string]struct {
		reason string
		// until is when the API starts to respond, and answer is its response.
		until  time.Duration
		answer error
		// ends is when the shutdown starts, or zero for never.
		ends  time.Duration
		says  string
		lines int
		waits time.Duration
	}{
		"there":       {"no problem is logged", 0, nil, 0, "", 0, 0},
		"a moment":    {"a control plane was restarted", 10 * time.Second, nil, 0, "", 2, 10 * time.Second},
		"an upgrade":  {"the log reports each minute of waiting, and its end", 5 * time.Minute, nil, 0, "", 6, 5 * time.Minute},
		"away":        {"the wait is limited, and Kubernetes restarts the process", time.Hour, nil, 0, "gave up after 15m0s", 15, apiTimeout},
		"too old":     {"waiting would not help", 10 * time.Second, errors.New("too old"), 0, "too old", 1, 10 * time.Second},
		"immediately": {"no problem is logged", 0, errors.New("too old"), 0, "too old", 0, 0},
		"stopped":     {"a stopped process ends", time.Hour, nil, 20 * time.Second, "", 1, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			started := time.Unix(0, 0)
			clock := hurriedClock{clocktesting.NewFakeClock(started)}
			var out bytes.Buffer
			err := waitForAPI(ctx, clock, slog.New(slog.NewTextHandler(&out, nil)), func() error {
				now := clock.Since(started)
				if tc.ends > 0 && now >= tc.ends {
					cancel()
				}
				if ctx.Err() != nil || now < tc.until {
					return away
				}
				return tc.answer
			})
			if got := fmt.Sprint(err); (tc.says == "") != (err == nil) || !strings.Contains(got, tc.says) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if got := strings.Count(out.String(), "\n"); got != tc.lines {
				t.Errorf("%s: %d lines, want %d:\n%s", tc.reason, got, tc.lines, &out)
			}
			if waited := clock.Since(started); waited < tc.waits || waited > tc.waits+2*apiPause {
				t.Errorf("%s: it waited %s", tc.reason, waited)
			}
		})
	}
}

// TestNamespaceOfKubeconfig: a process with a kubeconfig may run in a pod of another cluster.
func TestNamespaceOfKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [{"name": "a", "context": {"cluster": "a", "namespace": "elsewhere"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	api, err := Connect(file, "test")
	must.Succeed(t, err)
	if api.Namespace != "elsewhere" {
		t.Errorf("the namespace is %q, want that of the kubeconfig's context", api.Namespace)
	}
}
