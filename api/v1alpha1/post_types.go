// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Category is a post's content type.
// +kubebuilder:validation:Enum=text;image;video;tree
type Category string

// The categories.
const (
	// CategoryText has a caption only.
	CategoryText Category = "text"
	// CategoryImage has a caption and images.
	CategoryImage Category = "image"
	// CategoryVideo has a caption and one video.
	CategoryVideo Category = "video"
	// CategoryTree is a thread: a first post and replies to it.
	CategoryTree Category = "tree"
)

// UnknownOutcomePolicy determines the reaction to a call whose outcome the platform cannot determine.
// +kubebuilder:validation:Enum=fail;retry
type UnknownOutcomePolicy string

// The unknown outcome policies.
const (
	// OnUnknownFail fails the target with reason OutcomeUnknown and waits for a user's answer.
	OnUnknownFail UnknownOutcomePolicy = "fail"
	// OnUnknownRetry sends the post again. It may be published twice.
	OnUnknownRetry UnknownOutcomePolicy = "retry"
)

// PostSpec is a post's desired content, accounts and time. It is immutable after the claim of the first platform call.
//
// +kubebuilder:validation:XValidation:rule="!has(self.draft) || !self.draft || !has(self.scheduledAt)",message="a draft cannot have scheduledAt; remove draft to schedule the post, or scheduledAt to keep it as a draft"
// +kubebuilder:validation:XValidation:rule="!has(self.cancelled) || !self.cancelled || has(self.scheduledAt) || has(self.draft) && self.draft",message="only a draft or a scheduled post can be cancelled; an immediate post is already being delivered"
// +kubebuilder:validation:XValidation:rule="!has(self.tree) && self.targets.all(t, size(t.?caption.orValue(\"\")) > 0 && !has(t.tiktok)) || (has(self.tree) ? self.targets.all(t, size(t.?caption.orValue(\"\")) == 0 && !has(t.youtube) && !has(t.tiktok) && self.targets.exists_one(u, u.connectionRef.name == t.connectionRef.name)) : (self.?draft.orValue(false) || self.category == 'tree' || self.targets.all(t, size(t.?caption.orValue(\"\")) > 0)) && (self.category == 'image' || self.targets.all(t, !has(t.tiktok) || !has(t.tiktok.autoAddMusic))) && (self.category == 'video' || self.targets.all(t, !has(t.tiktok) || !has(t.tiktok.allowDuet) && !has(t.tiktok.allowStitch))))",message="every target needs a caption unless the post is a draft",messageExpression="has(self.tree) ? (self.targets.all(t, size(t.?caption.orValue(\"\")) == 0 && !has(t.youtube) && !has(t.tiktok)) ? 'a tree must name each connection only once' : 'the targets of a tree cannot have a caption or options; write the text in its cards') : !self.?draft.orValue(false) && self.category != 'tree' && !self.targets.all(t, size(t.?caption.orValue(\"\")) > 0) ? 'every target needs a caption unless the post is a draft' : self.category != 'image' && self.targets.exists(t, has(t.tiktok) && has(t.tiktok.autoAddMusic)) ? 'tiktok.autoAddMusic is for category image only; remove it' : 'tiktok.allowDuet and tiktok.allowStitch are for category video only; remove them'",fieldPath=".targets"
// +kubebuilder:validation:XValidation:rule="has(self.image) == (self.category == 'image')",message="the image block is required for category image, and not allowed for other categories",fieldPath=".image"
// +kubebuilder:validation:XValidation:rule="has(self.video) == (self.category == 'video')",message="the video block is required for category video, and not allowed for other categories",fieldPath=".video"
// +kubebuilder:validation:XValidation:rule="has(self.tree) == (self.category == 'tree')",message="the tree block is required for category tree, and not allowed for other categories",fieldPath=".tree"
// +kubebuilder:validation:XValidation:rule="!has(self.tree) || self.?draft.orValue(false) || size(self.tree.cards) >= 2 && self.tree.cards.all(c, (size(c.?caption.orValue(\"\")) > 0 || size(c.?mediaRefs.orValue([])) > 0) && size(c.?mediaRefs.orValue([])) <= 20)",message="a tree needs at least two cards unless it is a draft; add a card, or use category text",messageExpression="size(self.tree.cards) < 2 ? 'a tree needs at least two cards unless it is a draft; add a card, or use category text' : self.tree.cards.all(c, size(c.?caption.orValue(\"\")) > 0 || size(c.?mediaRefs.orValue([])) > 0) ? 'a card can have at most 20 media unless the tree is a draft' : 'every card needs a caption or media unless the tree is a draft'",fieldPath=".tree.cards"
type PostSpec struct {
	// category of the content. It can be changed only while the post is a draft.
	// +required
	Category Category `json:"category"`

	// scheduledAt is the publication time. If omitted, the post is published immediately.
	// +optional
	ScheduledAt *Time `json:"scheduledAt,omitempty"`

	// retryOf names a failed Post in the namespace. A target of this post is published only if the failed post has a target with the same
	// connection that has provably published nothing, and that no other post retries. It cannot be changed.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="retryOf cannot be changed; create a new Post instead"
	RetryOf *LocalReference `json:"retryOf,omitempty"`

	// draft keeps the post without delivering it. Removing it or setting it to false publishes the post, after complete validation.
	// +optional
	Draft bool `json:"draft,omitempty"`

	// cancelled withdraws a draft or a scheduled post before delivery starts. It cannot be undone.
	// +optional
	Cancelled bool `json:"cancelled,omitempty"`

	// image is the content of a post of category image. Required for that category, drafts
	// included, and absent from all others.
	// +optional
	Image *ImageContent `json:"image,omitempty"`

	// video is the content of a post of category video. Required for that category, drafts
	// included, and absent from all others.
	// +optional
	Video *VideoContent `json:"video,omitempty"`

	// tree is the content of a post of category tree. Required for that category, drafts
	// included, and absent from all others.
	// +optional
	Tree *TreeContent `json:"tree,omitempty"`

	// targets are the accounts to publish to, each with its own caption.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="size(self) <= 4 || (oldSelf.hasValue() && oldSelf.value() == self) || self.map(t, has(t.caption) ? size(t.caption) : 0).sum() <= 262144",message="the captions of all targets total more than 256 KiB; shorten them, or create several posts with fewer targets each"
	Targets []PostTarget `json:"targets"`

	// onUnknownOutcome determines the reaction to a call whose outcome the platform cannot determine: "fail" waits for a user's answer;
	// "retry" sends the post again, which may publish it twice.
	// +optional
	// +kubebuilder:default=fail
	OnUnknownOutcome UnknownOutcomePolicy `json:"onUnknownOutcome,omitempty"`
}

