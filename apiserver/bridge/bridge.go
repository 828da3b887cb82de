// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bridge holds the operations of the service, whatever protocol a request
// comes by: it authorises, validates, writes the resource and
// reads it back. It knows neither HTTP nor JSON.
package bridge

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/apikeys"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
)

// ConnectionReader are those of every team.
type ConnectionReader interface {
	// Get and List answer from memory; Get returns nil for what is not there.
	Get(namespace, name string) *v1alpha1.Connection
	List(namespace string) []*v1alpha1.Connection
	// Live asks the Kubernetes API.
	Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error)
}

// PostClient reads and writes posts in the Kubernetes API.
type PostClient interface {
	Create(ctx context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error)
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Post, error)
	// Update stores what differs between two states of a post, on the condition that
	// it is still as it was before: a write in between wins, and the error is a
	// conflict.
	Update(ctx context.Context, before, after *v1alpha1.Post) (*v1alpha1.Post, error)
}

// Archive tells of posts as Index does, of those too that left the cluster. Its errors are
// ErrArchiveAway while it cannot be read.
type Archive interface {
	List(ctx context.Context, namespace string, q postindex.Query) (page []postindex.Summary, total int, err error)
	Between(ctx context.Context, namespace string, r *postindex.Range) (found []postindex.Summary, more bool, err error)
	Counts(ctx context.Context, namespace string) (postindex.Counts, error)
	// Post returns a post that left the cluster; nil if it has none of that name.
	Post(ctx context.Context, namespace, name string) (*v1alpha1.Post, error)
	// PostIncludingDeleted is Post, also for one that was deleted while it was published.
	PostIncludingDeleted(ctx context.Context, namespace, name string) (*v1alpha1.Post, error)
}

// Media reads and writes media files' resources in the Kubernetes API.
type Media interface {
	Create(ctx context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error)
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Media, error)
	// UpdateStatus stores a status, on the condition that the resource was not
	// written since it was read.
	UpdateStatus(ctx context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error)
	// SetUploadDeadline records until when a file can be uploaded.
	SetUploadDeadline(ctx context.Context, namespace, name string, until time.Time) error
}

// Files signs addresses to upload to and to download from; package store does.
type Files interface {
	PresignPut(ctx context.Context, key, mimeType string, size int64) (url string, expires time.Time, err error)
	PresignGet(ctx context.Context, key string, valid time.Duration) (url string, err error)
}

// ErrBehind is that nothing was heard of the Kubernetes API for so long that nobody can be let
// in: who was, may have been shut out since.
var ErrBehind = errors.New("nothing was heard of the Kubernetes API")

// ErrArchiveAway is that the archive cannot be read at this moment, and that the answer needs it.
var ErrArchiveAway = errors.New("the archive of posts cannot be read")

// Config is what a Service is made of. Every field is required, unless it says otherwise.
type Config struct {
	// Key finds the API key of a token.
	Key func(token string) (*v1alpha1.APIKey, error)
	// Current returns ErrBehind if keys and teams in memory may not be what there is any more;
	// nil is always current.
	Current func() error
	// Used is called with the key of every authenticated request.
	Used func(*v1alpha1.APIKey)
	// Owner finds the team that owns a namespace; nil if none does.
	Owner       func(namespace string) *v1alpha1.Team
	Connections ConnectionReader
	Posts       PostClient
	Quota       Quota
	Media       Media
	// Files may be nil: then nothing can be uploaded.
	Files Files
	// Requests may be nil: then an Idempotency-Key ends with the object that it created.
	Requests Requests
	// Verify examines the uploaded file of a Media and returns the status that
	// follows; store.ErrNotFound if nothing was uploaded, and
	// store.ErrChanged if it is overwritten all the time.
	Verify func(ctx context.Context, media *v1alpha1.Media) (v1alpha1.MediaStatus, error)
	// Readiness tells whether a connection can be posted to.
	Readiness func(ctx context.Context, connection *v1alpha1.Connection) readiness.Result
	Index     *postindex.Index
	// Archive has the posts that left the cluster, beside those of Index. It may be nil:
	// then there are no others.
	Archive Archive
	// Pending returns how many files of a namespace are waited for and their bytes, and
	// of which of some, by name, it knows; CountKeys, how many API keys it has. Both answer
	// from memory. Nothing is counted where they are nil.
	Pending   func(namespace string, names []string) (files, bytes int64, known []bool)
	CountKeys func(namespace string) int
	// Keys reads and writes API keys, and Events writes events. Only what people and
	// agents do needs them. Events may be nil: then the log alone tells.
	Keys   Keys
	Events Events
	// Subscribe tells when a post may have changed. ok is false if too many posts are
	// followed already. Only what people see needs it.
	Subscribe func(namespace, name string) (changes <-chan struct{}, stop func(), ok bool)
	// PageOf is the address of a post's page in the web application; nil where there is none.
	PageOf func(namespace, id string) string
	// Capabilities returns what a platform declares; false if this installation
	// cannot publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	Clock        clock.PassiveClock
	Log          *slog.Logger
}

// Service holds the operations. Its methods may be called from many goroutines
// at once. Their errors are *Error where the client can do something about it.
type Service struct {
	Config

	addresses *urlCache
	// newPosts and newFiles are those that requests are about to create.
	newPosts, newFiles *creations
	// recent are posts that people published a moment ago.
	recent *recent
}

// New returns a Service.
func New(config Config) *Service {
	return &Service{config, newAddresses(config.Clock), newFlights(), newFlights(), newRecent()}
}

// Authenticate returns whom a token speaks for.
func (s *Service) Authenticate(token string) (Caller, error) {
	if s.Current != nil {
		if err := s.Current(); err != nil {
			return Caller{}, err
		}
	}
	key, err := s.Key(token)
	switch {
	case errors.Is(err, apikeys.ErrMalformed), errors.Is(err, apikeys.ErrUnknown), errors.Is(err, apikeys.ErrRevoked), errors.Is(err, apikeys.ErrExpired):
		return Caller{}, &Error{Code: CodeUnauthorized, Message: err.Error()}
	case err != nil:
		return Caller{}, err
	}
	s.Used(key)
	return Caller{Namespace: key.Namespace, Key: key.Name}, nil
}

// RequireSubscription refuses a caller whose team may not create anything.
func (s *Service) RequireSubscription(caller Caller) error {
	team := s.Owner(caller.Namespace)
	if team == nil {
		if caller.Author != "" {
			return errorf(CodeSubscriptionRequired, "namespace %q belongs to no team; ask the administrators of Herald for a Team", caller.Namespace)
		}
		return errorf(CodeSubscriptionRequired, "this API key belongs to no team; ask the administrators of Herald for a Team")
	}
	switch team.Spec.Subscription.State {
	case v1alpha1.SubscriptionActive:
		return nil
	case v1alpha1.SubscriptionTrialing:
		if s.Clock.Now().Before(plan.TrialEnd(team)) {
			return nil
		}
		return errorf(CodeSubscriptionRequired, "the team's trial has ended; subscribe to go on posting")
	case v1alpha1.SubscriptionPastDue:
		return errorf(CodeSubscriptionRequired, "the team's subscription is past due; pay it to go on posting")
	case v1alpha1.SubscriptionCancelled:
		return errorf(CodeSubscriptionRequired, "the team's subscription is cancelled; subscribe again to go on posting")
	default:
		return errorf(CodeSubscriptionRequired, "the team has no active subscription")
	}
}
