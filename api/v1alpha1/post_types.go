// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Category is the kind of content of a post.
// +kubebuilder:validation:Enum=text;image;video;tree
type Category string

// The categories.
const (
	// CategoryText is a caption alone.
	CategoryText Category = "text"
	// CategoryImage is a caption with pictures.
	CategoryImage Category = "image"
	// CategoryVideo is a caption with one video.
	CategoryVideo Category = "video"
	// CategoryTree is a chain of posts: a first one, and replies to it.
	CategoryTree Category = "tree"
)

// UnknownOutcomePolicy says what to do when a platform cannot tell whether a
// call took effect.
// +kubebuilder:validation:Enum=fail;retry
type UnknownOutcomePolicy string

// The policies for unknown outcomes.
const (
	// OnUnknownFail fails the target with reason OutcomeUnknown and waits for
	// a person.
	OnUnknownFail UnknownOutcomePolicy = "fail"
	// OnUnknownRetry sends once more: it may publish twice.
	OnUnknownRetry UnknownOutcomePolicy = "retry"
)

// PostSpec is what to publish, where and when. It is frozen once a call to a
// platform has been claimed for one of its targets.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.draft) && self.draft && has(self.scheduledAt))",message="a draft has no scheduledAt; remove draft to schedule the post, or scheduledAt to keep it as a draft"
// +kubebuilder:validation:XValidation:rule="!(has(self.cancelled) && self.cancelled) || (has(self.draft) && self.draft) || has(self.scheduledAt)",message="only a draft or a scheduled post can be cancelled; an immediate post is already being delivered"
// +kubebuilder:validation:XValidation:rule="!(has(oldSelf.cancelled) && oldSelf.cancelled) || (has(self.cancelled) && self.cancelled)",message="a cancelled post stays cancelled; create a new Post instead"
// +kubebuilder:validation:XValidation:rule="(has(oldSelf.draft) && oldSelf.draft) || !(has(self.draft) && self.draft)",message="a post that is not a draft cannot become one; cancel it and create a new draft instead"
// +kubebuilder:validation:XValidation:rule="(has(self.draft) && self.draft) || self.category == 'tree' || self.targets.all(t, has(t.caption) && size(t.caption) > 0)",message="every target needs a caption unless the post is a draft"
// +kubebuilder:validation:XValidation:rule="self.category == oldSelf.category",message="a post's category cannot be changed; create a new Post instead"
// +kubebuilder:validation:XValidation:rule="has(self.image) == (self.category == 'image')",message="a post of category image, and no other, has the block image",fieldPath=".image"
// +kubebuilder:validation:XValidation:rule="has(self.video) == (self.category == 'video')",message="a post of category video, and no other, has the block video",fieldPath=".video"
// +kubebuilder:validation:XValidation:rule="has(self.tree) == (self.category == 'tree')",message="a post of category tree, and no other, has the block tree",fieldPath=".tree"
// +kubebuilder:validation:XValidation:rule="!has(self.tree) || (has(self.draft) && self.draft) || size(self.tree.cards) >= 2",message="a tree needs at least two cards unless it is a draft; add a card, or use category text",fieldPath=".tree.cards"
// +kubebuilder:validation:XValidation:rule="!has(self.tree) || (has(self.draft) && self.draft) || self.tree.cards.all(c, (has(c.caption) && size(c.caption) > 0) || (has(c.mediaRefs) && size(c.mediaRefs) > 0))",message="every card needs a caption or media unless the tree is a draft",fieldPath=".tree.cards"
// +kubebuilder:validation:XValidation:rule="!has(self.tree) || (has(self.draft) && self.draft) || self.tree.cards.all(c, !has(c.mediaRefs) || size(c.mediaRefs) <= 20)",message="a card has at most 20 media unless the tree is a draft",fieldPath=".tree.cards"
// +kubebuilder:validation:XValidation:rule="self.category != 'tree' || self.targets.all(t, (!has(t.caption) || size(t.caption) == 0) && !has(t.youtube) && !has(t.tiktok))",message="the targets of a tree carry neither a caption nor options; the text stands in its cards",fieldPath=".targets"
// +kubebuilder:validation:XValidation:rule="self.category != 'tree' || self.targets.all(t, self.targets.exists_one(u, u.connectionRef.name == t.connectionRef.name))",message="a tree names each connection once",fieldPath=".targets"
// +kubebuilder:validation:XValidation:rule="self.category == 'image' || self.targets.all(t, !has(t.tiktok) || !has(t.tiktok.autoAddMusic) || !t.tiktok.autoAddMusic)",message="tiktok.autoAddMusic is for category image only; leave it out",fieldPath=".targets"
// +kubebuilder:validation:XValidation:rule="self.category == 'video' || self.targets.all(t, !has(t.tiktok) || (!has(t.tiktok.allowDuet) && !has(t.tiktok.allowStitch)))",message="tiktok.allowDuet and tiktok.allowStitch are for category video only; leave them out",fieldPath=".targets"
type PostSpec struct {
	// category of the content.
	// +required
	Category Category `json:"category"`

	// scheduledAt is when to publish. Omitted, the post is published at once.
	// +optional
	ScheduledAt *Time `json:"scheduledAt,omitempty"`

	// draft keeps the post without delivering it. Remove it or set it to
	// false to publish; every rule is checked then.
	// +optional
	Draft bool `json:"draft,omitempty"`

	// cancelled withdraws a draft or a scheduled post before its delivery
	// began. It cannot be taken back.
	// +optional
	Cancelled bool `json:"cancelled,omitempty"`

	// image is what a post of category image shows. Required for that
	// category, drafts included, and absent from all others.
	// +optional
	Image *ImageContent `json:"image,omitempty"`

	// video is what a post of category video shows. Required for that
	// category, drafts included, and absent from all others.
	// +optional
	Video *VideoContent `json:"video,omitempty"`

	// tree is what a post of category tree says. Required for that category,
	// drafts included, and absent from all others.
	// +optional
	Tree *TreeContent `json:"tree,omitempty"`

	// targets are the accounts to publish to, each with its own caption.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	Targets []PostTarget `json:"targets"`

	// onUnknownOutcome says what to do when a platform cannot tell whether a
	// call took effect: "fail" waits for a person, "retry" sends once more and
	// so may publish twice.
	// +optional
	// +kubebuilder:default=fail
	OnUnknownOutcome UnknownOutcomePolicy `json:"onUnknownOutcome,omitempty"`
}