// PostTarget is an account to publish to.
type PostTarget struct {
	// connectionRef names the Connection to publish to.
	// +required
	ConnectionRef LocalReference `json:"connectionRef"`

	// caption is the target's text. Required unless the post is a draft or a tree, whose cards contain the text. Each platform has its own
	// way to count and limit text. On platforms without a limit, such as Facebook, the maximum is 65,536 characters. The whole post,
	// including its annotations, is limited to 256 KiB, where <, > and & count as six bytes each.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Caption string `json:"caption,omitempty"`

	// language is the language of the target's text, or of all its cards, as a BCP 47 tag: "en", "pt-BR" or "zh-Hant". Readers on Bluesky
	// and Mastodon filter and translate posts by it; it has no effect on other platforms. Defaults to the account's preference on Mastodon,
	// and to no language on Bluesky.
	// +optional
	// +kubebuilder:validation:MaxLength=12
	// +kubebuilder:validation:Pattern=`^[a-z]{2,3}(-[A-Z][a-z]{3})?(-([A-Z]{2}|[0-9]{3}))?$`
	Language string `json:"language,omitempty"`

	// youtube holds the YouTube options. It has no effect on other platforms.
	// +optional
	YouTube *YouTubeOptions `json:"youtube,omitempty"`

	// tiktok holds the TikTok options. It has no effect on other platforms.
	// +optional
	TikTok *TikTokOptions `json:"tiktok,omitempty"`

	// mastodon holds the Mastodon options. It has no effect on other platforms.
	// +optional
	Mastodon *MastodonOptions `json:"mastodon,omitempty"`
}

