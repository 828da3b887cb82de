// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/jitter"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/text"
)

// How many files are fetched at once, in all and for one namespace: a slow server
// delays its own team first. Both leave workers for uploads.
const (
	maxFetches             = 8
	maxFetchesPerNamespace = 2
)

// slots counts the fetches under way.
type slots struct {
	mu    sync.Mutex
	total int
	taken map[string]int
}

func newSlots() *slots { return &slots{taken: map[string]int{}} }

// take reports whether another fetch may begin for a namespace; if so, the caller
// calls give afterwards.
func (s *slots) take(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.total >= maxFetches || s.taken[namespace] >= maxFetchesPerNamespace {
		return false
	}
	s.total++
	s.taken[namespace]++
	return true
}

func (s *slots) give(namespace string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total--
	s.taken[namespace]--
	if s.taken[namespace] == 0 {
		delete(s.taken, namespace)
	}
}

// fetch downloads the file of a Media from its source and verifies it like an upload.
// A file that is already in the store, because an earlier process ended before it
// could write that, is not fetched again.
func (r *Reconciler) fetch(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	before := m.Status.DeepCopy()
	switch err := r.verify(ctx, m); {
	case err == nil:
		return 0, r.conclude(ctx, m, before)
	case !errors.Is(err, store.ErrNotFound):
		return 0, r.unavailable(ctx, m, before, err)
	}
	if !r.slots.take(m.Namespace) {
		return jitter.Around(fetchSoonest, m.UID), r.write(ctx, r.awaitFetch(m), before)
	}
	defer r.slots.give(m.Namespace)
	if m.Status.Phase == "" || conditions.Reason(m.Status.Conditions) == v1alpha1.ReasonStoreUnavailable {
		if err := r.write(ctx, r.awaitFetch(m), before); err != nil {
			return 0, err
		}
		before = m.Status.DeepCopy()
	} else if current, err := r.current(ctx, m); err != nil || !current {
		return conflictPause, err
	}
	var problem *fetch.Problem
	switch err := r.download(ctx, m); {
	case errors.As(err, &problem):
		ctrllog.FromContext(ctx).Info("cannot fetch the source", "reason", problem.Message, "cause", problem.Unwrap(), "final", problem.Final)
		return r.failed(ctx, m, before, problem)
	case err != nil:
		return 0, fmt.Errorf("cannot put the fetched file into the store: %w", err)
	}
	if err := r.verify(ctx, m); err != nil { // No client has an address to write to.
		return 0, fmt.Errorf("cannot verify the fetched file: %w", err)
	}
	return 0, r.conclude(ctx, m, before)
}

// awaitFetch sets the status to fetching, unless it already says how that goes.
func (r *Reconciler) awaitFetch(m *v1alpha1.Media) *v1alpha1.Media {
	m.Status.Phase = v1alpha1.MediaPending
	if reason := conditions.Reason(m.Status.Conditions); reason == "" || reason == v1alpha1.ReasonStoreUnavailable {
		r.describe(m, conditions.Summary{Reason: v1alpha1.ReasonFetching, Message: "Fetching the file from its source.", Progress: conditions.Underway})
	}
	return m
}

// current reports whether a Media is as it was read: an old copy in the cache must not
// cause a second download of a gigabyte.
func (r *Reconciler) current(ctx context.Context, m *v1alpha1.Media) (bool, error) {
	var now v1alpha1.Media
	if err := r.APIReader.Get(ctx, client.ObjectKeyFromObject(m), &now); err != nil {
		return false, fmt.Errorf("cannot read the media file again: %w", err)
	}
	return now.UID == m.UID && now.DeletionTimestamp.IsZero() && now.Status.Phase == m.Status.Phase, nil
}

// download streams the file from its source into the store.
func (r *Reconciler) download(ctx context.Context, m *v1alpha1.Media) error {
	want := fetch.Want{MIMEType: string(m.Spec.MimeType), Size: m.Spec.SizeBytes, MaxSize: v1alpha1.MaxImageBytes}
	if strings.HasPrefix(want.MIMEType, "video/") {
		want.MaxSize = v1alpha1.MaxVideoBytes
	}
	return r.Source.Get(ctx, m.Spec.Source.URL, want, func(ctx context.Context, size int64, body io.Reader) error {
		_, err := r.Store.Put(ctx, store.Key(m), want.MIMEType, size, body)
		if err == nil {
			r.Metrics.fetched(size)
		}
		return err
	})
}

// failed writes that a source could not be fetched, and whether Herald tries again.
func (r *Reconciler) failed(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus, p *fetch.Problem) (time.Duration, error) {
	tried := r.Clock.Now().Sub(m.CreationTimestamp.Time)
	sentence := cannotFetch(m.Spec.Source.URL, p.Message)
	switch {
	case p.Final:
		r.Metrics.refused()
		m.Status.Phase = v1alpha1.MediaRejected
		r.describe(m, conditions.Summary{
			Reason: v1alpha1.ReasonSourceRefused, Message: sentence + " Create another Media with another source.", Progress: conditions.Stuck,
		})
		return 0, r.conclude(ctx, m, before)
	case tried >= fetchWithin:
		r.Metrics.failed()
		m.Status.Phase = v1alpha1.MediaRejected
		r.describe(m, conditions.Summary{
			Reason: v1alpha1.ReasonFetchFailed, Message: sentence + " It is not tried any longer; create another Media when the source answers.", Progress: conditions.Stuck,
		})
		return 0, r.conclude(ctx, m, before)
	default:
		r.Metrics.failed()
		m.Status.Phase = v1alpha1.MediaPending
		r.describe(m, conditions.Summary{Reason: v1alpha1.ReasonFetchFailed, Message: sentence + " It is tried again.", Progress: conditions.Underway})
		return fetchPause(tried, m.UID), r.write(ctx, m, before)
	}
}

// longestAddress is how much of a source's address a message holds, in bytes: the
// rest of the sentence must fit beside it into an event.
const longestAddress = 256

// cannotFetch says which source cannot be fetched, and why. It leaves out what follows
// the path of the address, where signatures and tokens are.
func cannotFetch(address, problem string) string {
	if i := strings.IndexAny(address, "?#"); i >= 0 {
		address = address[:i]
	}
	return "The source " + text.TruncateBytes(address, longestAddress) + " cannot be fetched: " + problem + "."
}
