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
	// Delivers lists the categories that the Publisher can deliver today. A target of any other category fails when it
	// is due, without anything being sent.
	Delivers []v1alpha1.Category
	// MaxCaption is the maximum caption length as counted by CaptionLength, or zero for no limit. CaptionUnit is the
	// unit as shown in messages.
	MaxCaption    int
	CaptionUnit   string
	CaptionLength func(text string) int
	// OptionsLength returns the length of a target's options that counts towards MaxCaption, in the unit of
	// CaptionLength. It is nil on a platform without such options.
	OptionsLength func(target *v1alpha1.PostTarget) int
	// CaptionProblem returns any other problem with a caption, phrased to follow "the caption …", or "" if there is
	// none.
	CaptionProblem func(text string) string
	// CaptionWarning returns a caption problem that only affects some of the platform's apps or accounts, phrased to
	// follow "the caption …", or "" if there is none. It is nil on a platform without such a rule.
	CaptionWarning func(text string) string

	// MaxTitle is the maximum title length as counted by TitleLength, or zero on a platform without titles.
	// TitleProblem is the equivalent of CaptionProblem for titles.
	MaxTitle     int
	TitleLength  func(title string) int
	TitleProblem func(title string) string

	// ForAccount returns the rules for one account. It is nil on a platform where all accounts have the same rules.
	ForAccount func(account *v1alpha1.ConnectionStatus) Capabilities

	// Display describes how the platform shows a caption.
	Display Display

	// ValidateOptions validates a target's platform-specific options against the ones that the account allows. A draft
	// may leave out options that publishing requires. Error paths start at path. It is nil on a platform without such
	// options.
	ValidateOptions func(target *v1alpha1.PostTarget, draft bool, account *v1alpha1.ConnectionStatus, path *field.Path) field.ErrorList

	// MaxAltText is the maximum length of a file's alt text in characters; zero means that only v1alpha1.MaxAltText
	// applies.
	MaxAltText int
	// MaxImages is the maximum number of images in an image post.
	MaxImages int
	// MaxVideoBytes bounds the size of a video post's file; zero means that only the general upload limit applies.
	MaxVideoBytes int64
	// Card bounds the media of one card of a tree.
	Card CardLimits
	// Images are the limits for images that are sent unchanged. Other images are sent as a rendition.
	Images ImageLimits
	// Videos are the documented video limits. A post whose video exceeds them is rejected.
	Videos VideoLimits
	// DoubtfulVideos are limits that differ between sources or accounts: exceeding them only causes a warning.
	// VideoDoubt is the reason, as a sentence.
	DoubtfulVideos VideoLimits
	VideoDoubt     string
	// MaxVideoDuration returns the account's maximum video duration, or zero if unknown. It is nil on a platform where
	// all accounts have the same limit.
	MaxVideoDuration func(account *v1alpha1.ConnectionStatus) time.Duration
	// TakesThumbnail reports whether the platform needs the chosen thumbnail frame as an image file.
	TakesThumbnail bool
	// PublishFetches reports whether the platform fetches images during the visible call. The image URLs must then
	// be ready before it.
	PublishFetches bool

	// PreparedTTL is how long a preparation remains valid on the platform; zero on a platform without preparation.
	PreparedTTL time.Duration
	// SecretUploads reports whether Prepare stores a secret, such as an upload URL that grants access.
	SecretUploads bool
	// CallTimeout bounds one publishing call.
	CallTimeout time.Duration
	// ListingLag is how long a new post may be missing from the account's listing.
	ListingLag time.Duration
	// ConfirmAfter is how long after a refused call Lookup can determine whether the call published anyway; zero means
	// ListingLag. It is shorter if the platform tracks the call itself, for example as the state of an upload.
	ConfirmAfter time.Duration
	// ListingAuthoritative lists the categories whose listings prove absence: a post that is missing twice after
	// ListingLag was not published.
	ListingAuthoritative []v1alpha1.Category
	// Idempotent reports whether the platform keeps at most one post per Job.Key. Lookup then reads that post by
	// its key, so a single lookup settles the outcome of a call that has ended, and repeating the call never
	// publishes twice, even if the platform is still processing an earlier one. Herald never leaves the outcome to
	// a user.
	Idempotent bool
	// Hosts are the platform's hosts that Herald calls.
	Hosts Hosts
	// RefreshLead is how long before expiry a token is renewed.
	RefreshLead time.Duration
	// RenewsItself reports whether a valid access token is exchanged for a new one. The platform then has no
	// refresh tokens.
	RenewsItself bool
}

// Hosts are the platform's hosts that Herald calls, for firewall rules. All calls use HTTPS on port 443. Hosts that
// only a browser opens, such as the host of the consent page, are not included.
type Hosts struct {
	// Called are the hosts that Herald calls by default; the configuration may replace them.
	Called []string
	// Chosen reports whether Herald also calls the accounts' servers, which users choose.
	Chosen bool
	// Named are the hosts that the platform's responses may refer to, for example for uploads: names, or "*." and a
	// suffix. Herald refuses to call any other host from a response unless it is configured.
	Named []string
}

// CardLimits bounds the media on one card of a tree.
type CardLimits struct {
	// MaxItems is the maximum number of files on a card, and MaxVideos the maximum number of videos among them.
	MaxItems, MaxVideos int
	// Mixed reports whether a card may contain both images and videos.
	Mixed bool
	// MaxImageBytes and MaxVideoBytes bound each file; zero means that only the general upload limit applies.
	MaxImageBytes, MaxVideoBytes int64
}

// ImageLimits are the limits within which a platform accepts an image unchanged. A zero value means that only the
// general upload limit applies.
type ImageLimits struct {
	// Types are the accepted formats; nil means all upload formats.
	Types []v1alpha1.MimeType
	// MaxBytes bounds the file size; MaxWidth and MaxHeight bound the image in pixels.
	MaxBytes            int64
	MaxWidth, MaxHeight int
	// MaxPixels bounds the product of width and height.
	MaxPixels int64
	// EitherWay reports whether MaxWidth and MaxHeight may be swapped.
	EitherWay bool
	// MinAspect and MaxAspect bound width divided by height.
	MinAspect, MaxAspect float64
	// OnePicture reports whether a JPEG may contain only one image.
	OnePicture bool
}

// Of returns the rules for one account. A nil status means that nothing is known about the account.
func (c Capabilities) Of(account *v1alpha1.ConnectionStatus) Capabilities {
	if c.ForAccount == nil || account == nil {
		return c
	}
	return c.ForAccount(account)
}

// For returns the rules for a target's captions. CaptionLength then includes the options that count towards the length.
func (c Capabilities) For(target *v1alpha1.PostTarget) Capabilities {
	if c.OptionsLength == nil {
		return c
	}
	if options, count := c.OptionsLength(target), c.CaptionLength; options > 0 {
		c.CaptionLength = func(text string) int { return options + count(text) }
		c.CaptionUnit += " with the target's options"
	}
	return c
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
