// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Platform is what Herald needs of every social platform: its rules, and a way
// to ask about accounts. One that can also be published to is a Publisher.
// Methods may be called from many goroutines at once.
type Platform interface {
	Accounts
	// Capabilities declares the platform's rules. The result never changes.
	Capabilities() Capabilities
}

// Publisher is a Platform that makes content public and finds out afterwards
// whether it is. Its Capabilities name the categories that it takes.
type Publisher interface {
	Platform

	// Publish makes the one irrevocable call for a job. It never retries,
	// follows no redirect, and reports what is known afterwards: the result is
	// Accepted if the platform took it and works on it, and Unknown whenever the
	// call may have taken effect without saying so.
	Publish(ctx context.Context, job Job) Result

	// Lookup asks the platform whether the job's content was published at or
	// after job.SearchFrom. It never publishes. An error means that the platform
	// gave no usable answer; it is an *Error where the platform said why.
	Lookup(ctx context.Context, job Job) (LookupResult, error)
}

// Confirmer is a Publisher that can tell whose a post is.
type Confirmer interface {
	// Confirm asks the platform whether a post is of an account. An error means that it
	// gave no usable answer.
	Confirm(ctx context.Context, account Account, externalID string) (Ownership, error)
}

// Finisher is a Publisher that has something left to do once a post is online, such
// as setting a thumbnail that it takes only then. Publish does that itself for what it
// reports as Posted.
type Finisher interface {
	// Finish does what is left for the post that Lookup found. It is called before
	// that is recorded, so that a crash does not lose it, and may be repeated at will.
	// It returns what people should know of the post, as Result.Note does.
	Finish(ctx context.Context, job Job, externalID string) (note string)
}

// Ownership is whose a post is.
type Ownership string

// The answers of Confirm.
const (
	// Own: the post is of the account.
	Own Ownership = "own"
	// Foreign: it is of another account.
	Foreign Ownership = "foreign"
	// Unshown: the platform does not show it. It may have been deleted.
	Unshown Ownership = "unshown"
)

// Preparer is a Publisher that publishes in two steps: it makes something on
// the platform that is not visible, and then makes it visible by one call.
type Preparer interface {
	// Prepares reports whether a content takes the first step: a platform may
	// take a text as it is, and a picture in two.
	Prepares(content Content) bool

	// Prepare makes what Publish will make visible, and returns when that is
	// ready, with its name. The name goes into the claim of the call and comes
	// back as job.Checkpoint, with Publish and with Lookup.
	//
	// It may be repeated at will: what is not made visible vanishes by itself.
	// If job.Checkpoint names what was prepared before, for the same content,
	// that is used again as long as it is good. It may name a part only, from
	// Job.Note while the rest was under way: Prepare goes on from there where
	// the platform allows, and from the start otherwise. ClassDuplicate means
	// that it has become visible meanwhile, by a call that was taken for lost:
	// nothing may be sent then, and the caller looks it up.
	Prepare(ctx context.Context, job Job) (checkpoint string, err *Error)
}

// Accounts asks about accounts and renews their tokens.
type Accounts interface {
	// Identify asks the platform whose token this is. Errors are *Error.
	Identify(ctx context.Context, token Token) (Identity, error)

	// Refresh renews a token. The old refresh token may have stopped working
	// by the time it returns, so the caller stores the new one before it uses
	// it. Errors are *Error; ClassReconnect means that a person must connect
	// the account again.
	Refresh(ctx context.Context, token Token) (Token, error)
}

// Token is what a connected account hands out.
type Token struct {
	// Access is sent with every call. Never logged.
	Access string
	// Refresh renews Access; empty where the platform has none.
	Refresh string
	// ExpiresAt is when Access ends; zero where it does not.
	ExpiresAt time.Time
	// RefreshExpiresAt is when Refresh ends; zero where it does not, or where
	// the platform does not say.
	RefreshExpiresAt time.Time
	// Scopes are the granted scopes, separated by spaces.
	Scopes string
	// App is the client id of the installation's app if the token is known to be of
	// it, and empty otherwise: people may bring tokens of any app. What the platform
	// says of "the app" is about this one.
	App string
}

// Identity is the account behind a token.
type Identity struct {
	// AccountID is the platform's stable id of the account.
	AccountID string
	// DisplayName is the name that people see.
	DisplayName string
	// Username is the handle, without "@"; empty where there is none.
	Username string
	// IconURL is the address of the account's picture; may be empty.
	IconURL string
}

// Account is the account that a job publishes to.
type Account struct {
	ID       string
	Username string
	Token    Token
}

// Content is what a job publishes.
type Content struct {
	Category v1alpha1.Category
	// Text is the caption, exactly as the person wrote it; of a tree, that of
	// the card. It is empty if beside files there are blanks alone.
	Text string
	// InReplyTo is the platform's id of the card before, from which this card of
	// a tree hangs; empty for the first card, and outside trees.
	InReplyTo string
	// Media are the files of the post, or of the card, in the order in which
	// they are shown.
	Media []File
	// ThumbnailAt is which moment of the video is its thumbnail, if one was
	// chosen. Thumbnail is the picture of that moment, for platforms whose
	// Capabilities.TakesThumbnail asks for one; nil if there is none.
	ThumbnailAt *time.Duration
	Thumbnail   *File
	// Title is what only YouTube asks for.
	Title string
	// TikTok holds what only TikTok asks for.
	TikTok v1alpha1.TikTokOptions
}

