// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transport

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Values of the label "code" for calls without a usable response.
const (
	// codeNotSent: no connection was obtained.
	codeNotSent = "not_sent"
	// codeLost: the request was sent, but no complete response arrived.
	codeLost = "lost"
)

type metrics struct {
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
}

func newMetrics(r prometheus.Registerer) metrics {
	factory := promauto.With(r)
	return metrics{
		requests: factory.NewCounterVec(prometheus.CounterOpts{
			Name: "herald_platform_requests_total",
			Help: "Calls to platforms, by purpose and HTTP status of the answer (lost: sent without an answer; not_sent: no connection).",
		}, []string{"platform", "action", "code"}),
		duration: factory.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "herald_platform_request_duration_seconds",
			Help:    "Duration of calls to platforms, whatever their outcome.",
			Buckets: []float64{0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32},
		}, []string{"platform", "action"}),
	}
}

func (m metrics) observe(call Call, code string, took time.Duration) {
	m.requests.WithLabelValues(call.Platform, call.Action, code).Inc()
	m.duration.WithLabelValues(call.Platform, call.Action).Observe(took.Seconds())
}

func codeOf(resp *Response, err *Error) string {
	switch {
	case err == nil:
		return strconv.Itoa(resp.Status)
	case !err.Sent:
		return codeNotSent
	default:
		return codeLost
	}
}
