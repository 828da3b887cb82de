// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PostPhase sums up a post, or one target of it, for people. It is derived
// from facts and decides nothing.
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

// TargetState is what is settled of a target.
// +kubebuilder:validation:Enum=pending;posted;failed;undecided;withdrawn
type TargetState string

// The states.
const (
	// TargetPending: it may be published yet. While its attempt has no outcome,
	// a call for it may have been made.
	TargetPending TargetState = "pending"
	// TargetPosted: it is published, of a tree the last card too.
	TargetPosted TargetState = "posted"
	// TargetFailed: it is not published, of a tree not whole, and nothing more
	// is tried.
	TargetFailed TargetState = "failed"
	// TargetUndecided: only a person can tell whether it was published, by the
	// annotation social.herald.dev/settle.
	TargetUndecided TargetState = "undecided"
	// TargetWithdrawn: the post was cancelled before its delivery began, or an
	// edit took the target out of it.
	TargetWithdrawn TargetState = "withdrawn"
)

// Prepared names what was made on the platform before the visible call: an
// upload or a container, which is not visible. It is kept so that it is used
// again after a restart. A post that was prepared can still be cancelled.
type Prepared struct {
	// contentHash identifies what it was made for: connection, account, text
	// and files.
	// +required
	// +kubebuilder:validation:MaxLength=64
	ContentHash string `json:"contentHash"`

	// checkpoint is what the platform calls it. While complete is not set, it
	// names the part that is there.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Checkpoint string `json:"checkpoint,omitempty"`

	// secret is set if what carries authority over it, such as the address of
	// an upload session, is kept in the Secret of the post's uploads.
	// +optional
	Secret bool `json:"secret,omitempty"`

	// secretHash identifies what that Secret holds of it, by SHA-256 in
	// hexadecimal. What the Secret holds is used only if it fits: more people may
	// write Secrets than the status of posts.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	SecretHash string `json:"secretHash,omitempty"`

	// createdAt is when it was made or, while complete is not set, last worked on.
	// +required
	MadeAt Time `json:"madeAt"`

	// complete is set when nothing is left to be done but the visible call.
	// +optional
	Complete bool `json:"complete,omitempty"`

	// problem says why it could not be made, and what to do, in words.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem,omitempty"`
}

// Blocked says what keeps a pending target from being published, or why a
// target failed.
type Blocked struct {
	// reason is a machine-readable word for it.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason"`

	// problem says what is wrong, in words.
	// +required
	// +kubebuilder:validation:MaxLength=1024
	Problem string `json:"problem"`

	// remedy says what a person can do about it, in words; absent if nothing.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Remedy string `json:"remedy,omitempty"`
}

// TargetStatus is the record of one target: its facts, and phase, reason and
// message, which are derived from them for people.
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

	// state is what is settled of this target. It is absent in entries of a
	// version of Herald that recorded no states; phase tells there.
	// +optional
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'posted' || self == 'posted'",message="a posted target stays posted"
	State TargetState `json:"state,omitempty"`

	// blocked says what keeps this target from being published, or why it
	// failed; absent if nothing does, or did.
	// +optional
	Blocked *Blocked `json:"blocked,omitempty"`

	// phase sums up this target.
	// +required
	// +kubebuilder:validation:XValidation:rule="oldSelf != 'posted' || self == 'posted'",message="a posted target stays posted"
	Phase PostPhase `json:"phase"`

	// reason is a machine-readable word for the phase.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Reason string `json:"reason,omitempty"`

	// message says what happened and what to do, in words.
	// +optional
	// +kubebuilder:validation:MaxLength=2048
	Message string `json:"message,omitempty"`

	// externalID is the platform's id of the published post; of a tree, that
	// of its first card.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="externalID never changes once set"
	ExternalID string `json:"externalID,omitempty"`

	// unconfirmed is true if a person answered that it is published, and the platform has
	// not confirmed that it is a post of the account. An id is kept as the person entered
	// it, and no other post is taken for it. There is no id if the person had none.
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

	// tryUntil is when the manager gives up on what the platform refuses only
	// for the moment.
	// +optional
	TryUntil *Time `json:"tryUntil,omitempty"`

	// initialDeadline is what tryUntil was before a pause that the platform announced
	// moved it; absent while none did. It bounds how far tryUntil moves.
	// +optional
	InitialDeadline *Time `json:"initialDeadline,omitempty"`

	// suspendedUntil is the end of the last suspension of the team by which tryUntil
	// was moved; absent while it was moved by none.
	// +optional
	SuspendedUntil *Time `json:"suspendedUntil,omitempty"`

	// prepared is what was made ahead of the call; absent while nothing was, or
	// nothing needs to be.
	// +optional
	Prepared *Prepared `json:"prepared,omitempty"`

	// attempt is the record of the latest call that may have been made.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// candidates are posts of the account that may be the one in doubt, the newest first,
	// while only a person can tell. Posts that belong to other Posts are not among them.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	Candidates []Candidate `json:"candidates,omitempty"`

	// answerProblem says why the last answer of a person could not be entered, and what to
	// answer instead; absent while there is none, and once the question is answered.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	AnswerProblem string `json:"answerProblem,omitempty"`

	// cards holds the cards of a tree that are published: the first ones, up
	// to the first that is not. The last card is missing if a person answered that it is
	// published and had no id of it.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.index < size(self))",message="the cards of a tree are recorded in their order, without a gap"
	Cards []CardStatus `json:"cards,omitempty"`
}

