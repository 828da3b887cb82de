// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AttemptOutcome is the result of a closed attempt. An attempt without an outcome is open: its call may have been made.
// +kubebuilder:validation:Enum=posted;refused;notSent;absent;unknown
type AttemptOutcome string

// The outcomes of an attempt.
const (
	// OutcomePosted: the platform confirmed the publication.
	OutcomePosted AttemptOutcome = "posted"
	// OutcomeRefused: the platform rejected the call and published nothing.
	OutcomeRefused AttemptOutcome = "refused"
	// OutcomeNotSent: no byte of the call was sent, or a user confirmed that nothing was published.
	OutcomeNotSent AttemptOutcome = "notSent"
	// OutcomeAbsent: a later authoritative lookup, as defined by the platform's limits, did not find the post.
	OutcomeAbsent AttemptOutcome = "absent"
	// OutcomeUnknown: the outcome cannot be determined on the platform. A user can resolve it with the social.herald.dev/settle annotation.
	OutcomeUnknown AttemptOutcome = "unknown"
)

// The API server evaluates every rule of a Post, including spec rules, at each status write. Reading an absent field in a rule copies the
// schemas of all fields beside it, and reading one that is set copies them twice, so a rule costs its reads times the number of fields. Rules
// that read the same fields are therefore combined into one rule with several messages, [x].all(a, …) is used to read x only once, and a rule
// about a single field is attached to that field, where reading self is free. The most decisive operand of || comes first. test/schema/decode
// limits the memory that all rules allocate.

// Attempt is the write-ahead record of one irrevocable call. It is stored before the call, and no other call is made until it is closed. The
// rule below recognizes an attempt by its id.
//
// +kubebuilder:validation:XValidation:rule="self.id == oldSelf.id ? (!has(oldSelf.outcome) || has(self.outcome) && self.outcome == oldSelf.outcome || oldSelf.outcome == 'unknown' && (has(self.outcome) || has(self.operationID) && !has(oldSelf.operationID))) && self.?card.orValue(0) == oldSelf.?card.orValue(0) && (has(self.checkpoint) ? has(oldSelf.checkpoint) && self.checkpoint == oldSelf.checkpoint : !has(oldSelf.checkpoint)) && (!has(oldSelf.operationID) || has(self.operationID) && self.operationID == oldSelf.operationID) && (!has(self.group) || has(oldSelf.group) && self.group == oldSelf.group) && (!has(self.shard) || has(oldSelf.shard) && self.shard == oldSelf.shard) : self.number != oldSelf.number && (self.?card.orValue(0) == oldSelf.?card.orValue(0) ? has(oldSelf.outcome) && oldSelf.outcome != 'posted' : self.?card.orValue(0) == oldSelf.?card.orValue(0) + 1)",message="a new attempt needs the previous one closed, and not posted, or else is for the next card",messageExpression="self.id != oldSelf.id ? (self.number == oldSelf.number ? 'an attempt keeps its id' : 'a new attempt needs the previous one closed, and not posted, or else is for the next card') : self.?card.orValue(0) != oldSelf.?card.orValue(0) ? 'an attempt keeps its card' : has(self.checkpoint) != has(oldSelf.checkpoint) || has(self.checkpoint) && self.checkpoint != oldSelf.checkpoint ? 'an attempt keeps its checkpoint' : has(oldSelf.operationID) && !(has(self.operationID) && self.operationID == oldSelf.operationID) ? 'an attempt keeps its operation id' : has(self.group) && !(has(oldSelf.group) && self.group == oldSelf.group) ? 'an attempt is never moved to a group' : has(self.shard) && !(has(oldSelf.shard) && self.shard == oldSelf.shard) ? 'an attempt never gets another version of a shard' : 'a closed attempt keeps its outcome, except that an unknown one can become known, or be looked up by the operation id that the platform gave it'"
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

	// card is the index in spec.tree.cards of the published card; 0 for other posts.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	Card int32 `json:"card,omitempty"`

	// startedAt is when the attempt was claimed.
	// +required
	StartedAt Time `json:"startedAt"`

	// sendBefore is the deadline for starting the call. The call is not made after it.
	// +required
	SendBefore Time `json:"sendBefore"`

	// contentHash identifies the claimed content: connection, account and text.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ContentHash string `json:"contentHash,omitempty"`

	// checkpoint is the platform's reference to the prepared content, which this call makes visible. It was prepared for the content that
	// contentHash identifies.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Checkpoint string `json:"checkpoint,omitempty"`

	// group is the name and the version of the Lease that had to be opened before this call could be made. It is absent unless the attempt was
	// claimed ahead of its time. An attempt whose group was closed without being opened sent nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[a-z0-9][-a-z0-9.]*/[0-9]+$`
	Group string `json:"group,omitempty"`

	// shard is the version of the shard's Lease that the claiming manager held. Managers with another version do not call the account while
	// this call may be in progress. Absent if the installation has one shard.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Shard string `json:"shard,omitempty"`

	// operationID is the platform's ID of this call, set if the platform accepted the call and was still processing it in its response.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OperationID string `json:"operationID,omitempty"`

	// accountID is the platform's ID of the claimed account. Outcome lookups use only this account.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	AccountID string `json:"accountID,omitempty"`

	// searchFrom is the earliest time when a call with this content could have published: the start of the first attempt with it,
	// including rejected attempts and attempts of an earlier object of the post. Defaults to startedAt.
	// +optional
	SearchFrom *Time `json:"searchFrom,omitempty"`

	// unknownSince is the claim time of the earliest previous attempt for the same content with an unknown outcome; absent without such an
	// attempt, or after a user has resolved it.
	// +optional
	UnknownSince *Time `json:"unknownSince,omitempty"`

	// endedAt is when the call ended without a definite response, or with an unconfirmed rejection.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`

	// refusal is set while the platform has rejected the call and no lookup has confirmed that it published nothing, because some platforms
	// publish despite an error response. The attempt stays open until then. On a closed attempt, refusal means that the lookup was
	// impossible.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`

	// duplicate is true if the platform rejected the call as a duplicate of existing content.
	// +optional
	Duplicate bool `json:"duplicate,omitempty"`

	// lookups counts the authoritative lookups that did not find the post.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lookups int32 `json:"lookups,omitempty"`

	// outcome is the result of the attempt; absent while it is open. An attempt closed as unknown is reopened if the platform's operation
	// ID becomes known later, which allows an outcome lookup.
	// +optional
	Outcome AttemptOutcome `json:"outcome,omitempty"`
}

// Refusal determines the next step after a lookup confirms that a rejected call published nothing. Until then, the target's blocked field
// has the reason.
type Refusal struct {
	// retryAt is the retry time; absent if the rejection is final.
	// +optional
	RetryAt *Time `json:"retryAt,omitempty"`

	// unconfirmed is true for a closed attempt if no lookup could confirm that the call published nothing. The call is not retried.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}