// Post is one piece of content published to one or more accounts.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=hpost,categories=herald
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.status.finished`
// +kubebuilder:selectablefield:JSONPath=`.status.finishedOn`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Category",type=string,JSONPath=`.spec.category`
// +kubebuilder:printcolumn:name="Posted",type=string,JSONPath=`.status.posted`
// +kubebuilder:printcolumn:name="Platforms",type=string,JSONPath=`.status.platforms`
// +kubebuilder:printcolumn:name="Scheduled",type=string,JSONPath=`.spec.scheduledAt`
// +kubebuilder:printcolumn:name="Reason",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="URLs",type=string,priority=1,JSONPath=`.status.urls`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="oldSelf.hasValue() || self.metadata.name != 'new'",message="the name \"new\" is reserved: posts/new in the web application is the page for writing a post; choose another name",fieldPath=".metadata"
// +kubebuilder:validation:XValidation:rule="size(self.?status.?phase.orValue(\"\")) != size(oldSelf.?status.?phase.orValue(\"\")) || (self.spec.category == oldSelf.spec.category || oldSelf.spec.?draft.orValue(false)) && (oldSelf.?status.?finished.orValue(false) ? self.spec == oldSelf.spec || has(oldSelf.status.cancelledAt) && oldSelf.status.phase == 'cancelled' : (!oldSelf.spec.?cancelled.orValue(false) || self.spec.?cancelled.orValue(false)) && (!self.spec.?draft.orValue(false) || oldSelf.spec.?draft.orValue(false)) && (!has(oldSelf.status) || !has(oldSelf.status.targets) || (!oldSelf.status.targets.exists(t, has(t.attempt)) || self.spec == oldSelf.spec || self.spec.?cancelled.orValue(false) && oldSelf.status.targets.all(t, [t.?attempt].all(a, !a.hasValue() || a.?outcome.orValue(\"\") == 'notSent' && a.?group.hasValue() && !a.?searchFrom.hasValue() && !a.?unknownSince.hasValue() && !a.?endedAt.hasValue() && a.?lookups.orValue(0) == 0 && !has(t.externalID) && !has(t.cards)))) && (!oldSelf.status.targets.exists(t, t.?state.orValue(\"\") == 'undecided') || self.spec.targets.map(t, t.connectionRef.name) == oldSelf.spec.targets.map(t, t.connectionRef.name))))",message="the spec is frozen: the post is finished; create a new Post instead",messageExpression="self.spec.category != oldSelf.spec.category && !oldSelf.spec.?draft.orValue(false) ? 'the category can be changed only while the post is a draft; create a new Post instead' : oldSelf.?status.?finished.orValue(false) ? 'the spec is frozen: the post is finished; create a new Post instead' : has(oldSelf.status) && has(oldSelf.status.targets) && oldSelf.status.targets.exists(t, has(t.attempt)) ? 'the spec is frozen: delivery has already begun' : oldSelf.spec.?cancelled.orValue(false) && !self.spec.?cancelled.orValue(false) ? 'this post is cancelled, and Herald has not recorded that yet: apply it again after status.cancelledAt is set. It is then accepted, and the post stays cancelled; to publish it, create a new Post' : self.spec.?draft.orValue(false) && !oldSelf.spec.?draft.orValue(false) ? 'a post that is not a draft cannot become one; cancel it and create a new draft instead' : 'the targets are frozen: it is unknown whether this post was published; answer as its condition OutcomeUnknown says, and create a new Post for other targets'",fieldPath=".spec"
type Post struct {
	metav1.TypeMeta `json:",inline"`
	// metadata of the object.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state of the post.
	// +required
	Spec PostSpec `json:"spec"`

	// status is the observed state of the post.
	// +optional
	// +kubebuilder:default={observedGeneration:-1}
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
