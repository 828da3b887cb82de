// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PostPhase summarises a post, or one target of it, for people. It is derived from the
// facts, and the manager never acts on it.
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
	// TargetPending: the target may still be published. While its attempt has no outcome, a
	// call may have been made.
	TargetPending TargetState = "pending"
	// TargetPosted: the target is published, for a tree up to its last card.
	TargetPosted TargetState = "posted"
	// TargetFailed: the target is not published, or a tree only in part, and it is not
	// retried.
	TargetFailed TargetState = "failed"
	// TargetUndecided: the outcome is unknown until a person answers with the annotation
	// social.herald.dev/settle.
	TargetUndecided TargetState = "undecided"
	// TargetWithdrawn: the post was cancelled before its delivery started, or an edit
	// removed the target.
	TargetWithdrawn TargetState = "withdrawn"
)

// Prepared refers to content on the platform that was created before the visible call: an
// upload or a container, which is not visible. The manager uses it again after a restart. A
// prepared post can still be cancelled.
type Prepared struct {
	// contentHash identifies the content that was prepared: connection, account, text and
	// files.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ContentHash string `json:"contentHash"`

	// checkpoint is the platform's reference to the prepared content. While complete is not
	// set, it refers to the part that is done.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Checkpoint string `json:"checkpoint,omitempty"`

	// secret is true if the Secret of the post's uploads holds data that grants access to
	// the prepared content, such as the address of an upload session.
	// +optional
	Secret bool `json:"secret,omitempty"`

	// secretHash is the SHA-256, in hexadecimal, of that data in the Secret. The data is
	// used only if its hash matches, because more people may write Secrets than the status
	// of posts.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SecretHash string `json:"secretHash,omitempty"`

	// madeAt is when the content was prepared or, while complete is not set, last worked
	// on.
	// +required
	MadeAt Time `json:"madeAt"`

	// complete is true when only the visible call remains.
	// +optional
	Complete bool `json:"complete,omitempty"`

	// problem explains, for people, why the preparation failed and how to fix it.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// Blocked explains why a pending target cannot be published now, or why a target failed.
type Blocked struct {
	// reason is the machine-readable reason.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// problem describes the problem for people.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem"`

	// remedy describes how a person can fix the problem; absent if there is no fix.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Remedy string `json:"remedy,omitempty"`
}

// TargetStatus is the record of one target: its facts, and for people phase, reason and
// message, which are derived from the facts.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.externalID) || has(self.externalID)",message="externalID never changes once set"
// +kubebuilder:validation:XValidation:rule="has(self.attempt) || !has(oldSelf.attempt)",message="the record of an attempt is never removed"
// +kubebuilder:validation:XValidation:rule="(has(self.cards) ? size(self.cards) : 0) == self.?attempt.?card.orValue(0) || !has(self.attempt) || has(self.attempt.outcome)",message="an open attempt is for the first card that is not recorded"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.cards) || (has(self.cards) ? size(self.cards) : 0) >= size(oldSelf.cards)",message="the record of a card is never removed"
type TargetStatus struct {
	// index of the target in spec.targets.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	// +kubebuilder:validation:XValidation:rule="self >= 0",message="a target's index is a whole number; 1.0 would be another key than 1"
	Index int32 `json:"index"`

	// platform of the target's connection.
	// +optional
	Platform Platform `json:"platform,omitempty"`

	// state is the recorded state of this target. It is absent in entries of versions of
	// Herald that recorded no states; read phase there.
	// +optional
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'posted' || self == 'posted'",message="a posted target stays posted"
	State TargetState `json:"state,omitempty"`

	// blocked explains why this target cannot be published now, or why it failed; absent if
	// it is neither blocked nor failed.
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

	// message describes, for people, what happened and what to do.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// externalID is the platform's id of the published post; for a tree, the id of its
	// first card.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="externalID never changes once set"
	ExternalID string `json:"externalID,omitempty"`

	// unconfirmed is true if a person answered that the target is published, and the
	// platform has not confirmed that the post belongs to the account. externalID is then
	// the id that the person entered, which no other post is given, or absent if the person
	// had none.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// externalURL is the address of the published post.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	ExternalURL string `json:"externalURL,omitempty"`

	// postedAt is when the platform published it.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`

	// nextTryAt is when the manager will act on this target again.
	// +optional
	NextTryAt *Time `json:"nextTryAt,omitempty"`

	// tryUntil is the deadline: the manager stops retrying temporary refusals at this time.
	// +optional
	TryUntil *Time `json:"tryUntil,omitempty"`

	// initialDeadline is the value of tryUntil before an announced pause of the platform
	// extended it; absent if none did. It limits further extensions.
	// +optional
	InitialDeadline *Time `json:"initialDeadline,omitempty"`

	// suspendedUntil is the end of the team's last suspension that extended tryUntil;
	// absent if none did.
	// +optional
	SuspendedUntil *Time `json:"suspendedUntil,omitempty"`

	// prepared is the content that was prepared before the call; absent if there is none,
	// or if none is needed.
	// +optional
	Prepared *Prepared `json:"prepared,omitempty"`

	// attempt is the record of the latest call that may have been made.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// candidates are posts of the account that may be the result of this target while it is
	// undecided, newest first. Posts that belong to other Posts are excluded.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Candidates []Candidate `json:"candidates,omitempty"`

	// answerProblem explains why a person's last answer was rejected, and how to correct
	// it; absent if there is no such answer, and after a valid one.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AnswerProblem string `json:"answerProblem,omitempty"`

	// cards are the published cards of a tree, in order, up to the first card that is not
	// published. The last card is missing if a person answered that it is published and had
	// no id for it.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.index < size(self))",message="the cards of a tree are recorded in their order, without a gap"
	Cards []CardStatus `json:"cards,omitempty"`
}

// Candidate is a post of an account that may be the result of an undecided target.
type Candidate struct {
	// externalID is the platform's id of the post.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ExternalID string `json:"externalID"`

	// externalURL is the address of the post; absent if the platform returns none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ExternalURL string `json:"externalURL,omitempty"`

	// text is the start of the post's text, or its title.
	// +optional
	// +kubebuilder:validation:MaxLength=140
	Text string `json:"text,omitempty"`

	// postedAt is when the platform published it.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`
}

// The limits of a target's candidates.
const (
	// MostCandidates is the maximum number of candidates of a target.
	MostCandidates = 10
	// MaxCandidateID, MaxCandidateURL and MaxCandidateText limit the fields, in characters.
	MaxCandidateID   = 64
	MaxCandidateURL  = 256
	MaxCandidateText = 140
)

// CardStatus is the record of one published card of a tree.
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

	// unconfirmed is true if a person entered the externalID, as for a target.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// postedAt is when the platform published the card.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`
}