// PostTarget is one account to publish to.
type PostTarget struct {
	// connectionRef names the Connection to publish to.
	// +required
	ConnectionRef LocalReference `json:"connectionRef"`

	// caption is the text to publish there. Required unless the post is a
	// draft or a tree, whose text stands in its cards. Each platform counts
	// and limits it in its own way; where one sets no limit, as Facebook, it
	// has at most 65,536 characters, because an object of Kubernetes has a
	// greatest size. For the same reason all captions of a post together,
	// with what becomes of it, must fit into 1.5 MiB, where <, > and & take
	// six bytes each.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Caption string `json:"caption,omitempty"`

	// youtube holds what only YouTube asks for. On a connection to another
	// platform it has no effect.
	// +optional
	YouTube *YouTubeOptions `json:"youtube,omitempty"`

	// tiktok holds what only TikTok asks for. On a connection to another
	// platform it has no effect.
	// +optional
	TikTok *TikTokOptions `json:"tiktok,omitempty"`
}

// PostPhase sums up a post, or one target of it, for people. It is derived
// from facts and never read back as an input.
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
	// OutcomeUnknown: nobody can tell. A person may, by the annotation
	// social.herald.dev/settle.
	OutcomeUnknown AttemptOutcome = "unknown"
)

// Attempt is the write-ahead record of one irrevocable call: it is stored
// before the call is made, and no other call is made until it is closed.
//
// +kubebuilder:validation:XValidation:rule="self.number >= oldSelf.number",message="the attempt number never decreases"
// +kubebuilder:validation:XValidation:rule="self.number != oldSelf.number || self.id == oldSelf.id",message="an attempt keeps its id"
// +kubebuilder:validation:XValidation:rule="self.number != oldSelf.number || self.?card.orValue(0) == oldSelf.?card.orValue(0)",message="an attempt keeps its card"
// +kubebuilder:validation:XValidation:rule="self.number != oldSelf.number || !has(oldSelf.outcome) || (has(self.outcome) && self.outcome == oldSelf.outcome) || (oldSelf.outcome == 'unknown' && has(self.outcome))",message="a closed attempt keeps its outcome, except that an unknown one may become known"
// +kubebuilder:validation:XValidation:rule="self.number != oldSelf.number || (has(self.checkpoint) == has(oldSelf.checkpoint) && (!has(self.checkpoint) || self.checkpoint == oldSelf.checkpoint))",message="an attempt keeps its checkpoint"
type Attempt struct {
	// number of this attempt; the first is 1.
	// +required
	// +kubebuilder:validation:Minimum=1
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

	// accountID is the platform's id of the account that was claimed. What
	// became of the call is asked of this account and no other.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	AccountID string `json:"accountID,omitempty"`

	// lookFrom is the earliest time at which this attempt, or an earlier one
	// whose outcome was in doubt, can have published. Defaults to startedAt.
	// +optional
	LookFrom *Time `json:"lookFrom,omitempty"`

	// endedAt is when the call is known to have ended without a clear answer.
	// +optional
	EndedAt *Time `json:"endedAt,omitempty"`

	// duplicate is set when the platform refused the call because it already
	// has the same content.
	// +optional
	Duplicate bool `json:"duplicate,omitempty"`

	// looks counts the authoritative looks that did not find the post.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Looks int32 `json:"looks,omitempty"`

	// outcome is how the attempt was closed; absent while it is open.
	// +optional
	Outcome AttemptOutcome `json:"outcome,omitempty"`
}

