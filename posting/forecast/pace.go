// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"math"
	"sync"
	"time"
)

// halfLife is the time in which an observation loses half its weight.
const halfLife = 15 * time.Minute

// Kind groups comparable uploads. A video's duration depends mostly on the transfer, an image's on latency.
type Kind struct {
	Platform string
	Video    bool
}

// Pace measures how fast uploads are, by kind, from their start until the platform has processed them and the post can
// be published. The zero Pace has no observations. It is safe for concurrent use.
type Pace struct {
	mu    sync.Mutex
	kinds map[Kind]*measured
}

// measured holds the bytes and seconds of finished uploads, weighted by age.
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

// Rates returns the speed of an upload in bytes per second, for each kind that has been observed.
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

const longest = 24 * time.Hour

// TransferTime returns how long it takes to upload a number of bytes at a rate in bytes per second.
func TransferTime(bytes int64, rate float64) time.Duration {
	if seconds := float64(bytes) / rate; seconds < longest.Seconds() {
		return time.Duration(seconds * float64(time.Second))
	}
	return longest
}

// Remaining returns how much longer a running upload will take. sent is the number of bytes sent so far, or zero if
// that is unknown because the platform fetches the file itself. An upload that is slower than the rate is expected to
// remain slow. If an upload is overdue and its progress is unknown, the estimate is the time elapsed.
func Remaining(bytes, sent int64, elapsed time.Duration, rate float64) time.Duration {
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