// EarlierPost is the result of the lookup of an earlier post of the same name.
type EarlierPost struct {
	// object is the uid of the Post that the lookup was made for. A copy from a backup has
	// another uid, so the lookup is repeated.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Object string `json:"object"`

	// record is the uid of the earlier post whose record was found; absent if there is no
	// record.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Record string `json:"record,omitempty"`

	// targets are the indexes of the targets that adopted the outcome of the earlier post.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=99
	Targets []int32 `json:"targets,omitempty"`

	// sentAt is the claim time of the first call for an earlier post of the name that is
	// not known to have published; absent if there is none. The search for a post on the
	// platform starts at this time.
	// +optional
	SentAt *Time `json:"sentAt,omitempty"`

	// publishAgain is true if the annotation social.herald.dev/publish-again named the
	// record, so that the post is published regardless of the earlier post's outcome.
	// +optional
	PublishAgain bool `json:"publishAgain,omitempty"`

	// rewound is when a rollback of the cluster was detected that this post existed before,
	// and the post's outcome was looked up; absent if there was none.
	// +optional
	Rewound *Time `json:"rewound,omitempty"`
}

// PostStatus is the observed state of a post.
//
// +kubebuilder:validation:XValidation:rule="has(self.targets) || !has(oldSelf.targets) || size(oldSelf.targets) == 0",message="the record of a target is never removed"
type PostStatus struct {
	// conditions of the post: Accepted, Ready and Published; Prepared, Reconciling,
	// Stalled, OutcomeUnknown and Adopted while they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that this status is based on. It is -1 until
	// Herald has processed the object.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase summarises the post.
	// +optional
	Phase PostPhase `json:"phase,omitempty"`

	// finished is true when all targets are settled and no answer is awaited: the manager
	// stops watching the post.
	// +optional
	Finished bool `json:"finished,omitempty"`

	// finishedAt is when the post became finished; absent before.
	// +optional
	FinishedAt *Time `json:"finishedAt,omitempty"`

	// finishedOn is the day of finishedAt in UTC, as 2006-01-02, for field selectors.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	FinishedOn string `json:"finishedOn,omitempty"`

	// cancelledAt is when the post was cancelled before its delivery started. It stays
	// cancelled, regardless of later changes to its spec.
	// +optional
	CancelledAt *Time `json:"cancelledAt,omitempty"`

	// earlier is the result of the lookup of an earlier post of this name; absent until the
	// lookup is done, and where none is needed.
	// +optional
	Earlier *EarlierPost `json:"earlier,omitempty"`

	// platforms lists the platforms of the targets, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Platforms string `json:"platforms,omitempty"`

	// posted is the number of posted targets and of all targets, for people: "2/3".
	// +optional
	// +kubebuilder:validation:MaxLength=7
	Posted string `json:"posted,omitempty"`

	// urls are the addresses of the published posts, for people, separated by spaces.
	// Addresses beyond 1,024 characters are omitted; targets has all of them.
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
