// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AttemptOutcome is the result of a closed attempt. An attempt without an outcome is open:
// its call may have been made.
// +kubebuilder:validation:Enum=posted;refused;notSent;absent;unknown
type AttemptOutcome string

// The outcomes of an attempt.
const (
	// OutcomePosted: the platform confirmed the publication.
	OutcomePosted AttemptOutcome = "posted"
	// OutcomeRefused: the platform answered that it did not publish.
	OutcomeRefused AttemptOutcome = "refused"
	// OutcomeNotSent: no byte of the call left the process, or a person answered that
	// nothing was published.
	OutcomeNotSent AttemptOutcome = "notSent"
	// OutcomeAbsent: a later lookup, which the platform's limits classify as authoritative,
	// did not find the post.
	OutcomeAbsent AttemptOutcome = "absent"
	// OutcomeUnknown: the platform cannot determine the outcome. A person can answer with
	// the annotation social.herald.dev/settle.
	OutcomeUnknown AttemptOutcome = "unknown"
)

// The API server evaluates every rule of a Post, including the rules of its spec, at each
// write of its status. Each read of a field in a rule copies the schemas of all its sibling
// fields, so the cost of a rule is the number of its reads times the number of fields.
// Therefore a rule about one field is on that field, where reading self is free, and the
// first operand of || is the one that usually decides.

// Attempt is the write-ahead record of one irrevocable call: it is stored before the call
// is made, and no other call is made until it is closed.
//
// +kubebuilder:validation:XValidation:rule="self.id == oldSelf.id || self.number != oldSelf.number",message="an attempt keeps its id"
// +kubebuilder:validation:XValidation:rule="self.?card.orValue(0) == oldSelf.?card.orValue(0) || self.number != oldSelf.number",message="an attempt keeps its card"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.outcome) || (has(self.outcome) && self.outcome == oldSelf.outcome) || (oldSelf.outcome == 'unknown' && (has(self.outcome) || (has(self.operationID) && !has(oldSelf.operationID)))) || self.number != oldSelf.number",message="a closed attempt keeps its outcome, except that an unknown one may become known, or be asked about by the operation id that the platform gave it"
// +kubebuilder:validation:XValidation:rule="(has(self.checkpoint) ? has(oldSelf.checkpoint) && self.checkpoint == oldSelf.checkpoint : !has(oldSelf.checkpoint)) || self.number != oldSelf.number",message="an attempt keeps its checkpoint"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.operationID) || (has(self.operationID) && self.operationID == oldSelf.operationID) || self.number != oldSelf.number",message="an attempt keeps its operation id"
// +kubebuilder:validation:XValidation:rule="self.number == oldSelf.number || (self.?card.orValue(0) == oldSelf.?card.orValue(0) ? has(oldSelf.outcome) && oldSelf.outcome != 'posted' : self.?card.orValue(0) == oldSelf.?card.orValue(0) + 1)",message="a new attempt needs the previous one closed, and not posted, or else is for the next card"
type Attempt struct {
	// number of this attempt; the first is 1.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:XValidation:rule="self >= oldSelf",message="the attempt number never decreases"
	Number int32 `json:"number"`

	// id of this attempt. It is never reused.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// card is the index in spec.tree.cards of the card that the call publishes. For other
	// posts, card is 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	Card int32 `json:"card,omitempty"`

	// startedAt is when the attempt was claimed.
	// +required
	StartedAt Time `json:"startedAt"`

	// sendBefore is the deadline to start the call. After it, the call is not made.
	// +required
	SendBefore Time `json:"sendBefore"`

	// contentHash identifies the claimed content: connection, account, text.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ContentHash string `json:"contentHash,omitempty"`

	// checkpoint is the platform's reference to the prepared content, which stays hidden
	// until this call makes it visible. It was prepared for the content that contentHash
	// identifies.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Checkpoint string `json:"checkpoint,omitempty"`

	// operationID is the platform's id of this call, which the platform accepted and was
	// still processing when it answered.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OperationID string `json:"operationID,omitempty"`

	// accountID is the platform's id of the claimed account. Lookups of the call's outcome
	// use this account only.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	AccountID string `json:"accountID,omitempty"`

	// searchFrom is the earliest time that a call with this content can have published: the
	// start of the first attempt that sent it, including attempts of an earlier object of
	// the post, and refused attempts. Defaults to startedAt.
	// +optional
	SearchFrom *Time `json:"searchFrom,omitempty"`

	// unknownSince is the claim time of the earliest previous attempt for the same content
	// with an unknown outcome; absent if there is none, or if a person has answered.
	// +optional
	UnknownSince *Time `json:"unknownSince,omitempty"`

	// endedAt is when the call ended without a clear answer, or with an unconfirmed
	// refusal.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`

	// refusal is set while the platform has refused the call, and no lookup has confirmed
	// yet that the call published nothing: some platforms publish and still answer with an
	// error. The attempt stays open until then. On a closed attempt, it means that the
	// lookup was impossible.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`

	// duplicate is true if the platform refused the call because it already has the same
	// content.
	// +optional
	Duplicate bool `json:"duplicate,omitempty"`

	// lookups counts the authoritative lookups that did not find the post.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lookups int32 `json:"lookups,omitempty"`

	// outcome is the result of the attempt; absent while it is open. An attempt that was
	// closed as unknown is reopened if the platform's operation id becomes known later, so
	// that the outcome can be looked up.
	// +optional
	Outcome AttemptOutcome `json:"outcome,omitempty"`
}

// Refusal determines the next step after a lookup confirms that a refused call published
// nothing. Until then, the target's field blocked has the reason.
type Refusal struct {
	// retryAt is when the call is retried; absent if the refusal is final.
	// +optional
	RetryAt *Time `json:"retryAt,omitempty"`

	// unconfirmed is true for a closed attempt if no lookup could confirm that the call
	// published nothing. The call is not retried.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}
