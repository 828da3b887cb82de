// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"
)

// Operation is a request's purpose, in one vocabulary for all platforms.
type Operation string

// The operations that a fault can name. Publish always makes a post visible.
const (
	Identity     Operation = "identity"
	RefreshToken Operation = "refresh_token"
	Upload       Operation = "upload"
	Metadata     Operation = "metadata" // an uploaded file's alt text
	Create       Operation = "create"
	Publish      Operation = "publish"
	Status       Operation = "status"
	List         Operation = "list"
	// Any matches every operation, including unnamed ones, such as deleting a post.
	Any Operation = "*"
)

// Kind is a kind of misbehavior.
type Kind string

// The kinds of faults.
const (
	// AnswerStatus responds with an HTTP status instead of acting.
	AnswerStatus Kind = "status"
	// DropBefore closes the connection without acting.
	DropBefore Kind = "drop_before"
	// DropAfter acts, then closes the connection without a response.
	DropAfter Kind = "drop_after"
	// ErrorAfter acts, then responds with an HTTP error status.
	ErrorAfter Kind = "error_after"
	// PublishesAndRefuses makes a post visible, then responds with a refusal.
	PublishesAndRefuses Kind = "publishes_and_refuses"
	// Delay waits before acting.
	Delay Kind = "delay"
	// SlowAnswer acts at once, and waits before it responds.
	SlowAnswer Kind = "slow_answer"
	// RateLimit responds with the platform's rate limit error.
	RateLimit Kind = "rate_limit"
	// TokenExpired responds as for an expired access token.
	TokenExpired Kind = "token_expired"
	// TokenRevoked responds as for a revoked token.
	TokenRevoked Kind = "token_revoked"
	// StaleList makes listings lag.
	StaleList Kind = "stale_list"
)

const (
	defaultStatus     = 500
	defaultRetryAfter = time.Minute
)

// Fault is a misbehavior for matching requests.
type Fault struct {
	Platform  string
	Operation Operation
	Kind      Kind
	// Times is the number of affected matching requests; 0 means 1.
	Times int
	// Percent is the share of affected matching requests, drawn at random; 0 means all. Other requests do not count against Times. Seed
	// initializes the random numbers: the same seed draws the same requests.
	Percent int
	Seed    uint64
	// Account limits the fault to an account's requests; empty means all.
	Account string
	// Status is the response status of AnswerStatus, ErrorAfter and PublishesAndRefuses; 0 means 500, or the Refusal's own status.
	Status int
	// Refusal is PublishesAndRefuses's reason, in the platform's wording.
	Refusal Refusal
	// Body and Header are PublishesAndRefuses's response with Status, in place of the platform's wording.
	Body   []byte
	Header http.Header
	// Delay is the wait of the kinds Delay and SlowAnswer, or the lag of StaleList.
	Delay time.Duration
	// RetryAfter is the retry delay of RateLimit and RefusalRateLimit; 0 means a minute.
	RetryAfter time.Duration

	// drawn reports, according to Percent, whether the fault applies to the next matching request.
	drawn func() bool
}

// operations returns the valid operation names of a fault.
func operations() []Operation {
	return []Operation{Identity, RefreshToken, Upload, Metadata, Create, Publish, Status, List, Any}
}

// group is a set of mutually exclusive faults: a request meets at most one of each group. A delay and a dropped
// connection can be combined; two statuses are applied one after the other.
type group int

const (
	groupAnswer group = iota
	groupDelay
	groupStale
	groups
)

func (k Kind) group() (group, bool) {
	switch k {
	case AnswerStatus, DropBefore, DropAfter, ErrorAfter, PublishesAndRefuses, RateLimit, TokenExpired, TokenRevoked:
		return groupAnswer, true
	case Delay, SlowAnswer:
		return groupDelay, true
	case StaleList:
		return groupStale, true
	default:
		return 0, false
	}
}

// Normalized fills in the defaults. It returns a descriptive error for an invalid fault.
func (f Fault) Normalized() (Fault, error) {
	if _, ok := f.Kind.group(); !ok {
		return f, fmt.Errorf("kind %q is not known; use status, drop_before, drop_after, error_after, "+
			"publishes_and_refuses, delay, slow_answer, rate_limit, token_expired, token_revoked or stale_list", f.Kind)
	}
	if !slices.Contains(operations(), f.Operation) {
		return f, fmt.Errorf("operation %q is not known; use one of %q", f.Operation, operations())
	}
	if f.Times < 0 || f.Delay < 0 || f.RetryAfter < 0 {
		return f, fmt.Errorf("times, delay_ms and retry_after_s must not be negative")
	}
	if f.Percent < 0 || f.Percent > 100 {
		return f, fmt.Errorf("percent is %d; it is the share of the requests that the fault is for, 1 to 100", f.Percent)
	}
	if f.Times == 0 {
		f.Times = 1
	}
	if f.Kind == PublishesAndRefuses {
		return f.normalizedRefusal()
	}
	if f.Refusal != "" || f.Body != nil || f.Header != nil {
		return f, fmt.Errorf("refusal, body and headers belong to kind publishes_and_refuses, not to %q", f.Kind)
	}
	return f.normalizedKind()
}

func (f Fault) normalizedKind() (Fault, error) {
	switch f.Kind {
	case AnswerStatus, ErrorAfter:
		if f.Status == 0 {
			f.Status = defaultStatus
		}
		if f.Status < 200 || f.Status > 599 {
			return f, fmt.Errorf("status %d cannot be answered; use 200 to 599", f.Status)
		}
	case Delay, SlowAnswer:
		if f.Delay == 0 {
			return f, fmt.Errorf("kind %s needs delay_ms, how long to wait", f.Kind)
		}
	case StaleList:
		if f.Delay == 0 {
			return f, fmt.Errorf("kind stale_list needs delay_ms, how far listings lag")
		}
		if f.Operation != List && f.Operation != Any {
			return f, fmt.Errorf("kind stale_list works on operation list (or *), not on %q", f.Operation)
		}
	case RateLimit:
		if f.RetryAfter == 0 {
			f.RetryAfter = defaultRetryAfter
		}
	}
	return f, nil
}

// draws returns a fault's random draw. It always returns true without a Percent.
func (f Fault) draws() func() bool {
	if f.Percent == 0 {
		return func() bool { return true }
	}
	random := rand.New(rand.NewPCG(f.Seed, 0)) //nolint:gosec // a seed must always draw the same requests
	return func() bool { return random.IntN(100) < f.Percent }
}

// matches reports whether the fault applies to a request. `*` does not match every request: a stale list applies only
// to listings, a refusal after publishing only to publish, and an expired access token only to requests that carry one.
func (f Fault) matches(platform string, op Operation, account func() string) bool {
	if f.Platform != platform || (f.Operation != Any && f.Operation != op) {
		return false
	}
	if f.Operation == Any && (f.Kind == StaleList && op != List || f.Kind == PublishesAndRefuses && op != Publish ||
		f.Kind == TokenExpired && op == RefreshToken) {
		return false
	}
	return f.Account == "" || f.Account == account()
}
