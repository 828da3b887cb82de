// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PostPhase is the human-readable summary of a post or target. It is derived from the recorded facts, and the manager never acts on it.
// +kubebuilder:validation:Enum=draft;scheduled;processing;posted;failed;cancelled
type PostPhase string

// The phases.
const (
	PhaseDraft      PostPhase = "draft"
	PhaseScheduled  PostPhase = "scheduled"
	PhaseProcessing PostPhase = "processing"
	PhasePosted     PostPhase = "posted"
	PhaseFailed     PostPhase = "failed"
	PhaseCancelled  PostPhase = "cancelled"
)

// TargetState is the recorded state of a target.
// +kubebuilder:validation:Enum=pending;posted;failed;undecided;withdrawn
type TargetState string

// The states.
const (
	// TargetPending: the target may still be published. A call may have been made while its attempt has no outcome.
	TargetPending TargetState = "pending"
	// TargetPosted: the target is published, including all cards of a tree.
	TargetPosted TargetState = "posted"
	// TargetFailed: the target is not published, or only part of its tree, and is not retried.
	TargetFailed TargetState = "failed"
	// TargetUndecided: the outcome is unknown until a user answers with the social.herald.dev/settle annotation.
	TargetUndecided TargetState = "undecided"
	// TargetWithdrawn: the post was cancelled before delivery started, or an edit removed the target.
	TargetWithdrawn TargetState = "withdrawn"
)

// Blocked explains why a pending target cannot currently be published, or why a target failed.
type Blocked struct {
	// reason is the machine-readable reason.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// problem is the human-readable problem.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem"`

	// remedy describes how a user can fix the problem; absent without a fix.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Remedy string `json:"remedy,omitempty"`
}

// TargetStatus is a target's record: its facts, and phase, reason and message, which are derived from them.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.externalID) || has(self.externalID)",message="externalID never changes once set"
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="[self.?attempt].all(a, a.hasValue() ? a.?outcome.hasValue() || a.?card.orValue(0) == size(self.?cards.orValue([])) : !oldSelf.?attempt.hasValue())",message="an open attempt is for the first card that is not recorded",messageExpression="has(self.attempt) ? 'an open attempt is for the first card that is not recorded' : 'the record of an attempt is never removed'"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.cards) || size(self.?cards.orValue([])) >= size(oldSelf.cards)",message="the record of a card is never removed"
type TargetStatus struct {
	// index of the target in spec.targets.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="a target's index must be a whole number; 1.0 would be a different key from 1"
	Index int32 `json:"index"`

	// platform of the target's connection.
	// +optional
	Platform Platform `json:"platform,omitempty"`

	// state is the target's recorded state. It is absent in entries written by versions of Herald without states; read phase there.
	// +optional
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'posted' || self == 'posted'",message="a posted target stays posted"
	State TargetState `json:"state,omitempty"`

	// blocked explains why this target cannot currently be published, or why it failed; absent otherwise.
	// +optional
	Blocked *Blocked `json:"blocked,omitempty"`

	// phase summarises this target.
	// +required
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'posted' || self == 'posted'",message="a posted target stays posted"
	Phase PostPhase `json:"phase"`

	// reason is the machine-readable reason for the phase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message is the human-readable explanation of the phase, with the required action.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// externalID is the platform's ID of the published post, or of a tree's first card.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="externalID never changes once set"
	ExternalID string `json:"externalID,omitempty"`

	// unconfirmed is true if a user answered that the target is published, but the platform has not confirmed that the post belongs to the
	// account. externalID is then the ID from the answer, which is reserved for this target, or absent if the answer had none.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// externalURL is the URL of the published post.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ExternalURL string `json:"externalURL,omitempty"`

	// postedAt is when the platform published the post.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`

	// nextTryAt is when the manager acts on this target again.
	// +optional
	NextTryAt *Time `json:"nextTryAt,omitempty"`

	// tryUntil is the deadline for retries after temporary rejections.
	// +optional
	TryUntil *Time `json:"tryUntil,omitempty"`

	// initialDeadline is the value of tryUntil before a wait requested by the platform extended it; absent without an extension. It limits
	// later extensions.
	// +optional
	InitialDeadline *Time `json:"initialDeadline,omitempty"`

	// suspendedUntil is the end of the team's last suspension that extended tryUntil; absent without one.
	// +optional
	SuspendedUntil *Time `json:"suspendedUntil,omitempty"`

	// prepared is the content prepared before the call; absent if there is none or none is needed.
	// +optional
	Prepared *Prepared `json:"prepared,omitempty"`

	// attempt is the record of the latest call.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// retriedBy is the name of the Post that retries this failed target. It is set before that post's first call, and no other post can
	// retry the target.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="retriedBy never changes once set"
	RetriedBy string `json:"retriedBy,omitempty"`

	// candidates are the account's posts that may be the result of this target while it is undecided, newest first. Results of other Posts
	// are excluded.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Candidates []Candidate `json:"candidates,omitempty"`

	// answerProblem explains why the user's last answer was rejected, and how to correct it; absent without an answer or after a valid one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AnswerProblem string `json:"answerProblem,omitempty"`

	// cards are a tree's published cards, in order, up to the first unpublished card. The last card is missing if a user answered without
	// an ID that it is published.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.index < size(self))",message="the cards of a tree must be recorded in order, without gaps"
	Cards []CardStatus `json:"cards,omitempty"`
}

