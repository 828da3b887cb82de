// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiclock follows the clock of the Kubernetes API. It compares that clock with this machine's, using the Date
// header of responses that the process receives anyway, and corrects the machine's time where the two certainly differ.
package apiclock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
)

const (
	// tolerance is the smallest certain difference that is corrected. The clocks of machines with NTP never differ that
	// much.
	tolerance = 500 * time.Millisecond
	// resolution is the resolution of the Date header: the response was sent at some time within that second.
	resolution = time.Second
	// maxSamples is the number of responses to remember, and sampleTTL is how long. Two clocks diverge by at most 1/drift
	// of the elapsed time: NTP gives up beyond 500 ppm.
	maxSamples = 32
	sampleTTL  = 2 * time.Minute
	drift      = 2000
	// agreeing is the number of consecutive responses that must agree before the correction changes, so that no single
	// response can change it. Once certain responses agree, it changes even if earlier ones were far off.
	agreeing = 2
	certain  = 8
	// maxSpread is the maximum distance between responses. Above it, the API servers disagree and none of them is trusted.
	maxSpread = 30 * time.Second
	// pollInterval is the maximum time between Watch's calls to the API, and pollTimeout is the timeout of each call.
	pollInterval = time.Minute
	pollTimeout  = 10 * time.Second
)

// Options configure a Clock. All but Base are optional.
type Options struct {
	// Base is this machine's clock.
	Base clock.WithTickerAndDelayedExecution
	// Elapsed returns the machine's running time, as timers measure it. The default is its monotonic clock.
	Elapsed func() time.Duration
	// Registerer registers the metric. If nil, there is none.
	Registerer prometheus.Registerer
	// Log receives corrections. If nil, they are discarded.
	Log *slog.Logger
}

// Clock is the best known estimate of the Kubernetes API's clock. It equals this machine's clock until the two
// certainly differ. Between responses it advances with elapsed time. When the machine's clock is set, Clock follows
// only after a comparison with the API, since a wrong clock would publish posts that are not due. Timers follow the
// machine's clock.
//
// A correction is a single step. It cannot break the send windows of claims, because the sender and the lookup both
// read the corrected time from then on.
type Clock struct {
	clock.WithTickerAndDelayedExecution

	log     *slog.Logger
	elapsed func() time.Duration
	// epoch is the machine's time when elapsed was zero.
	epoch time.Time

	mu sync.Mutex
	// samples are the latest samples, oldest first.
	samples []sample
	// set is the accepted adjustment of the machine's clock. correction is added to it.
	set, correction time.Duration
	// measured is true once a comparison has set or confirmed the correction.
	measured bool
}

// sample bounds the difference between the API's clock and this machine's unadjusted clock.
type sample struct {
	at        time.Time
	low, high time.Duration
}

// New returns a Clock that has not measured anything yet.
func New(o Options) *Clock {
	c := &Clock{WithTickerAndDelayedExecution: o.Base, log: o.Log, elapsed: o.Elapsed}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.elapsed == nil {
		c.elapsed = monotonic()
	}
	// Round strips the monotonic reading, here and below.
	c.epoch = o.Base.Now().Round(0).Add(-c.elapsed())
	promauto.With(o.Registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_clock_skew_seconds",
		Help: "Lead of this machine's clock over the Kubernetes API's, negative if it is behind; 0 unless they certainly differ. Herald uses the latter.",
	}, func() float64 { return c.Skew().Seconds() })
	return c
}

// monotonic returns a function that reports the machine's running time since the call, excluding suspensions.
func monotonic() func() time.Duration {
	machine := clock.RealClock{}
	started := machine.Now()
	return func() time.Duration { return machine.Since(started) }
}

func (c *Clock) steady() time.Time { return c.epoch.Add(c.elapsed()) }

func (c *Clock) adjustment() time.Duration {
	return c.WithTickerAndDelayedExecution.Now().Round(0).Sub(c.steady())
}

// Now implements clock.PassiveClock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.steady().Add(c.set + c.correction)
}

// Since implements clock.PassiveClock.
func (c *Clock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Skew returns how far this machine's clock is ahead of the API's clock: the middle of the known bounds, or zero if
// they are unknown or include zero.
func (c *Clock) Skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high, n := c.bounds()
	if set := c.adjustment(); n > 0 && (low > set || high < set) {
		return set - (low+high)/2
	}
	return 0
}

