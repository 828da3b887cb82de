// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiclock goes by the clock of the Kubernetes API. It compares that with the clock of
// this machine, by the header Date of the answers that the process gets anyway, and corrects the
// latter where they certainly differ.
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
	// tolerance is by how much the clocks must certainly differ for a correction to change. Machines
	// whose clocks are kept by NTP are never corrected.
	tolerance = 500 * time.Millisecond
	// resolution is that of Date: the time of an answer lies within the second that it names.
	resolution = time.Second
	// maxSamples is how many answers are remembered, and keptFor is for how long. drift is how many times
	// as long it takes two clocks to go apart by that: NTP gives up beyond 500 ppm.
	maxSamples = 32
	sampleTTL  = 2 * time.Minute
	drift      = 2000
	// agreeing is how many answers in a row must agree before a correction is changed, so that no
	// single answer does it; certain is how many do although earlier ones were far from them.
	agreeing = 2
	certain  = 8
	// maxSpread is how far answers may be from each other. Beyond that the API servers disagree among
	// themselves, and none is to be believed.
	maxSpread = 30 * time.Second
	// pollInterval is how often the API is asked, also if the process has nothing else to ask, and
	// askWithin how long for an answer is waited.
	pollInterval = time.Minute
	pollTimeout  = 10 * time.Second
)

// Options are what a clock needs. All but Registerer and Log are required.
type Options struct {
	// Base is the clock of this machine.
	Base clock.WithTickerAndDelayedExecution
	// Elapsed is how long the machine has run since some moment, as timers count it; nil is its monotonic clock.
	Elapsed func() time.Duration
	// Registerer takes the metric; nil none.
	Registerer prometheus.Registerer
	// Log tells of corrections; nil tells nothing.
	Log *slog.Logger
}

// Clock is the clock of the Kubernetes API, as far as it is known: that of this machine at first,
// and wherever they do not certainly differ. Between the answers it goes on as time elapses: where the clock of the machine is
// set meanwhile, the API is asked before that is believed, since a clock that was set wrong would publish what is not due. Its
// timers are those of the machine. A correction is made in one step. That cannot break the windows of claims: who may send, and
// who looks up what was sent, read the same time from then on.
type Clock struct {
	clock.WithTickerAndDelayedExecution

	log     *slog.Logger
	elapsed func() time.Duration
	// epoch is what the machine showed when nothing had elapsed.
	epoch time.Time

	mu sync.Mutex
	// samples are the latest ones, the last one last.
	samples []sample
	// set is by how much the machine's clock was set, as far as that was believed, and correction what is added to it.
	set, correction time.Duration
	// measured is set from the first correction, or the first finding that none is needed, on.
	measured bool
}

// sample tells between which bounds the API's clock is ahead of what this machine showed at the begin and has run since.
type sample struct {
	at        time.Time
	low, high time.Duration
}

// New returns a clock that has measured nothing.
func New(o Options) *Clock {
	c := &Clock{WithTickerAndDelayedExecution: o.Base, log: o.Log, elapsed: o.Elapsed}
	if c.log == nil {
		c.log = slog.New(slog.DiscardHandler)
	}
	if c.elapsed == nil {
		c.elapsed = monotonic()
	}
	// Round strips what the monotonic clock says, here and below.
	c.epoch = o.Base.Now().Round(0).Add(-c.elapsed())
	promauto.With(o.Registerer).NewGaugeFunc(prometheus.GaugeOpts{
		Name: "herald_clock_skew_seconds",
		Help: "How far the clock of this machine is ahead of the Kubernetes API's, negative if it is behind; 0 while they do not certainly differ. Herald goes by the latter.",
	}, func() float64 { return c.Skew().Seconds() })
	return c
}

// monotonic is how long this machine has run from now on, without what it was suspended for.
func monotonic() func() time.Duration {
	machine := clock.RealClock{}
	begun := machine.Now()
	return func() time.Duration { return machine.Since(begun) }
}

// steady is what the clock of this machine would show if nobody had set it.
func (c *Clock) steady() time.Time { return c.epoch.Add(c.elapsed()) }

// adjustment is by how much the clock of this machine was set since the begin.
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

// Skew is how far the clock of this machine is ahead of the API's, in the middle between the bounds that are known; zero
// while they do not certainly differ.
func (c *Clock) Skew() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	low, high, n := c.bounds()
	if set := c.adjustment(); n > 0 && (low > set || high < set) {
		return set - (low+high)/2
	}
	return 0
}

// Check is that of probes.Checks: a process that cannot tell the time is not ready.
func (c *Clock) Check(*http.Request) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case !c.measured:
		return errors.New("the clock could not be compared with that of the Kubernetes API yet")
	case c.inconsistent():
		return fmt.Errorf("answers of the Kubernetes API give times that are more than %s apart: see to the clocks of the control plane and of this node", maxSpread)
	}
	return nil
}

// Wrap measures by what goes through a transport to the Kubernetes API. It is a transport.WrapperFunc.
func (c *Clock) Wrap(next http.RoundTripper) http.RoundTripper { return &measuring{c, next} }

type measuring struct {
	clock *Clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (m *measuring) RoundTrip(r *http.Request) (*http.Response, error) {
	sent := m.clock.steady()
	resp, err := m.next.RoundTrip(r)
	if err != nil {
		return resp, err //nolint:wrapcheck // a transport returns the errors of the one that it wraps
	}
	answered := m.clock.steady()
	if date, wrong := http.ParseTime(resp.Header.Get("Date")); wrong == nil {
		m.clock.observe(date, sent, answered)
	}
	return resp, nil
}

// observe learns from an answer that was asked for and came at these times, had nobody set the clock of this machine.
func (c *Clock) observe(date, sent, answered time.Time) {
	if answered.Before(sent) {
		return // no clock shows that
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
	case right(c.set + c.correction): // where the machine's clock was set, that was right, or nearly nothing
	case (middle - c.set).Abs() <= tolerance:
		c.correction = 0
	case right(now): // the clock of the machine was set wrong, or put right
		c.correction = now - c.set
	default:
		c.correction = middle - c.set
	}
	if c.correction != was {
		c.log.Warn("The clock of this machine differs from that of the Kubernetes API; Herald goes by the latter. See to the time of this node",
			"corrected", c.correction.String(), "was", was.String())
	}
}

// bounds are those of the latest answers that agree, and how many do. What an earlier one told is
// less certain the longer ago it was. The lock is held.
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

// inconsistent reports whether answers that came lately are too far from each other. The lock is held.
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

// Watch asks the API at once and every minute until ctx ends, for processes that have nothing else to ask. When the clock of
// the machine was set, or the machine was suspended, it asks until an answer has told what the time is.
func (c *Clock) Watch(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("cannot reach the Kubernetes API: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return fmt.Errorf("cannot tell the address of the Kubernetes API: %w", err)
	}
	address := strings.TrimRight(base.String(), "/") + "/version"
	ticker := c.NewTicker(checkInterval)
	defer ticker.Stop()
	next := c.elapsed()
	for {
		if now := c.elapsed(); now >= next || c.stepped() {
			next = now + pollInterval
			// Without an answer it is as it was.
			_ = poll(ctx, client, address)
		}
		select {
		case <-ticker.C():
		case <-ctx.Done():
			return nil
		}
	}
}

// stepped reports whether the clock of the machine was set since the last answer.
func (c *Clock) stepped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return (c.adjustment() - c.set).Abs() >= jumpThreshold
}

// poll has the transport of a client measure.
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
