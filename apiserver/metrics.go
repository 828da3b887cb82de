// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are those of the apiserver. Requests are labelled by
// operationId, so that ids in paths make no series of their own.
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
		Help: "Posts kept in memory for lists, finished ones included: as many as lie in the cluster.",
	}, func() float64 { return float64(listed()) })
	return &metrics{
		requests: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_http_requests_total",
			Help: "Requests answered, by operationId and HTTP status.",
		}, []string{"operation", "code"}),
		duration: register.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "herald_http_request_duration_seconds",
			Help:    "Time from the first byte of a request's header to the end of its answer, by operationId.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"operation"}),
		inFlight: register.NewGauge(prometheus.GaugeOpts{
			Name: "herald_http_requests_in_flight",
			Help: "Requests being answered.",
		}),
		checks: register.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_connection_readiness_checks_total",
			Help: "Answers to the question whether a connection can be posted to, by answer: ready, reconnect or unavailable.",
		}, []string{"answer"}),
	}
}
