// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MaxAltText is the maximum length of an alt text in characters. X, Threads and Instagram document 1,000. Facebook does not document a limit.
// The schema contains the same number.
const MaxAltText = 1000

// MediaReference names a Media and describes how a post uses it.
type MediaReference struct {
	// name of the Media in the post's namespace.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	Name string `json:"name"`

	// altText describes the image or video for people who cannot see it, in at most 1,000 characters. Defaults to the Media's altText. It is
	// sent to X, Threads, Bluesky and Mastodon with images and videos, and to Instagram and Facebook with images. YouTube and TikTok do not accept one.
	// +optional
	// +kubebuilder:validation:MaxLength=1000
	AltText string `json:"altText,omitempty"`

	// focalPoint is the point of the image or video that cropped previews keep visible. Only Mastodon accepts one.
	// +optional
	FocalPoint *FocalPoint `json:"focalPoint,omitempty"`
}

// FocalPoint is a point of an image, in percent of the way from its center to its edges.
type FocalPoint struct {
	// x is the horizontal position: -100 is the left edge, 0 the center, and 100 the right edge.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	X int32 `json:"x"`

	// y is the vertical position: -100 is the bottom edge, 0 the center, and 100 the top edge.
	// +required
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	Y int32 `json:"y"`
}

// ImageContent is the content of a post of category image.
type ImageContent struct {
	// mediaRefs name the images' Media, in display order. The strictest target limits their number: 4 on x, 4 on mastodon unless its server permits more, 10 on instagram and facebook,
	// 20 on threads, 35 on tiktok. A Media may be listed more than once.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=35
	MediaRefs []MediaReference `json:"mediaRefs"`
}

// VideoContent is the content of a post of category video.
type VideoContent struct {
	// mediaRef names the video's Media.
	// +required
	MediaRef MediaReference `json:"mediaRef"`

	// thumbnailOffsetMillis is the position of the thumbnail frame, in milliseconds from the start of the video. If omitted, the platform
	// chooses a frame.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=2147483647
	ThumbnailOffsetMillis *int32 `json:"thumbnailOffsetMillis,omitempty"`
}

// TreeContent is the content of a post of category tree: a first post and its replies.
type TreeContent struct {
	// cards are the posts of the tree in order; every target receives all of them. A tree
	// that is not a draft has at least two.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:XValidation:optionalOldSelf=true,rule="size(self) <= 4 || (oldSelf.hasValue() && oldSelf.value() == self) || self.map(c, has(c.caption) ? size(c.caption) : 0).sum() <= 262144",message="the captions of all cards total more than 256 KiB; shorten them, or create several trees"
	Cards []TreeCard `json:"cards"`
}

// TreeCard is one post of a tree.
type TreeCard struct {
	// caption is the card's text. Each card has text, media or both, unless the tree is a draft.
	// +optional
	// +kubebuilder:validation:MaxLength=65536
	Caption string `json:"caption,omitempty"`

	// mediaRefs name the card's Media, in display order: at most 4 on x and 20 on threads. A draft may exceed these limits until it is
	// published.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=100
	MediaRefs []MediaReference `json:"mediaRefs,omitempty"`
}

// YouTubeOptions holds the YouTube options.
type YouTubeOptions struct {
	// title of the video. Required on YouTube connections unless the post is a draft. YouTube accepts at most 100 characters.
	// +optional
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	Title string `json:"title,omitempty"`
}

// TikTokPrivacyLevel is the audience of a TikTok post.
// +kubebuilder:validation:Enum=PUBLIC_TO_EVERYONE;SELF_ONLY
type TikTokPrivacyLevel string

// The supported privacy levels, in TikTok's spelling.
const (
	TikTokPublicToEveryone TikTokPrivacyLevel = "PUBLIC_TO_EVERYONE"
	TikTokSelfOnly         TikTokPrivacyLevel = "SELF_ONLY"
)

// TikTokOptions holds the TikTok options.
//
// +kubebuilder:validation:XValidation:rule="!(has(self.draft) && self.draft && has(self.autoAddMusic) && self.autoAddMusic)",message="music cannot be added to a TikTok draft; remove draft or autoAddMusic"
// +kubebuilder:validation:XValidation:rule="!(has(self.draft) && self.draft && has(self.privacyLevel))",message="a TikTok draft has no privacyLevel: its owner chooses it in the app; remove draft or privacyLevel"
type TikTokOptions struct {
	// privacyLevel is the audience of the post. Defaults to PUBLIC_TO_EVERYONE. A private account supports SELF_ONLY only. The Connection
	// lists its account's levels in status.tiktok.privacyLevelOptions.
	// +optional
	PrivacyLevel TikTokPrivacyLevel `json:"privacyLevel,omitempty"`

	// allowComment permits comments, unless they are disabled for the account. Defaults to true.
	// +optional
	AllowComment *bool `json:"allowComment,omitempty"`

	// allowDuet permits duets, unless they are disabled for the account. Only for category video. Defaults to true.
	// +optional
	AllowDuet *bool `json:"allowDuet,omitempty"`

	// allowStitch permits stitches, unless they are disabled for the account. Only for category video. Defaults to true.
	// +optional
	AllowStitch *bool `json:"allowStitch,omitempty"`

	// draft sends the post to the account's TikTok inbox, where the account owner completes it, instead of publishing it. TikTok accepts no
	// caption for video drafts, and at most 5 pending drafts within 24 hours.
	// +optional
	Draft bool `json:"draft,omitempty"`

	// autoAddMusic lets TikTok add music to the images. Only for category image.
	// +optional
	AutoAddMusic bool `json:"autoAddMusic,omitempty"`

	// isAIGenerated shows the label for AI-generated content.
	// +optional
	IsAIGenerated bool `json:"isAIGenerated,omitempty"`
}

// MastodonVisibility is the audience of a Mastodon post.
// +kubebuilder:validation:Enum=public;unlisted;private;direct
type MastodonVisibility string

// The visibilities, in Mastodon's spelling.
const (
	// MastodonPublic posts are visible to everyone.
	MastodonPublic MastodonVisibility = "public"
	// MastodonUnlisted posts are visible to everyone, but not in public timelines.
	MastodonUnlisted MastodonVisibility = "unlisted"
	// MastodonPrivate posts are visible to followers.
	MastodonPrivate MastodonVisibility = "private"
	// MastodonDirect posts are visible to the accounts that they mention.
	MastodonDirect MastodonVisibility = "direct"
)

// MastodonOptions holds the Mastodon options. In a tree they apply to every card.
type MastodonOptions struct {
	// contentWarning is shown instead of the post until the reader opens it. It counts towards the length of the post, and marks its media
	// as sensitive. Mastodon shows it as the text of a post that has none.
	// +optional
	// +kubebuilder:validation:MaxLength=500
	ContentWarning string `json:"contentWarning,omitempty"`

	// sensitive hides the media until the reader opens them. Defaults to the account's preference.
	// +optional
	Sensitive bool `json:"sensitive,omitempty"`

	// visibility is the audience of the post. Defaults to the account's preference.
	// +optional
	Visibility MastodonVisibility `json:"visibility,omitempty"`
}
