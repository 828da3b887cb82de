// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/posting"
)

// TestProbe checks that the response contains only the result, and that the log contains the cause once, however many
// requests there are.
func TestProbe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	var cause error
	handler := apiserver.ProbeHandler(slog.New(slog.NewTextHandler(&out, nil)), apiserver.ProbeChecks{
		Alive: func(*http.Request) error { return nil },
		Ready: func(*http.Request) error { return cause },
	})
	gone, leave := context.WithCancel(t.Context())
	leave()
	silent, unfilled := errors.New("nothing was heard of 10.96.0.1"), errors.New("the caches are not filled yet")
	for _, tt := range []struct {
		reason, path string
		cause        error
		status       int
		body, logged string
		gone         bool
	}{
		{"success is not logged", "/readyz", nil, 200, "ok\n", "", false},
		{"clients must not see the network's addresses", "/readyz", silent, 503, "not ready\n", "10.96.0.1", false},
		{"repeats are not logged", "/readyz", silent, 503, "not ready\n", "", false},
		{"a query does not add output", "/readyz?verbose", silent, 503, "not ready\n", "", false},
		{"a query does not exclude checks", "/readyz?exclude=ready", silent, 503, "not ready\n", "", false},
		{"probes have no subpaths", "/readyz/started", silent, 404, "404 page not found\n", "", false},
		{"another cause is logged", "/readyz", unfilled, 503, "not ready\n", "caches are not filled", false},
		{"each probe is tracked separately", "/livez", unfilled, 200, "ok\n", "", false},
		{"a client that disconnects is not logged", "/readyz", silent, 503, "not ready\n", "", true},
		{"the failure ended", "/readyz", nil, 200, "ok\n", "succeeds again", false},
		{"success remains unlogged", "/readyz", nil, 200, "ok\n", "", false},
		{"the same cause is logged again after a success", "/readyz", unfilled, 503, "not ready\n", "caches are not filled", false},
	} {
		cause = tt.cause
		out.Reset()
		ctx := t.Context()
		if tt.gone {
			ctx = gone
		}
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, tt.path, http.NoBody))
		if w.Code != tt.status || w.Body.String() != tt.body {
			t.Errorf("%s: got %d %q, want %d %q", tt.reason, w.Code, w.Body, tt.status, tt.body)
		}
		if (out.Len() > 0) != (tt.logged != "") || !strings.Contains(out.String(), tt.logged) || strings.Count(out.String(), "\n") > 1 {
			t.Errorf("%s: logged %q, want one line with %q", tt.reason, &out, tt.logged)
		}
	}
}

// behind is a machine whose clock is slow by the given time.
type behind struct {
	clock.WithTickerAndDelayedExecution

	by time.Duration
}

func (b behind) Now() time.Time                  { return b.WithTickerAndDelayedExecution.Now().Add(-b.by) }
func (b behind) Since(t time.Time) time.Duration { return b.Now().Sub(t) }

var _ = Describe("A replica whose clock is 61 seconds behind", func() {
	It("uses the Kubernetes API's clock, so its posts do not look restored", func(ctx SpecContext) {
		now := apiclock.New(apiclock.Options{Base: behind{clock.RealClock{}, 61 * time.Second}})
		config := rest.CopyConfig(restricted)
		config.Wrap(now.Wrap)
		r := start(config, func(c *apiserver.Config) { c.Clock, c.Check = now, now.Check })
		DeferCleanup(r.stop)
		Expect(now.Skew()).To(BeNumerically("~", -61*time.Second, time.Second), "determined from the API's response at startup")
		Expect(time.Until(now.Now())).To(BeNumerically("~", 0, 1500*time.Millisecond))

		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		post := func() reply {
			return do(ctx, r, "POST", base+"/posts", text("x", "now"), map[string]string{"Authorization": "Bearer " + t.token})
		}
		var made reply
		Eventually(func() int { made = post(); return made.status }).Should(Equal(http.StatusCreated))
		stored := t.stored(ctx, as[postBody](made).Data.ID)
		Expect(posting.Of(stored).Restored()).To(BeFalse())
		Expect(posting.Of(stored).Created()).To(BeTemporally("~", stored.CreationTimestamp.Time, 2*time.Second))
	})

	It("is not ready while it does not know the API's time", func(ctx SpecContext) {
		now := apiclock.New(apiclock.Options{Base: clock.RealClock{}})
		r := run(configure(restricted, func(c *apiserver.Config) { c.Clock, c.Check = now, now.Check }))
		DeferCleanup(r.stop)
		Eventually(func() int { return statusOf(r.site + "/health") }).Should(Equal(http.StatusOK))
		Expect(statusOf(r.private + "/readyz")).To(Equal(http.StatusServiceUnavailable))

		config := rest.CopyConfig(restricted)
		config.Wrap(now.Wrap)
		asking, err := client.New(config, client.Options{})
		Expect(err).NotTo(HaveOccurred())
		Expect(asking.List(ctx, &corev1.NodeList{})).NotTo(Succeed(), "a refusal has a date as well")
		Eventually(func() int { return statusOf(r.private + "/readyz") }).Should(Equal(http.StatusOK))
	})
})
