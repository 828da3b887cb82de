// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Platform is the interface that every social platform implements: its rules, and its account queries. A platform that
// also publishes is a Publisher. Methods are safe for concurrent use.
type Platform interface {
	Accounts
	// Capabilities returns the platform's rules. The result never changes.
	Capabilities() Capabilities
}

// Publisher is a Platform that publishes content and can look up the outcome. Its Capabilities list the supported
// categories.
type Publisher interface {
	Platform

	// Publish makes the one irrevocable call for a job. It never retries and follows no redirect. The result is
	// Accepted if the platform processes the call asynchronously, and Unknown whenever the call may have taken effect
	// without confirmation.
	Publish(ctx context.Context, job Job) Result

	// Lookup queries the platform for the job's content, published at or after job.SearchFrom. It never publishes. An
	// error means that the platform gave no usable answer; it is an *Error if the platform gave a reason.
	Lookup(ctx context.Context, job Job) (LookupResult, error)
}

// Confirmer is a Publisher that can determine the account of a post.
type Confirmer interface {
	// Confirm queries the platform whether a post belongs to an account. An error means that the platform gave no
	// usable answer.
	Confirm(ctx context.Context, account Account, externalID string) (Ownership, error)
}

// Finisher is a Publisher with a step that follows publication, such as a thumbnail that the platform accepts only for
// an existing post. Publish does this itself for the outcome Posted.
type Finisher interface {
	// Finish makes the remaining calls for the post that Lookup found. It runs before that outcome is recorded, so that
	// a crash does not skip it, and it is idempotent. It returns a message to users, as in Result.Note.
	Finish(ctx context.Context, job Job, externalID string) (note string)
}

// Ownership is the result of Confirm.
type Ownership string

// The results of Confirm.
const (
	// OwnershipConfirmed: the post belongs to the account.
	OwnershipConfirmed Ownership = "own"
	// OwnershipForeign: it belongs to another account.
	OwnershipForeign Ownership = "foreign"
	// OwnershipUnknown: the platform does not show the post. It may have been deleted.
	OwnershipUnknown Ownership = "unshown"
)

// Preparer is a Publisher that publishes in two steps: it creates content on the platform that is not visible, and then
// makes it visible by one call.
type Preparer interface {
	// Prepares reports whether the content needs the first step: a platform may accept text directly but need two steps
	// for an image.
	Prepares(content Content) bool

	// Prepare creates the content that Publish makes visible, and returns its checkpoint when it is ready. The claim of
	// the call stores the checkpoint; Publish and Lookup receive it as job.Checkpoint.
	//
	// Prepare is repeatable: content that is not made visible expires on the platform. If job.Checkpoint refers to an
	// earlier preparation of the same content, Prepare reuses it while it is valid. The checkpoint may cover only a
	// part, stored by Job.SaveCheckpoint while the rest was in progress: Prepare resumes there if the platform allows
	// it, and starts over otherwise. ClassDuplicate means that the content has become visible meanwhile, by a call
	// whose answer was lost: nothing may be sent then, and the caller looks it up.
	Prepare(ctx context.Context, job Job) (checkpoint string, err *Error)
}

// Accounts identifies accounts and renews their tokens.
type Accounts interface {
	// Identify returns the account of a token. Errors are *Error.
	Identify(ctx context.Context, token Token) (Identity, error)

	// Refresh renews a token. The old refresh token may be invalid when Refresh returns, so the caller stores the new
	// one before using it. Errors are *Error; ClassReconnect means that a person must connect the account again.
	Refresh(ctx context.Context, token Token) (Token, error)
}

// Token holds the credentials of a connected account.
type Token struct {
	// Access is sent with every call. Never logged.
	Access string
	// Refresh renews Access; empty on a platform without refresh tokens.
	Refresh string
	// ExpiresAt is the expiry of Access; zero if it does not expire.
	ExpiresAt time.Time
	// RefreshExpiresAt is the expiry of Refresh; zero if it does not expire or the expiry is unknown.
	RefreshExpiresAt time.Time
	// Scopes are the granted scopes, separated by spaces.
	Scopes string
	// App is the client id of the installation's app if the token is known to belong to it, and empty otherwise: users
	// may supply tokens of any app. Answers of the platform about "the app" refer to this one.
	App string
}

// Identity is the account behind a token.
type Identity struct {
	// AccountID is the platform's stable id of the account.
	AccountID string
	// DisplayName is the public name.
	DisplayName string
	// Username is the handle, without "@"; empty if there is none.
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

// Content is the content of a job.
type Content struct {
	Category v1alpha1.Category
	// Text is the caption, exactly as the author wrote it; in a tree, the card's text. It is empty if the post has
	// files and only whitespace as text.
	Text string
	// InReplyTo is the platform's id of the previous card, which this card of a tree replies to; empty for the first
	// card, and outside trees.
	InReplyTo string
	// Media are the files of the post or the card, in display order.
	Media []File
	// ThumbnailAt is the position of the thumbnail in the video, if the author chose one. Thumbnail is the image of
	// that frame, for platforms with Capabilities.TakesThumbnail; nil if there is none.
	ThumbnailAt *time.Duration
	Thumbnail   *File
	// Title is used by YouTube only.
	Title string
	// TikTok holds the options that only TikTok has.
	TikTok v1alpha1.TikTokOptions
}

// Job is one publication to one account.
type Job struct {
	Account Account
	Content Content
	// Checkpoint is the result of Prepare for this content; empty if there is none, or on a platform that is no
	// Preparer. Everyone with read access to the post can see it, so it grants no access.
	Checkpoint string
	// Secret is the part of the checkpoint that grants access, such as the address of an upload session. It is stored
	// in a Secret, and is empty if Prepare stored none or it is lost.
	Secret string
	// OperationID is the Result.OperationID of an earlier Publish of this call, and AcceptedAt the end of that call;
	// zero if it was not recorded.
	OperationID string
	AcceptedAt  time.Time
	// StoreCheckpoint stores the progress of Prepare; see SaveCheckpoint.
	StoreCheckpoint func(ctx context.Context, checkpoint, secret string) error
	// SearchFrom is the earliest possible time of publication for this job. Lookup ignores older posts.
	SearchFrom time.Time
	// BelongsToOther reports whether a post of the account is known to belong to another job; Lookup skips such posts.
	// Nil means that no post does.
	BelongsToOther func(externalID string) bool
}

// SaveCheckpoint stores the progress of Prepare, so that a later run, in this process or another, resumes there: both
// values are passed back in the job. It returns after the secret is stored.
func (j *Job) SaveCheckpoint(ctx context.Context, checkpoint, secret string) *Error {
	if j.StoreCheckpoint == nil {
		return nil
	}
	if err := j.StoreCheckpoint(ctx, checkpoint, secret); err != nil {
		return Errorf(ClassTransient, "how far the upload has come cannot be stored in the Kubernetes API").Because(err)
	}
	return nil
}

// Registry holds the platforms that are built into the process. It is filled once, in cmd/, and read-only afterwards.
type Registry map[v1alpha1.Platform]Platform

// Capabilities returns the rules of a platform; false if it is not in the registry.
func (r Registry) Capabilities(name v1alpha1.Platform) (Capabilities, bool) {
	p, ok := r[name]
	if !ok {
		return Capabilities{}, false
	}
	return p.Capabilities(), true
}
