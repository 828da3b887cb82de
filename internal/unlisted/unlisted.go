// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package unlisted counts platform errors whose code is not in a table, so that operators notice a new one on its first
// day.
package unlisted

import (
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"github.com/herald-social/herald/internal/text"
)

// The operations that such an error may be a response to.
const (
	Publish  = "publish"
	Prepare  = "prepare"
	Lookup   = "lookup"
	Identify = "identify"
	Inspect  = "inspect"
	Refresh  = "refresh"
)

const (
	// maxCodes limits the number of codes per platform with a separate series: a proxy that makes up a code for each
	// response must not fill Prometheus's memory.
	maxCodes = 50
	// other is the label for codes beyond that limit, and for strings that do not look like a code.
	other = "other"
)

// isCode reports whether a string has the form of platforms' codes, such as "190/463" and "HTTP 403".
func isCode(code string) bool {
	const first = text.Letters + text.Digits
	return text.Consists(code, 1, 64, first+"_./ -") && strings.Contains(first, code[:1])
}

// Counter counts unlisted errors. A nil Counter counts nothing.
type Counter struct {
	errors *prometheus.CounterVec

	mu    sync.Mutex
	codes map[string]map[string]bool
}

// New makes a counter and registers its metric, unless registerer is nil.
func New(registerer prometheus.Registerer) *Counter {
	return &Counter{
		errors: promauto.With(registerer).NewCounterVec(prometheus.CounterOpts{
			Name: "herald_platform_unlisted_errors_total",
			Help: "Errors of platforms with a code that is in none of Herald's tables, by platform, by operation (publish, prepare, lookup, identify, inspect or refresh) " +
				"and by the platform's code; other: it has no usable form, or there are too many.",
		}, []string{"platform", "operation", "code"}),
		codes: map[string]map[string]bool{},
	}
}

// Inc counts a platform error.
func (c *Counter) Inc(platform, operation, code string) {
	if c != nil {
		c.errors.WithLabelValues(platform, operation, c.label(platform, code)).Inc()
	}
}

func (c *Counter) label(platform, code string) string {
	if !isCode(code) {
		return other
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.codes[platform]
	switch {
	case known[code]:
	case len(known) >= maxCodes:
		return other
	case known == nil:
		c.codes[platform] = map[string]bool{code: true}
	default:
		known[code] = true
	}
	return code
}