// Candidate is a post of an account that may be the one in doubt.
type Candidate struct {
	// externalID is the platform's id of the post.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	ExternalID string `json:"externalID"`

	// externalURL is the address of the post; absent where the platform gives none.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	ExternalURL string `json:"externalURL,omitempty"`

	// text is the beginning of its text, or its title.
	// +optional
	// +kubebuilder:validation:MaxLength=140
	Text string `json:"text,omitempty"`

	// postedAt is when the platform published it.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`
}

// The bounds of what a target lists as candidates.
const (
	// MostCandidates is how many posts one target lists at most.
	MostCandidates = 10
	// MaxCandidateID, MaxCandidateURL and MaxCandidateText bound the fields, in characters.
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

	// unconfirmed is true if a person told the externalID, as for a target.
	// +optional
	Unconfirmed bool `json:"unconfirmed,omitempty"`

	// postedAt is when the platform published the card.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`
}

// EarlierPost is what was found of an earlier post of the same name.
type EarlierPost struct {
	// object is the uid of the Post for which that was looked for. In a copy from a backup it
	// is that of another one, so that it is looked for again.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	Object string `json:"object"`

	// record is the uid of the earlier post whose record was found; absent if there is none.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Record string `json:"record,omitempty"`

	// targets are the indexes of those that read what became of the earlier post's.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:Minimum=0
	// +kubebuilder:validation:items:Maximum=99
	Targets []int32 `json:"targets,omitempty"`

	// sentAt is when the first call for an earlier post of the name was claimed that is
	// not known to have published; absent if there is none. The search for a post
	// begins there.
	// +optional
	SentAt *Time `json:"sentAt,omitempty"`

	// publishAgain is true if the annotation social.herald.dev/publish-again named the
	// record, so that the post is published whatever became of the earlier one.
	// +optional
	PublishAgain bool `json:"publishAgain,omitempty"`

	// rewound is when it was noticed that the cluster had been put back to an earlier state,
	// from which this post is, and what became of it was looked up; absent if that was never
	// so.
	// +optional
	Rewound *Time `json:"rewound,omitempty"`
}

// PostStatus is what became of a post.
//
// +kubebuilder:validation:XValidation:rule="has(self.targets) || !has(oldSelf.targets) || size(oldSelf.targets) == 0",message="the record of a target is never removed"
type PostStatus struct {
	// conditions of the post: Accepted, Ready and Published; Prepared, Reconciling,
	// Stalled, OutcomeUnknown and Adopted where they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that this status speaks of. It is
	// -1 until Herald has looked at the object.
	// +optional
	// +kubebuilder:validation:Minimum=-1
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums up the post.
	// +optional
	Phase PostPhase `json:"phase,omitempty"`

	// finished is true when nothing is left to be done: the manager stops
	// watching the post.
	// +optional
	Finished bool `json:"finished,omitempty"`

	// finishedAt is when nothing was left to be done; absent before.
	// +optional
	FinishedAt *Time `json:"finishedAt,omitempty"`

	// finishedOn is the day of finishedAt in UTC, as 2006-01-02, to select posts by.
	// +optional
	// +kubebuilder:validation:MaxLength=10
	// +kubebuilder:validation:Pattern=`^[0-9]{4}-[0-9]{2}-[0-9]{2}$`
	FinishedOn string `json:"finishedOn,omitempty"`

	// cancelledAt is when the post was withdrawn before its delivery began. It stays
	// withdrawn, whatever its spec says from then on.
	// +optional
	CancelledAt *Time `json:"cancelledAt,omitempty"`

	// earlier says what was found of an earlier post of this name; absent until that was
	// looked for, and where it need not be.
	// +optional
	Earlier *EarlierPost `json:"earlier,omitempty"`

	// platforms of the targets, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Platforms string `json:"platforms,omitempty"`

	// posted is how many targets are posted, and of how many, for people: "2/3".
	// +optional
	// +kubebuilder:validation:MaxLength=7
	Posted string `json:"posted,omitempty"`

	// urls are the addresses of what is posted, for people, with spaces between them.
	// Those that 1,024 characters do not hold are left out; targets has them all.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	URLs string `json:"urls,omitempty"`

	// targets holds one entry per target that was accepted.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:rule="sets.contains(self.map(t, t.index), oldSelf.map(t, t.index))",message="the record of a target is never removed"
	Targets []TargetStatus `json:"targets,omitempty"`
}
