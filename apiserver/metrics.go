// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/apiserver/signin"
)

// metrics are the apiserver's metrics. Requests are labeled by operation, so ids in paths create no series.
type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
	checks   *prometheus.CounterVec
}

func newMetrics(registry prometheus.Registerer, listed func() int) *metrics {
	register := promauto.With(registry)
	register.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_post_index_posts",
		Help: "Posts in the in-memory index, including finished ones: all posts in the cluster.",
	}, func() float64 { return float64(listed()) })
	return &metrics{
		requests: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_http_requests_total",
			Help: "Requests served, by operation and HTTP status. An agent's tool call that fails internally counts as 500, although its HTTP status is 200.",
		}, []string{"operation", "code"}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "herald_http_request_duration_seconds",
			Help:    "Time from the first byte of a request's header to the end of its response, by operation.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation"}),
		inFlight: register.NewGauge(prometheus.GaugeOpts{
			Name: "herald_http_requests_in_flight",
			Help: "Requests in progress.",
		}),
		checks: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_connection_readiness_checks_total",
			Help: "Connection readiness checks, by result: ready, reconnect or unavailable.",
		}, []string{"answer"}),
	}
}

// newSignIns returns the sign-in counter with all of its series, so that the first failure is an increase.
func newSignIns(registry prometheus.Registerer, provider bool) *prometheus.CounterVec {
	counter := promauto.With(registry).NewCounterVec(prometheus.CounterOpts{
		Name: "herald_web_sign_ins_total",
		Help: "Completed sign-ins to the web application, by method (link or oidc) and outcome: succeeded, refused (a used link, or a person whom the " +
			"provider rejects) or failed (an administrator has to act).",
	}, []string{"method", "outcome"})
	method := signin.ByLink
	if provider {
		method = signin.ByOIDC
	}
	for _, outcome := range []signin.Outcome{signin.Succeeded, signin.Refused, signin.Failed} {
		counter.WithLabelValues(string(method), string(outcome))
	}
	return counter
}

// registerReady registers the gauge that reports whether users can sign in.
func registerReady(registry prometheus.Registerer, ready func() error) {
	promauto.With(registry).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_web_ready",
		Help: "1 if people can sign in to the web application: session keys exist, and the last request to the OpenID Connect provider, if any, " +
			"succeeded; else 0. Absent without the web application.",
	}, func() float64 {
		if ready() == nil {
			return 1
		}
		return 0
	})
}

// instrument counts the results of a checker.
func (m *metrics) instrument(checker *readiness.Checker) func(context.Context, *v1alpha1.Connection) readiness.Result {
	return func(ctx context.Context, connection *v1alpha1.Connection) readiness.Result {
		result := checker.Check(ctx, connection)
		m.checks.WithLabelValues(result.State.String()).Inc()
		return result
	}
}