// Candidate is a post on the account that may be the result of an undecided target.
type Candidate struct {
	// externalID is the platform's id of the post.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ExternalID string `json:"externalID"`

	// externalURL is the post's URL; absent if the platform returns none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ExternalURL string `json:"externalURL,omitempty"`

	// text is the start of the post's text, or its title.
	// +optional
	// +kubebuilder:validation:MaxLength=140
	Text string `json:"text,omitempty"`

	// postedAt is when the platform published the post.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`
}

// Candidate limits.
const (
	// MostCandidates is the maximum number of candidates per target.
	MostCandidates = 10
	// MaxCandidateID, MaxCandidateURL and MaxCandidateText limit the fields, in characters.
	MaxCandidateID   = 64
	MaxCandidateURL  = 256
	MaxCandidateText = 140
)

// CardStatus is the record of a tree's published card.
type CardStatus struct {
	// index of the card in spec.tree.cards.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	Index int32 `json:"index"`

	// externalID is the platform's id of the published card.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="externalID never changes once set"
	ExternalID string `json:"externalID"`

	// unconfirmed is true if externalID is from a user's answer, as for a target.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// postedAt is when the platform published the card.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`
}

// EarlierPost is the result of looking up an earlier post of the same name.
type EarlierPost struct {
	// object is the UID of the Post that requested the lookup. A copy restored from a backup has a different UID, so the lookup is
	// repeated.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Object string `json:"object"`

	// record is the UID of the earlier post whose record was found; absent without a record.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Record string `json:"record,omitempty"`

	// targets are the indexes of the targets that adopted the earlier post's outcome.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=99
	Targets []int32 `json:"targets,omitempty"`

	// sentAt is the claim time of the first call for an earlier post of the name that is not known to have published; absent without such a
	// call. The search on the platform starts at this time.
	// +optional
	SentAt *Time `json:"sentAt,omitempty"`

	// publishAgain is true if the social.herald.dev/publish-again annotation named the record. The post is then published regardless of the
	// earlier post's outcome.
	// +optional
	PublishAgain bool `json:"publishAgain,omitempty"`

	// rewound is when a cluster rollback after the post's creation was detected and its outcome looked up; absent without a rollback.
	// +optional
	Rewound *Time `json:"rewound,omitempty"`
}

// RetryStatus shows which targets of the failed post in spec.retryOf a post retries.
type RetryStatus struct {
	// object is the UID of the failed post.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Object string `json:"object"`

	// targets are the retried targets' indexes in the failed post, in the order of this post's targets; -1 if nothing can be retried.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:Minimum=-1
	// +kubebuilder:validation:items:Maximum=99
	Targets []int32 `json:"targets,omitempty"`
}

// PostStatus is the observed state of a post. Only the manager writes it, as a whole; it is atomic because managedFields would otherwise list
// each of its fields, which would take up a quarter of a stored post.
//
// +kubebuilder:validation:XValidation:rule="has(self.targets) || !has(oldSelf.targets) || size(oldSelf.targets) == 0",message="the record of a target is never removed"
// +structType=atomic
type PostStatus struct {
	// conditions of the post: Accepted, Ready and Published; Prepared, Reconciling,
	// Stalled, OutcomeUnknown, Adopted, RetryOf and Retried while they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, [c.lastTransitionTime].all(t, t >= timestamp('1970-01-01T00:00:00Z') && t < timestamp('2999-01-01T00:00:00Z')))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that this status is based on; -1 until Herald has processed the object.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase summarises the post.
	// +optional
	Phase PostPhase `json:"phase,omitempty"`

	// finished is true when all targets are settled and no answer is awaited. The manager no longer watches a finished post.
	// +optional
	Finished bool `json:"finished,omitempty"`

	// finishedAt is when the post became finished; absent until then.
	// +optional
	FinishedAt *Time `json:"finishedAt,omitempty"`

	// finishedOn is the UTC date of finishedAt, as 2006-01-02, for field selectors.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	FinishedOn string `json:"finishedOn,omitempty"`

	// cancelledAt is when the post was cancelled before delivery started. Later changes to its spec do not revive it.
	// +optional
	CancelledAt *Time `json:"cancelledAt,omitempty"`

	// earlier is the result of looking up an earlier post of this name; absent until the lookup is done, or if it is unnecessary.
	// +optional
	Earlier *EarlierPost `json:"earlier,omitempty"`

	// retry shows what this post retries of the post in spec.retryOf; absent until those targets are reserved for it.
	// +optional
	Retry *RetryStatus `json:"retry,omitempty"`

	// platforms is the human-readable list of the targets' platforms.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Platforms string `json:"platforms,omitempty"`

	// posted is the human-readable number of posted targets and of all targets, such as "2/3".
	// +optional
	// +kubebuilder:validation:MaxLength=7
	Posted string `json:"posted,omitempty"`

	// urls is the human-readable, space-separated list of the published posts' URLs. URLs past 1,024 characters are omitted;
	// targets has all of them.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	URLs string `json:"urls,omitempty"`

	// targets has one entry for each accepted target.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="sets.contains(self.map(t, t.index), oldSelf.map(t, t.index))",message="the record of a target is never removed"
	Targets []TargetStatus `json:"targets,omitempty"`
}
