// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ImageContent is what a post of category image shows.
type ImageContent struct {
	// mediaRefs name the Media to show, in this order. How many a post may
	// have is up to the strictest of its targets: x takes 4, instagram and
	// facebook 10, threads 20, tiktok 35. The same one may stand twice.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=35
	MediaRefs []LocalReference `json:"mediaRefs"`
}

// VideoContent is what a post of category video shows.
type VideoContent struct {
	// mediaRef names the Media to show.
	// +required
	MediaRef LocalReference `json:"mediaRef"`

	// thumbnailOffsetMillis is the moment of the video, in milliseconds from
	// its beginning, that stands for it as a picture. Omitted, the platform
	// chooses.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ThumbnailOffsetMillis *int32 `json:"thumbnailOffsetMillis,omitempty"`
}

// TreeContent is what a post of category tree says: a first post, and replies
// that hang from it.
type TreeContent struct {
	// cards are the posts of the tree in their order; every target gets all of
	// them. A tree that is not a draft has at least two.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="size(self) <= 4 || (oldSelf.hasValue() && oldSelf.value() == self) || self.map(c, has(c.caption) ? size(c.caption) : 0).sum() <= 262144",message="the captions of all cards together take more than 256 KiB; shorten them, or make several trees"
	Cards []TreeCard `json:"cards"`
}

// TreeCard is one post of a tree.
type TreeCard struct {
	// caption is the text of the card. A card of a tree that is not a draft
	// has text, media or both.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Caption string `json:"caption,omitempty"`

	// mediaRefs name the Media that the card shows, in this order: at most 4
	// on x and 20 on threads. A draft may have more until it is published.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	MediaRefs []LocalReference `json:"mediaRefs,omitempty"`
}

// YouTubeOptions are what only YouTube asks for.
type YouTubeOptions struct {
	// title of the video. Required on a YouTube connection unless the post is
	// a draft. YouTube takes at most 100 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Title string `json:"title,omitempty"`
}

// TikTokPrivacyLevel says who sees a post on TikTok.
// +kubebuilder:validation:Enum=PUBLIC_TO_EVERYONE;SELF_ONLY
type TikTokPrivacyLevel string

// The privacy levels that can be asked for, in TikTok's own spelling.
const (
	TikTokPublicToEveryone TikTokPrivacyLevel = "PUBLIC_TO_EVERYONE"
	TikTokSelfOnly         TikTokPrivacyLevel = "SELF_ONLY"
)

// TikTokOptions are what only TikTok asks for.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.draft) && self.draft && has(self.autoAddMusic) && self.autoAddMusic)",message="a TikTok draft cannot have music added; leave one of draft and autoAddMusic out"
// +kubebuilder:validation:XValidation:rule="!(has(self.draft) && self.draft && has(self.privacyLevel))",message="a TikTok draft has no privacyLevel, its owner chooses it in the app; leave one of draft and privacyLevel out"
type TikTokOptions struct {
	// privacyLevel says who sees the post. Omitted, it is PUBLIC_TO_EVERYONE.
	// A private account can choose SELF_ONLY only; what an account can choose
	// stands in its Connection, status.tiktok.privacyLevelOptions.
	// +optional
	PrivacyLevel TikTokPrivacyLevel `json:"privacyLevel,omitempty"`

	// allowComment lets people comment, unless the account has comments turned
	// off. Omitted, it is true.
	// +optional
	AllowComment *bool `json:"allowComment,omitempty"`

	// allowDuet lets people make duets with the video, unless the account has
	// them turned off. Only for category video. Omitted, it is true.
	// +optional
	AllowDuet *bool `json:"allowDuet,omitempty"`

	// allowStitch lets people use the video in stitches, unless the account
	// has them turned off. Only for category video. Omitted, it is true.
	// +optional
	AllowStitch *bool `json:"allowStitch,omitempty"`

	// draft sends the post to the inbox of the account's app, where its owner
	// finishes it, instead of publishing it. TikTok takes no caption with the
	// draft of a video, and at most 5 waiting drafts within 24 hours.
	// +optional
	Draft bool `json:"draft,omitempty"`

	// autoAddMusic lets TikTok choose music for the pictures. Only for
	// category image.
	// +optional
	AutoAddMusic bool `json:"autoAddMusic,omitempty"`

	// isAIGenerated shows the label for content made by artificial
	// intelligence.
	// +optional
	IsAIGenerated bool `json:"isAIGenerated,omitempty"`
}
