// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import "time"

// Outcome is the result of a call that could publish.
type Outcome string

// The outcomes.
const (
	// Posted: the platform confirmed it.
	Posted Outcome = "posted"
	// Refused: the platform answered that it did not publish. The answer is not proof: the caller verifies it with
	// Lookup.
	Refused Outcome = "refused"
	// NotSent: no connection was established, so nothing was sent.
	NotSent Outcome = "notSent"
	// Accepted: the platform accepted the call and processes it as Result.OperationID. Lookup returns its outcome.
	Accepted Outcome = "accepted"
	// Unknown: the call may have taken effect.
	Unknown Outcome = "unknown"
)

// Result is the outcome of Publish.
type Result struct {
	Outcome Outcome
	// OperationID is the platform's id of a call that it is still processing, with Accepted: the caller stores it and
	// looks the call up by it. If only the answer contains the id, Publish returns at once, because a crash before the
	// caller has stored it would lose it.
	OperationID string
	// ExternalID and ExternalURL identify the published post. With Posted, an empty id means that the platform
	// confirmed the post without an id.
	ExternalID  string
	ExternalURL string
	// PostedAt is the platform's time of publication; zero if unknown.
	PostedAt time.Time
	// Unpublished is set with Refused if, after the refusal, the platform confirmed that the content of this call is
	// not visible. Another call may then follow without a lookup.
	Unpublished bool
	// Note is a message to users about a published post, such as a refused thumbnail; usually empty.
	Note string
	// Err is the cause, for every outcome but Posted. With Accepted it describes the platform's current step.
	Err *Error
	// RateLimits are the platform's limits from the answer, whatever the outcome.
	RateLimits []RateLimit
}

// LookupResult is the result of Lookup.
type LookupResult struct {
	// Matches counts the matching posts. One is a result; more than one needs a person. A Certain match may have no id:
	// the platform then proves that the post is published, but does not return its id.
	Matches     int
	ExternalID  string
	ExternalURL string
	PostedAt    time.Time
	// Certain is set for one match that the platform returned for the job's operation id, checkpoint or secret. A match
	// in the account's listing may be a post of another job with the same text.
	Certain bool
	// Proof is set without a match if the platform confirmed that the content of this job is not visible. It proves
	// absence even if Capabilities.ListingAuthoritative does not apply.
	Proof bool
	// Refused is set, without a match, if the platform accepted the call and then gave up; it holds the reason. It is
	// proof and needs no second lookup.
	Refused *Error
	// OperationID is set, without a match, if the platform is still processing the call as this id, which the caller
	// did not have. The caller stores it like Result.OperationID and uses it for the next lookups.
	OperationID string
	// Note is a message to users about the one match, as in Result.Note.
	Note string
}
