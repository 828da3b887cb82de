// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import "time"

// Outcome is what is known after a call that could publish.
type Outcome string

// The outcomes.
const (
	// Posted: the platform confirmed it.
	Posted Outcome = "posted"
	// Refused: the platform answered that it did not publish. That is a claim and
	// no proof: the caller asks by Lookup before it believes it.
	Refused Outcome = "refused"
	// NotSent: no connection was obtained, so nothing left the process.
	NotSent Outcome = "notSent"
	// Accepted: the platform took the call and works on it under Result.OperationID.
	// Lookup tells what becomes of it.
	Accepted Outcome = "accepted"
	// Unknown: the call may have taken effect.
	Unknown Outcome = "unknown"
)

// Result is the outcome of Publish.
type Result struct {
	Outcome Outcome
	// OperationID is the platform's id of a call that it took and still works
	// on, with Accepted: the caller stores it and looks the call up by it. If
	// only the answer tells it, Publish returns at once, since the id is lost
	// with the process until the caller has stored it.
	OperationID string
	// ExternalID and ExternalURL name the published post. With Posted, an
	// empty id means that the platform confirmed without saying which.
	ExternalID  string
	ExternalURL string
	// PostedAt is when the platform says it published; zero where it does not
	// say.
	PostedAt time.Time
	// Unpublished says, with Refused, that the platform was asked after the refusal
	// about the very thing that the call was to make visible, and that it is not
	// visible. Another call may follow without another question.
	Unpublished bool
	// Note tells people what they should know of a post that is online, such as
	// that the chosen thumbnail was refused; usually empty.
	Note string
	// Err says why, for every outcome but Posted. With Accepted it says what the
	// platform is about.
	Err *Error
	// RateLimits are what the answer tells of the platform's limits, whatever
	// the outcome.
	RateLimits []RateLimit
}

// LookupResult is what Lookup found.
type LookupResult struct {
	// Matches counts the posts that fit. One is an answer; more than one needs
	// a person. One that is Certain may have no id: the platform then proves that
	// the post is published, and does not say under which.
	Matches     int
	ExternalID  string
	ExternalURL string
	PostedAt    time.Time
	// Certain says, of one match, that the platform told it under the job's
	// operation id, checkpoint or secret. A match among the account's posts may be
	// another job's with the same words.
	Certain bool
	// Proof says, where nothing matches, that the platform answered for the
	// very thing that was to become visible, and that it is not. It counts for
	// absence also where Capabilities.ListingAuthoritative does not hold.
	Proof bool
	// Refused says, where nothing matches, that the platform took the call and
	// then gave it up, and why; nil if it does not say so. It is proof, and
	// needs no second look.
	Refused *Error
	// OperationID says, where nothing matches, that the platform took the call and
	// still works on it under this id, which the caller did not know. The caller
	// stores it, as that of Result, and looks the call up by it from then on.
	OperationID string
	// Note tells people what they should know of the one match, as Result.Note does.
	Note string
}
