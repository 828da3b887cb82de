// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
)

// Platform is implemented for every social platform. It provides the platform's rules and queries accounts. A platform
// that also publishes is a Publisher. Methods are safe for concurrent use.
type Platform interface {
	Accounts
	// Capabilities returns the platform's rules, which never change.
	Capabilities() Capabilities
}

// Publisher is a Platform that publishes content and can look up the outcome. Its Capabilities list the supported
// categories.
type Publisher interface {
	Platform

	// Publish makes a job's one irrevocable call. It does not retry or follow redirects. The result is Accepted if the
	// platform processes the call asynchronously, and Unknown whenever the call may have taken effect without
	// confirmation.
	Publish(ctx context.Context, job Job) Result

	// Lookup searches the platform for the job's content, published at or after job.SearchFrom. It never publishes. An
	// error means that the platform gave no usable response; it is an *Error if the platform gave a reason.
	Lookup(ctx context.Context, job Job) (LookupResult, error)
}

// Confirmer is a Publisher that can determine which account a post belongs to.
type Confirmer interface {
	// Confirm asks the platform whether a post belongs to an account. An error means that the platform gave no
	// usable response.
	Confirm(ctx context.Context, account Account, externalID string) (Ownership, error)
}

// Finisher is a Publisher with a step after publication, such as setting a thumbnail that the platform accepts only for
// an existing post. If the outcome of Publish is Posted, Publish has already completed this step.
type Finisher interface {
	// Finish makes the remaining calls for a post that Lookup found. It runs before that outcome is recorded, so that a
	// crash does not skip it, and is idempotent. It returns a message to users, as in Result.Note.
	Finish(ctx context.Context, job Job, externalID string) (note string)
}

// Ownership is the result of Confirm.
type Ownership string

const (
	// OwnershipConfirmed means the post belongs to the account.
	OwnershipConfirmed Ownership = "own"
	// OwnershipForeign means it belongs to another account.
	OwnershipForeign Ownership = "foreign"
	// OwnershipUnknown means the platform does not return the post, which may have been deleted.
	OwnershipUnknown Ownership = "unshown"
)

// Preparer is a Publisher that publishes in two steps: it creates invisible content on the platform and then makes it
// visible with one call.
type Preparer interface {
	// Prepares reports whether the content needs the first step. A platform may accept text directly but need two steps
	// for an image.
	Prepares(content Content) bool

	// Prepare creates the content that Publish makes visible, and returns its checkpoint once it is ready. The claim of
	// the call stores the checkpoint; Publish and Lookup receive it as job.Checkpoint.
	//
	// Prepare can be repeated: content that is never made visible expires on the platform. If job.Checkpoint refers to
	// an earlier preparation of the same content, Prepare reuses it while it is valid. The checkpoint may cover only a
	// part, stored by Job.SaveCheckpoint while the rest was in progress: Prepare resumes there if the platform allows
	// it, and otherwise starts over. ClassDuplicate means that the content has become visible in the meantime,
	// through a call whose response was lost. Nothing may be sent in that case; the caller looks up the post.
	Prepare(ctx context.Context, job Job) (checkpoint string, err *Error)
}

// Accounts identifies accounts and renews their tokens.
type Accounts interface {
	// Identify returns the account that a token belongs to. Errors are *Error.
	Identify(ctx context.Context, token Token) (Identity, error)

	// Refresh renews a token. The old refresh token may already be invalid when Refresh returns, so the caller stores
	// the new one before using it. Errors are *Error; ClassReconnect means that a user must connect the account
	// again.
	Refresh(ctx context.Context, token Token) (Token, error)
}

