// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// AttemptOutcome is how an attempt was closed. An attempt without one is open:
// its call may have been made.
// +kubebuilder:validation:Enum=posted;refused;notSent;absent;unknown
type AttemptOutcome string

// The ways to close an attempt.
const (
	// OutcomePosted: the platform confirmed the publication.
	OutcomePosted AttemptOutcome = "posted"
	// OutcomeRefused: the platform answered that it did not publish.
	OutcomeRefused AttemptOutcome = "refused"
	// OutcomeNotSent: no byte of the call left the process, or a person said
	// that nothing was published.
	OutcomeNotSent AttemptOutcome = "notSent"
	// OutcomeAbsent: the platform was asked afterwards, in a way that its
	// limits call authoritative, and does not have the post.
	OutcomeAbsent AttemptOutcome = "absent"
	// OutcomeUnknown: the platform cannot tell. A person may, by the annotation
	// social.herald.dev/settle.
	OutcomeUnknown AttemptOutcome = "unknown"
)

// The API server evaluates every rule of a Post, those of its spec too, at each
// write of its status. Each time that a rule reads a field, the API server
// copies the schemas of all fields beside it, so that the cost of a rule is how
// often it reads, times how many fields there are. Therefore a rule that
// concerns one field stands on that field, where self is read at no cost, and
// the first operand of || is the one that mostly decides.

// Attempt is the write-ahead record of one irrevocable call: it is stored
// before the call is made, and no other call is made until it is closed.
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

	// id of this attempt, never used for another one.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ID string `json:"id"`

	// card is the index in spec.tree.cards of the card that the call
	// publishes. Outside trees there is one thing to publish, and card is 0.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	Card int32 `json:"card,omitempty"`

	// startedAt is when the attempt was claimed.
	// +required
	StartedAt Time `json:"startedAt"`

	// sendBefore is the time after which the call is not begun any more.
	// +required
	SendBefore Time `json:"sendBefore"`

	// contentHash identifies what was claimed: connection, account, text.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	ContentHash string `json:"contentHash,omitempty"`

	// checkpoint names what was made on the platform, and cannot be seen there
	// yet, before this call makes it visible. It was made for the content that
	// contentHash identifies.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Checkpoint string `json:"checkpoint,omitempty"`

	// operationID is the platform's id of this call, which it took and was still
	// working on when it answered.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	OperationID string `json:"operationID,omitempty"`

	// accountID is the platform's id of the account that was claimed. What
	// became of the call is asked of this account and no other.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	AccountID string `json:"accountID,omitempty"`

	// searchFrom is the earliest time at which a call with this content can have
	// published: the start of the first attempt that sent it, also of an earlier
	// object of the post and of one that was refused. Defaults to startedAt.
	// +optional
	SearchFrom *Time `json:"searchFrom,omitempty"`

	// unknownSince is when the earliest attempt before this one was claimed that
	// was for the same and has an unknown outcome; absent if there is none, or a
	// person has told.
	// +optional
	UnknownSince *Time `json:"unknownSince,omitempty"`

	// endedAt is when the call is known to have ended without a clear answer, or
	// with a refusal that is not confirmed.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`

	// refusal is set while the platform has refused the call and has not been asked
	// yet whether it published all the same: some platforms publish and answer an
	// error. The attempt stays open meanwhile. On a closed attempt it says that the
	// platform could not be asked.
	// +optional
	Refusal *Refusal `json:"refusal,omitempty"`

	// duplicate is set when the platform refused the call because it already
	// has the same content.
	// +optional
	Duplicate bool `json:"duplicate,omitempty"`

	// lookups counts the authoritative lookups that did not find the post.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Lookups int32 `json:"lookups,omitempty"`

	// outcome is how the attempt was closed; absent while it is open. One that
	// was closed as unknown is opened again if it turns out what the platform
	// calls it, so that it can be asked.
	// +optional
	Outcome AttemptOutcome `json:"outcome,omitempty"`
}

// Refusal is what follows a refused call once it is confirmed that the call
// published nothing. The target's field blocked has the reason meanwhile.
type Refusal struct {
	// retryAt is when the call is made again; absent if the refusal is final.
	// +optional
	RetryAt *Time `json:"retryAt,omitempty"`

	// unconfirmed says of a closed attempt that the platform could not be asked
	// whether the call published all the same. The call is not made again.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`
}
