// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/record"
)

const defaultRetryPause = 15 * time.Second

// WaitError is returned while a post that is being deleted waits, usually for its record.
type WaitError struct {
	// Pause is the time until the next attempt.
	Pause time.Duration
	why   error
}

func (w *WaitError) Error() string { return "waiting for the record to be stored: " + w.why.Error() }

func (w *WaitError) Unwrap() error { return w.why }

// Release removes the finalizer of a post that is being deleted. Every deletion goes through it, since a post that was,
// or may have been, published must leave a record first. It returns a WaitError while the record cannot be saved, or
// while a re-created post would not be looked up. The post is released without a record if its namespace is being
// deleted too, or if the record could not be saved for an hour because the store is unavailable or rejects it.
func (f *Finalizers) Release(ctx context.Context, post *v1alpha1.Post) error {
	if record.Required(post) || f.hasIdempotencyKey(post) {
		if err := f.requireMinAge(ctx, post); err != nil {
			return err
		}
		if err := f.saveOrGiveUp(ctx, post); err != nil {
			return err
		}
		if err := f.listOrGiveUp(ctx, post); err != nil {
			return err
		}
	}
	f.o.Failpoint(PointBeforeRelease)
	return removeFinalizer(ctx, f.o.Client, post)
}

// errYoung is the WaitError's cause for a post from the API that was deleted within seconds of its creation.
var errYoung = errors.New("a replacement created now could not be distinguished from it")

// requireMinAge returns a WaitError while the post is so young that a replacement could not be distinguished from the
// object that the API has created, and would not be looked up.
func (f *Finalizers) requireMinAge(ctx context.Context, post *v1alpha1.Post) error {
	pause := posting.Of(post).RecreatedVisibleFrom(f.o.ClockMargin).Sub(f.o.Clock.Now())
	if pause <= 0 || !f.records.archived() || !record.Required(post) {
		return nil
	}
	// Nothing can be created in a terminating namespace.
	if ends, err := f.namespaces.isTerminating(ctx, post.Namespace); err != nil || ends {
		return err
	}
	return &WaitError{Pause: pause, why: errYoung}
}

func (f *Finalizers) blockedFor(post types.UID) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.o.Clock.Now()
	if _, known := f.blockedSince[post]; !known {
		f.blockedSince[post] = now
	}
	return now.Sub(f.blockedSince[post])
}

func (f *Finalizers) forgetDeletion(post types.UID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.blockedSince, post)
}

// hasIdempotencyKey reports whether a post was created under an Idempotency-Key that is still valid. A repeated request
// with that key must not create a post, even if a user has deleted the original.
func (f *Finalizers) hasIdempotencyKey(post *v1alpha1.Post) bool {
	return f.o.Clock.Now().Before(posting.KeyExpiresAt(post))
}

// saveOrGiveUp saves a deleted post's record. It returns a WaitError for a retry, and nil once the post may be
// released.
func (f *Finalizers) saveOrGiveUp(ctx context.Context, post *v1alpha1.Post) error {
	_, err := f.records.save(ctx, post)
	key := client.ObjectKeyFromObject(post)
	f.records.trackSave(key, err != nil)
	if err == nil {
		f.forgetDeletion(post.UID)
		return nil
	}
	ends, problem := f.namespaces.isTerminating(ctx, post.Namespace)
	if problem != nil {
		return errors.Join(err, problem)
	}
	since := f.o.Clock.Since(post.DeletionTimestamp.Time)
	fails := max(f.records.breaker.openFor(), f.records.unwritableFor(), f.blockedFor(post.UID))
	late := since >= record.WriteTimeout && (errors.As(err, new(*unreadable)) || fails >= record.WriteTimeout)
	log := ctrl.Log.WithName("records")
	if !ends && !late {
		level := 0
		if errors.Is(err, errStoreUnavailable) {
			level = 1 // The failed request has already been logged.
		}
		log.V(level).Info("a deleted post waits for its record to be stored", "namespace", post.Namespace, "name", post.Name, "uid", post.UID, "error", err.Error())
		f.o.Events.RecordUnavailable(post, err)
		return &WaitError{Pause: cmp.Or(f.o.Records.RetryPause, defaultRetryPause), why: err}
	}
	log.Error(err, "released a post without a record: it is published again if it is created again", "namespace", post.Namespace, "name", post.Name, "uid", post.UID)
	f.o.Events.RecordAbandoned(post, ends)
	f.records.trackSave(key, false)
	f.forgetDeletion(post.UID)
	f.o.Abandoned(post.Namespace)
	return nil
}

// mustWait reports, without a request, that a post with the given deletion time cannot be released yet: the store is
// unavailable, WriteTimeout has not passed, and the namespace is not being deleted.
func (f *Finalizers) mustWait(ctx context.Context, namespace string, deleted time.Time) bool {
	if !f.records.breaker.isOpen() || f.o.Clock.Since(deleted) >= record.WriteTimeout {
		return false
	}
	ends, err := f.namespaces.isTerminating(ctx, namespace)
	return err == nil && !ends
}

// listOrGiveUp adds a finished post that is being deleted to the lists of its team. It returns a WaitError for a retry,
// and nil once the post may be released, under the same time limits as saveOrGiveUp.
func (f *Finalizers) listOrGiveUp(ctx context.Context, post *v1alpha1.Post) error {
	if !f.records.archived() || f.o.Records.List == nil || !post.Status.Finished {
		return nil
	}
	err := errStoreUnavailable
	if !f.records.breaker.isOpen() {
		err = f.o.Records.List(ctx, post)
	}
	if err == nil {
		return nil
	}
	ends, problem := f.namespaces.isTerminating(ctx, post.Namespace)
	if problem != nil {
		return errors.Join(err, problem)
	}
	log := ctrl.Log.WithName("records")
	late := f.o.Clock.Since(post.DeletionTimestamp.Time) >= record.WriteTimeout && (!errors.Is(err, errStoreUnavailable) || f.records.breaker.openFor() >= record.WriteTimeout)
	if !ends && !late {
		log.Info("a deleted post waits for its place in the lists", "namespace", post.Namespace, "name", post.Name, "uid", post.UID, "error", err.Error())
		return &WaitError{Pause: cmp.Or(f.o.Records.RetryPause, defaultRetryPause), why: err}
	}
	log.Error(err, "a deleted post is no longer listed; it can still be read by its id", "namespace", post.Namespace, "name", post.Name, "uid", post.UID)
	return nil
}