// Token holds the credentials of a connected account.
type Token struct {
	// Access is sent with every call. It is never logged.
	Access string
	// Refresh renews Access. It is empty on a platform without refresh tokens.
	Refresh string
	// ExpiresAt is when Access expires; zero if it does not.
	ExpiresAt time.Time
	// RefreshExpiresAt is when Refresh expires; zero if it does not, or if that is unknown.
	RefreshExpiresAt time.Time
	// Scopes are the granted scopes, separated by spaces.
	Scopes string
	// App is the installation's client id if the token is known to belong to that app, and empty otherwise: users
	// may supply tokens that belong to any app. When the platform's responses mention "the app", they mean the
	// token's app.
	App string
	// Server is the address of the account's server, from its Connection, on a platform whose users choose it.
	Server string
	// ClientID and ClientSecret identify the app on the server that the token was issued to, if Herald registered
	// it.
	ClientID, ClientSecret string
}

// Identity is the account behind a token.
type Identity struct {
	// AccountID is the platform's stable id for the account.
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
	// files and its text is only whitespace.
	Text string
	// Language is the text's language as a BCP 47 tag, or "" if the author did not specify one.
	Language string
	// InReplyTo is the platform's id of the previous card in a tree, which this card replies to. It is empty for the
	// first card and outside trees.
	InReplyTo string
	// Media are the files of the post or card, in display order.
	Media []File
	// ThumbnailAt is the thumbnail's position in the video, if the author chose one. Thumbnail is that frame as an
	// image, for platforms with Capabilities.TakesThumbnail; nil if there is none.
	ThumbnailAt *time.Duration
	Thumbnail   *File
	// Title is only used by YouTube.
	Title string
	// TikTok holds the options that only TikTok has.
	TikTok v1alpha1.TikTokOptions
	// Mastodon holds the options that only Mastodon has.
	Mastodon v1alpha1.MastodonOptions
}

// Key identifies the content of a job. All calls that publish this content have the same key, in any attempt and any
// process, and no other content has it. An idempotent platform derives the id of its post from the key.
type Key struct {
	// CreatedAt is when the Post resource was created, to the second.
	CreatedAt time.Time
	// Sum is derived from the Post's UID, the target, and the card of a tree.
	Sum [16]byte
}

// Job is one publication to one account.
type Job struct {
	Account Account
	Content Content
	// Key identifies the content on an idempotent platform; others ignore it.
	Key Key
	// Checkpoint is the value that Prepare returned for this content. It is empty if the content is not prepared or
	// the platform is not a Preparer. Everyone with read access to the post can see it, so it must not grant
	// access.
	Checkpoint string
	// Secret is the part of the checkpoint that grants access, such as the URL of an upload session. It is kept in a
	// Secret, and is empty if Prepare stored none or it was lost.
	Secret string
	// OperationID is the Result.OperationID from an earlier Publish of this call. AcceptedAt is when that call
	// returned; zero if that was not recorded.
	OperationID string
	AcceptedAt  time.Time
	// StoreCheckpoint stores the progress of Prepare; see SaveCheckpoint.
	StoreCheckpoint func(ctx context.Context, checkpoint, secret string) error
	// SearchFrom is the earliest time at which this job can have been published. Lookup ignores older posts.
	SearchFrom time.Time
	// BelongsToOther reports whether one of the account's posts is known to belong to another job; Lookup skips such
	// posts. Nil means that there are none.
	BelongsToOther func(externalID string) bool
}

// SaveCheckpoint stores Prepare's progress, so a later run, in this process or another, can resume there: its job
// contains both values. SaveCheckpoint returns once the secret is stored.
func (j *Job) SaveCheckpoint(ctx context.Context, checkpoint, secret string) *Error {
	if j.StoreCheckpoint == nil {
		return nil
	}
	if err := j.StoreCheckpoint(ctx, checkpoint, secret); err != nil {
		return Errorf(ClassTransient, "the progress of the upload cannot be stored in the Kubernetes API").Because(err)
	}
	return nil
}

// Registry holds the platforms built into the process. It is filled once, in cmd/, and is read-only afterwards.
type Registry map[v1alpha1.Platform]Platform

// Capabilities returns a platform's rules, or false if the registry does not contain the platform.
func (r Registry) Capabilities(name v1alpha1.Platform) (Capabilities, bool) {
	p, ok := r[name]
	if !ok {
		return Capabilities{}, false
	}
	return p.Capabilities(), true
}
