// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

import (
	"context"
	"time"

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
	// OwnershipConfirmed: the post is of the account.
	OwnershipConfirmed Ownership = "own"
	// OwnershipForeign: it is of another account.
	OwnershipForeign Ownership = "foreign"
	// OwnershipUnknown: the platform does not show it. It may have been deleted.
	OwnershipUnknown Ownership = "unshown"
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
	// StoreCheckpoint stores how far Prepare has come; see Note.
	StoreCheckpoint func(ctx context.Context, checkpoint, secret string) error
	// SearchFrom is the earliest time at which a call for this job can have
	// taken effect. Lookup ignores what is older.
	SearchFrom time.Time
	// BelongsToOther reports whether a post of the account is known to belong to
	// another job; Lookup passes over those. Nil means none is.
	BelongsToOther func(externalID string) bool
}

// SaveCheckpoint tells the caller of Prepare how far it has come, so that a later one, in
// this process or another, goes on from there: both values come back in the job.
// It returns when the secret is stored.
func (j *Job) SaveCheckpoint(ctx context.Context, checkpoint, secret string) *Error {
	if j.StoreCheckpoint == nil {
		return nil
	}
	if err := j.StoreCheckpoint(ctx, checkpoint, secret); err != nil {
		return Errorf(ClassTransient, "how far the upload has come cannot be stored in the Kubernetes API").Because(err)
	}
	return nil
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