// TargetStatus is the ledger of one target.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.externalID) || (has(self.externalID) && self.externalID == oldSelf.externalID)",message="externalID never changes once set"
// +kubebuilder:validation:XValidation:rule="oldSelf.phase != 'posted' || self.phase == 'posted'",message="a posted target stays posted"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.attempt) || has(self.attempt)",message="the record of an attempt is never removed"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.attempt) || !has(self.attempt) || self.attempt.number == oldSelf.attempt.number || (self.attempt.?card.orValue(0) == oldSelf.attempt.?card.orValue(0) ? has(oldSelf.attempt.outcome) && oldSelf.attempt.outcome != 'posted' : self.attempt.?card.orValue(0) == oldSelf.attempt.?card.orValue(0) + 1)",message="a new attempt needs the previous one closed, and not posted, or else is for the next card"
// +kubebuilder:validation:XValidation:rule="!has(self.attempt) || has(self.attempt.outcome) || (has(self.cards) ? size(self.cards) : 0) == self.attempt.?card.orValue(0)",message="an open attempt is for the first card that is not recorded"
// +kubebuilder:validation:XValidation:rule="!has(self.cards) || self.cards.all(c, c.index < size(self.cards))",message="the cards of a tree are recorded in their order, without a gap"
// +kubebuilder:validation:XValidation:rule="(has(self.cards) ? size(self.cards) : 0) >= (has(oldSelf.cards) ? size(oldSelf.cards) : 0)",message="the record of a card is never removed"
type TargetStatus struct {
	// index of the target in spec.targets.
	// +required
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=99
	Index int32 `json:"index"`

	// platform of the target's connection.
	// +optional
	Platform Platform `json:"platform,omitempty"`

	// phase of this target.
	// +required
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
	ExternalID string `json:"externalID,omitempty"`

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

	// attempt is the record of the latest call that may have been made.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// cards holds the cards of a tree that are published: the first ones, up
	// to the first that is not.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	Cards []CardStatus `json:"cards,omitempty"`
}

// CardStatus is the record of one published card of a tree.
//
// +kubebuilder:validation:XValidation:rule="self.externalID == oldSelf.externalID",message="externalID never changes once set"
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
	ExternalID string `json:"externalID"`

	// postedAt is when the platform published the card.
	// +optional
	PostedAt *Time `json:"postedAt,omitempty"`
}

// PostStatus is what became of a post.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.targets) || size(oldSelf.targets) == 0 || (has(self.targets) && oldSelf.targets.all(o, self.targets.exists(n, n.index == o.index)))",message="the record of a target is never removed"
// +kubebuilder:validation:XValidation:rule="!has(self.targets) || self.targets.all(t, t.index >= 0)",message="a target's index is a whole number; 1.0 would be another key than 1"
type PostStatus struct {
	// conditions of the post: Accepted and Ready; Reconciling and Stalled
	// while they apply.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(c, c.lastTransitionTime >= timestamp('1970-01-01T00:00:00Z') && c.lastTransitionTime < timestamp('2999-01-01T00:00:00Z'))",message="lastTransitionTime must lie between the years 1970 and 2998"
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// observedGeneration is the generation that this status speaks of.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase sums up the post.
	// +optional
	Phase PostPhase `json:"phase,omitempty"`

	// finished is true when nothing is left to be done: the manager stops
	// watching the post.
	// +optional
	Finished bool `json:"finished,omitempty"`

	// platforms of the targets, for people.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Platforms string `json:"platforms,omitempty"`

	// targets holds one entry per target that was accepted.
	// +optional
	// +listType=map
	// +listMapKey=index
	// +kubebuilder:validation:MaxItems=100
	Targets []TargetStatus `json:"targets,omitempty"`
}

// Post is one piece of content published to one or more accounts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hpost,categories=herald
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.status.finished`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Category",type=string,JSONPath=`.spec.category`
// +kubebuilder:printcolumn:name="Platforms",type=string,JSONPath=`.status.platforms`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.spec.scheduledAt`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="URL",type=string,priority=1,JSONPath=`.status.targets[0].externalURL`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.targets) || !oldSelf.status.targets.exists(t, has(t.attempt)) || self.spec == oldSelf.spec",message="the spec is frozen: delivery has already begun"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.finished) || !oldSelf.status.finished || self.spec == oldSelf.spec",message="the spec is frozen: the post is finished; create a new Post instead"
type Post struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what is wanted.
	// +required
	Spec PostSpec `json:"spec"`

	// status is what is.
	// +optional
	Status PostStatus `json:"status,omitzero"`
}

// PostList is a list of posts.
//
// +kubebuilder:object:root=true
type PostList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Post `json:"items"`
}
