// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import "time"

// Outcome is the result of a call that may publish.
type Outcome string

const (
	// Posted means the platform confirmed publication.
	Posted Outcome = "posted"
	// Refused means the platform responded that it did not publish. That does not prove that it did not; the caller
	// verifies it with Lookup.
	Refused Outcome = "refused"
	// NotSent means no connection was established, so nothing was sent.
	NotSent Outcome = "notSent"
	// Accepted means the platform accepted the call and is processing it as Result.OperationID. Lookup returns the outcome.
	Accepted Outcome = "accepted"
	// Unknown means the call may have taken effect.
	Unknown Outcome = "unknown"
)

// Result is the result of Publish.
type Result struct {
	Outcome Outcome
	// OperationID is, with Accepted, the platform's id for the call that it is still processing. The caller stores
	// it and uses it to look up the outcome. If only the response contains the id, Publish returns immediately,
	// because a crash before the caller stores the id would lose it.
	OperationID string
	// ExternalID and ExternalURL identify the published post. With Posted, an empty id means that the platform
	// confirmed the post without returning one.
	ExternalID  string
	ExternalURL string
	// PostedAt is the platform's time of publication, or zero if unknown.
	PostedAt time.Time
	// Unpublished is set with Refused if the platform confirmed after the refusal that this call's content is not
	// visible. Another call may then follow without a lookup.
	Unpublished bool
	// Withheld is set with NotSent if the manager did not start the call for internal reasons. The call is then
	// made as soon as possible, without a pause.
	Withheld bool
	// Note is a message to users about a published post, for example that its thumbnail was refused; usually empty.
	Note string
	// Err is the cause of every outcome except Posted. With Accepted it describes the platform's current step.
	Err *Error
	// RateLimits are the limits reported in the response, regardless of the outcome.
	RateLimits []RateLimit
}

// LookupResult is the result of Lookup.
type LookupResult struct {
	// Matches counts the matching posts. One settles the outcome; more than one requires a user's decision. A Certain
	// match may have no id: the platform then proves that the post is published, but does not return its id.
	Matches     int
	ExternalID  string
	ExternalURL string
	PostedAt    time.Time
	// Certain is set if the platform returned the only match for the job's operation id, checkpoint or secret. A
	// match from the account's listing may belong to another job with the same text.
	Certain bool
	// Proof is set, without a match, if the platform confirmed that this job's content is not visible. It proves
	// absence even where Capabilities.ListingAuthoritative does not apply.
	Proof bool
	// Refused is set, without a match, if the platform accepted the call and then gave up; it holds the reason. It
	// proves that there is no post, so no second lookup is needed.
	Refused *Error
	// OperationID is set, without a match, if the platform is still processing the call under this id, which the caller
	// did not have. The caller stores it like Result.OperationID and uses it for later lookups.
	OperationID string
	// Note is a message to users about the match, as in Result.Note.
	Note string
}
