// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package forecast

import (
	"math"
	"sync"
	"time"
)

// halfLife is after how long an upload counts half as much as one that ends now.
const halfLife = 15 * time.Minute

// Kind is what uploads are compared with: a video is sent for minutes, an image is mostly waiting for answers.
type Kind struct {
	Platform string
	Video    bool
}

// Pace measures how fast uploads of each kind go, from their begin to the end of what the platform does with them before
// the post can be published. The zero Pace has measured nothing. It may be used from several goroutines.
type Pace struct {
	mu    sync.Mutex
	kinds map[Kind]*measured
}

// measured holds bytes and seconds of the uploads that have ended, the old ones for less.
type measured struct {
	bytes, seconds float64
	at             time.Time
}

// Observe counts an upload that has ended.
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

// Rates returns the bytes a second of one upload of each kind that was measured.
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

// longest bounds what is said of an upload that does not move.
const longest = 24 * time.Hour

// TransferTime is how long an upload of so many bytes takes at a rate in bytes a second.
func TransferTime(bytes int64, rate float64) time.Duration {
	if seconds := float64(bytes) / rate; seconds < longest.Seconds() {
		return time.Duration(seconds * float64(time.Second))
	}
	return longest
}

// Left is how much longer an upload takes that is under way. sent is how many of its bytes have gone out; zero if that is not
// known, because the platform fetches them itself. An upload that is slower than the rate goes on as slowly. If nothing is
// known of it, and it should have ended by now, it takes as long again.
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
