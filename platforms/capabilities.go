// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Capabilities is what a platform declares about itself.
type Capabilities struct {
	// Categories lists what can be posted there.
	Categories []v1alpha1.Category
	// Delivers lists those categories that the Publisher can deliver today. A
	// target of another one fails when its time has come, and nothing is sent.
	Delivers []v1alpha1.Category
	// MaxCaption is the greatest caption length, counted by CaptionLength;
	// zero means no limit. CaptionUnit names the unit, for messages.
	MaxCaption    int
	CaptionUnit   string
	CaptionLength func(text string) int
	// CaptionProblem returns what else is wrong with a caption, in words that
	// continue "the caption …", or "".
	CaptionProblem func(text string) string
	// CaptionWarning returns what some apps or accounts of the platform may not
	// publish and others may, in words that continue "the caption …", or "". Nil on
	// a platform that has no such rule.
	CaptionWarning func(text string) string

	// MaxTitle is the greatest length of a title, counted by TitleLength; zero
	// on a platform that has none. TitleProblem is to titles what
	// CaptionProblem is to captions.
	MaxTitle     int
	TitleLength  func(title string) int
	TitleProblem func(title string) string

	// ValidateOptions returns what is wrong with the options of a target that
	// only this platform has, given what the account tells that it may choose. A
	// draft may leave out what it has to choose before it is published.
	// The paths of the errors begin with that of the target. Nil on a platform
	// that has no such options.
	ValidateOptions func(target *v1alpha1.PostTarget, draft bool, account *v1alpha1.ConnectionStatus, path *field.Path) field.ErrorList

	// MaxImages is how many images an image post shows at most.
	MaxImages int
	// MaxVideoBytes bounds the file of a video post; zero means that the bound
	// of every upload suffices.
	MaxVideoBytes int64
	// Card bounds the media of one card of a tree.
	Card CardLimits
	// Images says which images the platform takes as they are; of others it
	// gets a rendition.
	Images ImageLimits
	// Videos bounds a video by what the platform's documents say: a post with one beyond
	// them is refused.
	Videos VideoLimits
	// DoubtfulVideos bounds a video by what some sources say and others, or other accounts,
	// contradict: a person is warned. VideoDoubt says why, as a sentence.
	DoubtfulVideos VideoLimits
	VideoDoubt     string
	// MaxVideoDuration returns how long a video may play that an account posts; zero if
	// the account does not tell. Nil on a platform whose accounts are alike.
	MaxVideoDuration func(account *v1alpha1.ConnectionStatus) time.Duration
	// TakesThumbnail says that the platform wants a picture where a moment of
	// the video was chosen as its thumbnail.
	TakesThumbnail bool
	// PublishFetches says that the platform fetches images by the visible call:
	// what their addresses need is made ahead of it.
	PublishFetches bool

	// PreparedTTL is how long the platform keeps what Prepare made; zero on a
	// platform that prepares nothing.
	PreparedTTL time.Duration
	// SecretUploads says that Prepare notes a secret: what it makes is reached
	// by an address that carries authority.
	SecretUploads bool
	// CallTimeout bounds one publishing call.
	CallTimeout time.Duration
	// ListingLag is how long a published post may be missing from the
	// account's listing.
	ListingLag time.Duration
	// ConfirmAfter is how long after a refused call Lookup shows whether the call
	// published all the same; zero means ListingLag. It is shorter where the platform
	// keeps a state of the call itself, such as that of an upload.
	ConfirmAfter time.Duration
	// ListingAuthoritative names the categories of which absence from the listing,
	// looked at twice past ListingLag, proves that nothing was published.
	ListingAuthoritative []v1alpha1.Category
	// Hosts says where Herald calls the platform.
	Hosts Hosts
	// RefreshLead is how long before its expiry a token is renewed.
	RefreshLead time.Duration
	// RenewsItself says that an access token that has not ended is what renews
	// it: the platform has no refresh tokens.
	RenewsItself bool
}

// Hosts says where Herald calls a platform, as a firewall has to know it. All calls go
// by HTTPS to port 443. What only browsers of people open, such as the page of consent,
// is not among them.
type Hosts struct {
	// Called are the hosts that Herald calls unless others are configured.
	Called []string
	// Named are hosts to which addresses lead that the platform names in its answers
	// and Herald calls, such as those of uploads: names, or "*." and the end of names.
	// Other such addresses are not called, but for configured ones.
	Named []string
}

// CardLimits bounds the media of one card of a tree.
type CardLimits struct {
	// MaxItems is how many media a card shows at most, and MaxVideos how many
	// of them may be videos.
	MaxItems, MaxVideos int
	// Mixed says that images and videos may stand on one card.
	Mixed bool
	// MaxImageBytes and MaxVideoBytes bound each file; zero means that the
	// bound of every upload suffices.
	MaxImageBytes, MaxVideoBytes int64
}

// ImageLimits says which images a platform takes as they are. Zero values mean
// that what every upload may be suffices.
type ImageLimits struct {
	// Types are the formats; empty for every one that an upload may have.
	Types []v1alpha1.MimeType
	// MaxBytes bounds the file, and MaxWidth and MaxHeight the picture, in
	// pixels.
	MaxBytes            int64
	MaxWidth, MaxHeight int
	// EitherWay says that MaxWidth and MaxHeight may change places.
	EitherWay bool
	// MinAspect and MaxAspect bound width divided by height.
	MinAspect, MaxAspect float64
	// OnePicture says that a JPEG must not hold further pictures behind the first.
	OnePicture bool
}

// CanDeliver reports whether the publisher delivers the category today.
func (c Capabilities) CanDeliver(category v1alpha1.Category) bool {
	return slices.Contains(c.Delivers, category)
}

// ProvesAbsence reports whether the listing is authoritative for the category.
func (c Capabilities) ProvesAbsence(category v1alpha1.Category) bool {
	return slices.Contains(c.ListingAuthoritative, category)
}

// Allows reports whether the category can be posted on the platform.
func (c Capabilities) Allows(category v1alpha1.Category) bool {
	return slices.Contains(c.Categories, category)
}
