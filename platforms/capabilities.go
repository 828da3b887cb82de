// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Capabilities are the rules that a platform declares.
type Capabilities struct {
	// Categories lists the categories that can be posted to the platform.
	Categories []v1alpha1.Category
	// Delivers lists the categories that the Publisher can deliver today. A target of another category fails when it is
	// due, and nothing is sent.
	Delivers []v1alpha1.Category
	// MaxCaption is the maximum caption length, counted by CaptionLength; zero means no limit. CaptionUnit names the
	// unit, for messages.
	MaxCaption    int
	CaptionUnit   string
	CaptionLength func(text string) int
	// CaptionProblem returns any other problem of a caption, in words that continue "the caption …", or "".
	CaptionProblem func(text string) string
	// CaptionWarning returns a caption problem that applies only to some apps or accounts of the platform, in words
	// that continue "the caption …", or "". Nil on a platform without such a rule.
	CaptionWarning func(text string) string

	// MaxTitle is the maximum title length, counted by TitleLength; zero on a platform without titles. TitleProblem is
	// the equivalent of CaptionProblem for titles.
	MaxTitle     int
	TitleLength  func(title string) int
	TitleProblem func(title string) string

	// ValidateOptions validates the platform-specific options of a target against the options that the account allows.
	// A draft may omit options that are required for publishing. The paths of the errors start with the target's path.
	// Nil on a platform without such options.
	ValidateOptions func(target *v1alpha1.PostTarget, draft bool, account *v1alpha1.ConnectionStatus, path *field.Path) field.ErrorList

	// MaxImages is the maximum number of images in an image post.
	MaxImages int
	// MaxVideoBytes bounds the file of a video post; zero means that the general upload limit suffices.
	MaxVideoBytes int64
	// Card bounds the media of one card of a tree.
	Card CardLimits
	// Images are the limits for images that are sent unchanged. Other images are sent as a rendition.
	Images ImageLimits
	// Videos are the documented limits for videos. A post with a video outside these limits is refused.
	Videos VideoLimits
	// DoubtfulVideos are limits that sources or accounts disagree about: a video outside them causes a warning.
	// VideoDoubt is the reason, as a sentence.
	DoubtfulVideos VideoLimits
	VideoDoubt     string
	// MaxVideoDuration returns the maximum duration of a video for this account; zero if unknown. Nil on a platform
	// with the same limit for all accounts.
	MaxVideoDuration func(account *v1alpha1.ConnectionStatus) time.Duration
	// TakesThumbnail reports whether the platform needs an image file for the video frame chosen as the thumbnail.
	TakesThumbnail bool
	// PublishFetches reports whether the platform fetches images during the visible call, so everything that their
	// addresses need is prepared before it.
	PublishFetches bool

	// PreparedTTL is the lifetime of a preparation on the platform; zero on a platform without preparation.
	PreparedTTL time.Duration
	// SecretUploads reports whether Prepare stores a secret: the address of its upload grants access.
	SecretUploads bool
	// CallTimeout bounds one publishing call.
	CallTimeout time.Duration
	// ListingLag is how long a new post may be missing from the account's listing.
	ListingLag time.Duration
	// ConfirmAfter is the delay after a refused call until Lookup shows whether the call published anyway; zero means
	// ListingLag. It is shorter where the platform keeps a state of the call itself, such as the state of an upload.
	ConfirmAfter time.Duration
	// ListingAuthoritative lists the categories whose listings prove absence: a post that is missing twice, past
	// ListingLag, was not published.
	ListingAuthoritative []v1alpha1.Category
	// Hosts are the platform's hosts that Herald calls.
	Hosts Hosts
	// RefreshLead is how long before its expiry a token is renewed.
	RefreshLead time.Duration
	// RenewsItself reports whether a valid access token renews itself: the platform has no refresh tokens.
	RenewsItself bool
}

// Hosts are the platform's hosts that Herald calls, as needed for a firewall rule. All calls use HTTPS on port 443.
// Hosts that only a browser opens, such as the consent page, are not included.
type Hosts struct {
	// Called are the hosts that Herald calls by default; the configuration may replace them.
	Called []string
	// Named are the hosts of addresses in the platform's answers, such as upload addresses: names, or "*." and a
	// suffix. Herald refuses to call other such addresses unless they are configured.
	Named []string
}

// CardLimits bounds the media of one card of a tree.
type CardLimits struct {
	// MaxItems is the maximum number of media on a card, and MaxVideos the maximum number of videos among them.
	MaxItems, MaxVideos int
	// Mixed reports whether a card may contain both images and videos.
	Mixed bool
	// MaxImageBytes and MaxVideoBytes bound each file; zero means that the general upload limit suffices.
	MaxImageBytes, MaxVideoBytes int64
}

// ImageLimits are the limits for images that a platform accepts unchanged. A zero value means that the general upload
// limit suffices.
type ImageLimits struct {
	// Types are the accepted formats; empty for all upload formats.
	Types []v1alpha1.MimeType
	// MaxBytes bounds the file, and MaxWidth and MaxHeight the image, in pixels.
	MaxBytes            int64
	MaxWidth, MaxHeight int
	// EitherWay reports whether MaxWidth and MaxHeight may be swapped.
	EitherWay bool
	// MinAspect and MaxAspect bound width divided by height.
	MinAspect, MaxAspect float64
	// OnePicture reports whether a JPEG must not contain more images after the first.
	OnePicture bool
}

// CanDeliver reports whether the Publisher can deliver the category today.
func (c Capabilities) CanDeliver(category v1alpha1.Category) bool {
	return slices.Contains(c.Delivers, category)
}

// ProvesAbsence reports whether the listing is authoritative for the category.
func (c Capabilities) ProvesAbsence(category v1alpha1.Category) bool {
	return slices.Contains(c.ListingAuthoritative, category)
}

// Allows reports whether the category can be posted to the platform.
func (c Capabilities) Allows(category v1alpha1.Category) bool {
	return slices.Contains(c.Categories, category)
}
