// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bridge implements the service's operations for all protocols: it authorizes, validates, writes the resource
// and reads it back. It does not depend on HTTP or JSON.
package bridge

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
)

// ConnectionReader reads all teams' connections.
type ConnectionReader interface {
	// Get and List read from the cache; Get returns nil for a missing connection.
	Get(namespace, name string) *v1alpha1.Connection
	List(namespace string) []*v1alpha1.Connection
	// Live reads from the Kubernetes API.
	Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error)
}

// PostClient reads and writes posts in the Kubernetes API.
type PostClient interface {
	Create(ctx context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error)
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Post, error)
	// Update writes the difference between two states of a post. A concurrent write causes a conflict.
	Update(ctx context.Context, before, after *v1alpha1.Post) (*v1alpha1.Post, error)
}

// Archive is like Index, but includes archived posts. Its methods return ErrArchiveAway while the archive is
// unreadable.
type Archive interface {
	List(ctx context.Context, namespace string, q postindex.Query) (page []postindex.Summary, total int, err error)
	Find(ctx context.Context, namespace string, q *postindex.Search) (postindex.Found, error)
	Days(ctx context.Context, namespace string, q *postindex.Search, bounds []time.Time) ([]postindex.Day, error)
	Counts(ctx context.Context, namespace string) (postindex.Counts, error)
	// Post returns an archived post, or nil.
	Post(ctx context.Context, namespace, name string) (*v1alpha1.Post, error)
	// PostIncludingDeleted is like Post, but also returns a post that was deleted during delivery.
	PostIncludingDeleted(ctx context.Context, namespace, name string) (*v1alpha1.Post, error)
}

// Media reads and writes Media resources in the Kubernetes API.
type Media interface {
	Create(ctx context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error)
	Get(ctx context.Context, namespace, name string) (*v1alpha1.Media, error)
	// UpdateStatus stores a status with optimistic concurrency.
	UpdateStatus(ctx context.Context, media *v1alpha1.Media) (*v1alpha1.Media, error)
	// SetUploadDeadline records when a file's upload window ends.
	SetUploadDeadline(ctx context.Context, namespace, name string, until time.Time) error
}

// Files presigns upload and download URLs; package store implements it.
type Files interface {
	PresignPut(ctx context.Context, key, mimeType string, size int64) (url string, expires time.Time, err error)
	PresignGet(ctx context.Context, key string, valid time.Duration) (url string, err error)
}

// ErrBehind rejects all callers because the watches are stale: a caller's access may have been revoked in the meantime.
var ErrBehind = errors.New("the Kubernetes API has not responded recently")

// ErrArchiveAway means that the response needs the archive, which is currently unreadable.
var ErrArchiveAway = errors.New("the archive of posts cannot be read")

// Config configures a Service. Fields are required unless documented as optional.
type Config struct {
	// Key returns the API key that a token belongs to.
	Key func(token string) (*v1alpha1.APIKey, error)
	// Current returns ErrBehind if the caches of keys and teams may be stale; nil if they never are.
	Current func() error
	// Used is called with each authenticated request's key.
	Used func(*v1alpha1.APIKey)
	// Owner returns the team that owns a namespace, or nil.
	Owner       func(namespace string) *v1alpha1.Team
	Connections ConnectionReader
	Posts       PostClient
	Quota       Quota
	Media       Media
	// Files may be nil, which disables uploads.
	Files Files
	// Small returns the storage key of a file's small picture for lists, or store.ErrNotFound. If Small is nil, there are
	// no small pictures.
	Small func(ctx context.Context, media *v1alpha1.Media) (key string, err error)
	// Parts stores large files from the web application in parts; nil if the store does not support it.
	Parts PartFiles
	// Requests may be nil; an Idempotency-Key then expires with the object that it created.
	Requests Requests
	// Verify checks a Media's uploaded file and returns the resulting status. It returns store.ErrNotFound if there is
	// no upload, and store.ErrChanged if the file keeps being overwritten.
	Verify func(ctx context.Context, media *v1alpha1.Media) (v1alpha1.MediaStatus, error)
	// Readiness reports whether a connection can be posted to.
	Readiness func(ctx context.Context, connection *v1alpha1.Connection) readiness.Result
	Index     *postindex.Index
	// Archive adds archived posts to Index; nil if there is no archive.
	Archive Archive
	// Uploaded returns up to the given number of a namespace's uploaded files, in no particular order, and whether there
	// are more. It reads from the Kubernetes API.
	Uploaded func(ctx context.Context, namespace string, most int) (files []v1alpha1.Media, more bool, err error)
	// Pending returns the number of files in a namespace that are waiting to be uploaded, their total size in bytes, and
	// which of the named files are among them. CountKeys returns the number of API keys in a namespace. Both read from the
	// cache. A nil function counts nothing.
	Pending   func(namespace string, names []string) (files, bytes int64, known []bool)
	CountKeys func(namespace string) int
	// Keys reads and writes API keys; Events writes events. Without Events, actions are only logged.
	Keys   Keys
	Events Events
	// Schedules reads and writes schedules.
	Schedules Schedules
	// Notifiers reads and writes notifiers, and Secrets creates their Secrets.
	Notifiers Notifiers
	Secrets   SecretCreator
	// Subscribe signals possible changes to a post. ok is false if there are too many subscriptions.
	Subscribe func(namespace, name string) (changes <-chan struct{}, stop func(), ok bool)
	// PageOf returns the address of a post's page in the web application; nil if there is no web application.
	PageOf func(namespace, id string) string
	// Capabilities returns a platform's declared capabilities, or false if this installation cannot publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	Clock        clock.PassiveClock
	Log          *slog.Logger
}

// Service implements the operations. Its methods are safe for concurrent use. They return *Error if the client can do
// something about the error.
type Service struct {
	Config

	addresses *urlCache
	// thumbnails caches the previews of files in lists.
	thumbnails *cache.LRUExpireCache
	// newPosts and newFiles track creations in progress.
	newPosts, newFiles *creations
	// recent holds the posts that users published recently.
	recent *recent
}

// New returns a Service.
func New(config Config) *Service {
	return &Service{config, newURLCache(config.Clock), newThumbnails(&config), newCreations(), newCreations(), newRecent()}
}

// Authenticate returns the caller that a token belongs to.
func (s *Service) Authenticate(token string) (Caller, error) {
	if s.Current != nil {
		if err := s.Current(); err != nil {
			return Caller{}, err
		}
	}
	key, err := s.Key(token)
	switch {
	case errors.Is(err, access.ErrKeyMalformed), errors.Is(err, access.ErrKeyUnknown), errors.Is(err, access.ErrKeyRevoked), errors.Is(err, access.ErrKeyExpired):
		return Caller{}, &Error{Code: CodeUnauthorized, Message: err.Error()}
	case err != nil:
		return Caller{}, err
	}
	s.Used(key)
	return Caller{Namespace: key.Namespace, Key: key.Name, Permissions: key.Spec.Permissions}, nil
}

// RequireSubscription rejects a caller whose team is not allowed to create objects.
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
