// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"math"
	"sync"
	"time"
)

// halfLife is the half-life of an observation's weight.
const halfLife = 15 * time.Minute

// Kind is a group of comparable uploads. Transfer dominates the duration of a video upload, and latency that of an image.
type Kind struct {
	Platform string
	Video    bool
}

// Pace measures upload throughput by kind, from the start until the platform's processing is complete and the post can be published. The
// zero Pace has no observations. It is safe for concurrent use.
type Pace struct {
	mu    sync.Mutex
	kinds map[Kind]*measured
}

// measured holds the age-weighted bytes and seconds of finished uploads.
type measured struct {
	bytes, seconds float64
	at             time.Time
}

// Observe adds a finished upload.
func (p *Pace) Observe(kind Kind, bytes int64, took time.Duration, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.kinds == nil {
		p.kinds = map[Kind]*measured{}
	}
	m := p.kinds[kind]
	if m == nil {
		m = &measured{at: now}
		p.kinds[kind] = m
	}
	left := math.Exp2(-max(now.Sub(m.at), 0).Seconds() / halfLife.Seconds())
	m.bytes, m.seconds, m.at = m.bytes*left+float64(bytes), m.seconds*left+took.Seconds(), now
}

// Rates returns the throughput per upload in bytes per second, for each kind with observations.
func (p *Pace) Rates() map[Kind]float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	rates := map[Kind]float64{}
	for kind, m := range p.kinds {
		if m.bytes > 0 && m.seconds > 0 {
			rates[kind] = m.bytes / m.seconds
		}
	}
	return rates
}

// longest is the maximum estimate for a stalled upload.
const longest = 24 * time.Hour

// TransferTime returns the upload duration of a number of bytes at a rate in bytes per second.
func TransferTime(bytes int64, rate float64) time.Duration {
	if seconds := float64(bytes) / rate; seconds < longest.Seconds() {
		return time.Duration(seconds * float64(time.Second))
	}
	return longest
}

// Left returns a running upload's remaining duration. sent is the number of bytes sent so far, or zero if unknown because the platform
// fetches the file itself. An upload slower than the rate is expected to stay slow. For an overdue upload with unknown progress, the
// estimate is the elapsed time.
func Left(bytes, sent int64, elapsed time.Duration, rate float64) time.Duration {
	expected := TransferTime(bytes, rate)
	switch {
	case sent > 0:
		left := max(bytes-sent, 0)
		slow := float64(elapsed) * float64(left) / float64(sent)
		return max(TransferTime(left, rate), time.Duration(min(slow, float64(longest))))
	case elapsed < expected:
		return expected - elapsed
	default:
		return min(elapsed, longest)
	}
}