// Check is a readiness check: a process without the correct time is not ready.
func (c *Clock) Check(*http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.measured:
		return errors.New("the clock could not be compared with the Kubernetes API's clock yet")
	case c.inconsistent():
		return fmt.Errorf("answers of the Kubernetes API give times that are more than %s apart: check the clocks of the control plane and of this node", maxSpread)
	}
	return nil
}

// Wrap is a transport.WrapperFunc that measures the responses of next, which must send requests to the Kubernetes API.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return &clockTransport{c, next} }

type clockTransport struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m *clockTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := m.clock.steady()
	resp, err := m.next.RoundTrip(r)
	if err != nil {
		return resp, err //nolint:wrapcheck // a transport returns the errors of the transport that it wraps
	}
	answered := m.clock.steady()
	if date, wrong := http.ParseTime(resp.Header.Get("Date")); wrong == nil {
		m.clock.observe(date, sent, answered)
	}
	return resp, nil
}

// observe adds the measurement from one response. sent and answered are times of the steady clock.
func (c *Clock) observe(date, sent, answered time.Time) {
	if answered.Before(sent) {
		return // a steady clock does not run backwards
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.samples = append(c.samples, sample{at: answered, low: date.Sub(answered), high: date.Add(resolution).Sub(sent)})
	if len(c.samples) > maxSamples {
		c.samples = append(c.samples[:0], c.samples[1:]...)
	}
	low, high, n := c.bounds()
	if c.measured && n < agreeing {
		return
	}
	c.measured = true
	was, middle := c.correction, (low+high)/2
	right := func(ahead time.Duration) bool { return ahead >= low-tolerance && ahead <= high+tolerance }
	now := c.set + c.correction
	c.set = c.adjustment()
	switch {
	case right(c.set + c.correction): // the machine's clock was set correctly, or barely changed
	case (middle - c.set).Abs() <= tolerance:
		c.correction = 0
	case right(now): // the machine's clock was set to a wrong time, or corrected
		c.correction = now - c.set
	default:
		c.correction = middle - c.set
	}
	if c.correction != was {
		c.log.Warn("This machine's clock differs from the Kubernetes API's clock, which Herald uses. Check the clock of this node",
			"corrected", c.correction.String(), "was", was.String())
	}
}

// bounds returns the bounds given by the latest responses that agree, and the number of those responses. The bounds of
// older samples widen with age. The caller must hold the lock.
func (c *Clock) bounds() (low, high time.Duration, n int) {
	for _, a := range slices.Backward(c.samples) {
		age := c.samples[len(c.samples)-1].at.Sub(a.at)
		if age < 0 || age > sampleTTL {
			break
		}
		l, h := a.low-age/drift, a.high+age/drift
		if n > 0 {
			l, h = max(l, low), min(h, high)
		}
		if l > h {
			break
		}
		low, high, n = l, h, n+1
	}
	return low, high, n
}

// inconsistent reports whether recent responses are too far apart. The caller must hold the lock.
func (c *Clock) inconsistent() bool {
	if _, _, n := c.bounds(); n >= certain || n == 0 {
		return false
	}
	last := c.samples[len(c.samples)-1]
	for _, a := range c.samples {
		if last.at.Sub(a.at).Abs() <= sampleTTL && (a.low-last.high > maxSpread || last.low-a.high > maxSpread) {
			return true
		}
	}
	return false
}

// Watch calls the API immediately and then every minute until ctx is done, for processes that make no other requests.
// After the machine's clock has been set or the machine has been suspended, it retries until a response carries the
// time.
func (c *Clock) Watch(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("cannot reach the Kubernetes API: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("cannot determine the address of the Kubernetes API: %w", err)
	}
	address := strings.TrimRight(base.String(), "/") + "/version"
	ticker := c.NewTicker(checkInterval)
	defer ticker.Stop()
	next := c.elapsed()
	for {
		if now := c.elapsed(); now >= next || c.stepped() {
			next = now + pollInterval
			// An error leaves the state unchanged.
			_ = poll(ctx, client, address)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// stepped reports whether the machine's clock was set since the last accepted response.
func (c *Clock) stepped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.adjustment() - c.set).Abs() >= jumpThreshold
}

func poll(ctx context.Context, client *http.Client, address string) error {
	ctx, cancel := context.WithTimeout(ctx, pollTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", address, err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("cannot ask %s: %w", address, err)
	}
	return resp.Body.Close()
}