// Job is one publication to one account.
type Job struct {
	Account Account
	Content Content
	// Checkpoint names what Prepare made for this content; empty if there is
	// nothing, or on a platform that is no Preparer. Everyone who may read the
	// post can read it, so it carries no authority.
	Checkpoint string
	// Secret is what belongs to the checkpoint and carries authority, such as
	// the address of an upload session. It is kept as a secret, and is empty if
	// Prepare noted none, or if it is lost.
	Secret string
	// OperationID is the Result.OperationID of an earlier Publish of this call, and
	// AcceptedAt when that call ended; zero if nobody saw its end.
	OperationID string
	AcceptedAt  time.Time
	// Keep stores how far Prepare has come; see Note.
	Keep func(ctx context.Context, checkpoint, secret string) error
	// SearchFrom is the earliest time at which a call for this job can have
	// taken effect. Lookup ignores what is older.
	SearchFrom time.Time
	// Taken reports whether a post of the account is known to belong to
	// another job; Lookup passes over those. Nil means none is.
	Taken func(externalID string) bool
}

// Note tells the caller of Prepare how far it has come, so that a later one, in
// this process or another, goes on from there: both values come back in the job.
// It returns when the secret is stored.
func (j *Job) Note(ctx context.Context, checkpoint, secret string) *Error {
	if j.Keep == nil {
		return nil
	}
	if err := j.Keep(ctx, checkpoint, secret); err != nil {
		return Errorf(ClassTransient, "how far the upload has come cannot be stored in the Kubernetes API").Because(err)
	}
	return nil
}

// Outcome is what is known after a call that could publish.
type Outcome string

// The outcomes.
const (
	// Posted: the platform confirmed it.
	Posted Outcome = "posted"
	// Refused: the platform answered that it did not publish. That is a claim and
	// no proof: the caller asks by Lookup before it believes it.
	Refused Outcome = "refused"
	// NotSent: no connection was obtained, so nothing left the process.
	NotSent Outcome = "notSent"
	// Accepted: the platform took the call and works on it under Result.OperationID.
	// Lookup tells what becomes of it.
	Accepted Outcome = "accepted"
	// Unknown: the call may have taken effect.
	Unknown Outcome = "unknown"
)

// Result is the outcome of Publish.
type Result struct {
	Outcome Outcome
	// OperationID is the platform's id of a call that it took and still works
	// on, with Accepted: the caller stores it and looks the call up by it. If
	// only the answer tells it, Publish returns at once, since the id is lost
	// with the process until the caller has stored it.
	OperationID string
	// ExternalID and ExternalURL name the published post. With Posted, an
	// empty id means that the platform confirmed without saying which.
	ExternalID  string
	ExternalURL string
	// PostedAt is when the platform says it published; zero where it does not
	// say.
	PostedAt time.Time
	// Unpublished says, with Refused, that the platform was asked after the refusal
	// about the very thing that the call was to make visible, and that it is not
	// visible. Another call may follow without another question.
	Unpublished bool
	// Note tells people what they should know of a post that is online, such as
	// that the chosen thumbnail was refused; usually empty.
	Note string
	// Err says why, for every outcome but Posted. With Accepted it says what the
	// platform is about.
	Err *Error
	// RateLimits are what the answer tells of the platform's limits, whatever
	// the outcome.
	RateLimits []RateLimit
}

// LookupResult is what Lookup found.
type LookupResult struct {
	// Matches counts the posts that fit. One is an answer; more than one needs
	// a person. One that is Certain may have no id: the platform then proves that
	// the post is published, and does not say under which.
	Matches     int
	ExternalID  string
	ExternalURL string
	PostedAt    time.Time
	// Certain says, of one match, that the platform told it under the job's
	// operation id, checkpoint or secret. A match among the account's posts may be
	// another job's with the same words.
	Certain bool
	// Proof says, where nothing matches, that the platform answered for the
	// very thing that was to become visible, and that it is not. It counts for
	// absence also where Capabilities.ListingAuthoritative does not hold.
	Proof bool
	// Refused says, where nothing matches, that the platform took the call and
	// then gave it up, and why; nil if it does not say so. It is proof, and
	// needs no second look.
	Refused *Error
	// OperationID says, where nothing matches, that the platform took the call and
	// still works on it under this id, which the caller did not know. The caller
	// stores it, as that of Result, and looks the call up by it from then on.
	OperationID string
	// Note tells people what they should know of the one match, as Result.Note does.
	Note string
}

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
	// TakesThumbnail says that the platform wants a picture where a moment of
	// the video was chosen as its thumbnail.
	TakesThumbnail bool
	// PublishFetches says that the platform fetches images by the visible call:
	// what their addresses need is made ahead of it.
	PublishFetches bool

	// PreparedLasts is how long the platform keeps what Prepare made; zero on a
	// platform that prepares nothing.
	PreparedLasts time.Duration
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

// Registry holds the platforms that a process was built with. It is filled
// once, in cmd/, and only read afterwards.
type Registry map[v1alpha1.Platform]Platform

// Capabilities returns what a platform declares; false if it is not in the registry.
func (r Registry) Capabilities(name v1alpha1.Platform) (Capabilities, bool) {
	p, ok := r[name]
	if !ok {
		return Capabilities{}, false
	}
	return p.Capabilities(), true
}
