// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// WriteCache holds this process's last write to one post, and the results that it could not write. It does not need a
// lock: a post's reconciliations never overlap.
type WriteCache struct {
	delivery.Unrecorded
	written string
}

// Stale reports whether a cached post is older than the last write.
func (m *WriteCache) Stale(post *v1alpha1.Post) bool {
	if m.written == "" {
		return false
	}
	if order, err := resourceversion.CompareResourceVersion(post.ResourceVersion, m.written); err == nil && order < 0 {
		return true
	}
	m.written = ""
	return false
}

// RecordWrite stores the resourceVersion of a post that this process has written.
func (m *WriteCache) RecordWrite(post *v1alpha1.Post) { m.written = post.ResourceVersion }

// Empty reports whether the cache holds nothing.
func (m *WriteCache) Empty() bool {
	return m.written == "" && len(m.Results) == 0 && len(m.Unsent) == 0
}

// storeClaim stores the deliveries' attempts in one write at the resourceVersion that was read, which is never retried.
// Once started, the write ignores the cancellation of ctx: the API server may store a write that was cut off, and the
// next process would look up a call that was never made. If the write may have taken effect in spite of an error, or
// was stored in part, the attempts are kept as unsent.
func (p *Publisher) storeClaim(ctx context.Context, post *v1alpha1.Post, memory *WriteCache, deliveries []*Delivery) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopped before claiming the delivery: %w", err)
	}
	written, err := json.Marshal(post.Status.Targets)
	if err != nil {
		return fmt.Errorf("cannot claim the delivery: %w", err)
	}
	// Nothing is sent for a claim that takes longer than the send window.
	writing, cancel := context.WithTimeout(context.WithoutCancel(ctx), p.SendWindow)
	defer cancel()
	err = p.Client.Status().Update(writing, post)
	if err == nil {
		memory.RecordWrite(post)
		if err = verifyStored(written, post); err == nil {
			return nil
		}
	}
	if errors.Is(writing.Err(), context.DeadlineExceeded) {
		p.ClaimExpired()
	}
	if mayHaveLanded(err) {
		for _, d := range deliveries {
			memory.AddUnsent(d.Attempt, p.Clock.Now())
		}
	}
	return fmt.Errorf("cannot claim the delivery: %w", err)
}

// ErrDropped is returned when the API server did not store all fields of a claim.
var ErrDropped = errors.New("the Kubernetes API dropped part of the record of the delivery, so that nothing was sent: the resource definition " +
	"posts.social.herald.dev that it serves is older than this program; apply this version's definition")

// verifyStored returns ErrDropped if the stored claim lacks a field that was written: an API server drops unknown
// fields without an error. Without its full record, a target would be sent again.
func verifyStored(written []byte, post *v1alpha1.Post) error {
	stored, err := json.Marshal(post.Status.Targets)
	if err != nil || bytes.Equal(stored, written) {
		return err
	}
	// Invalid UTF-8 is replaced during encoding. Text that was decoded once does not change again.
	var sent []v1alpha1.TargetStatus
	if err := json.Unmarshal(written, &sent); err != nil {
		return err
	}
	if written, err = json.Marshal(sent); err != nil || bytes.Equal(stored, written) {
		return err
	}
	// A newer CRD may add default values.
	var asked, got any
	if err := errors.Join(json.Unmarshal(written, &asked), json.Unmarshal(stored, &got)); err != nil {
		return err
	}
	if !contains(got, asked) {
		return ErrDropped
	}
	return nil
}

// contains reports whether a JSON value has all fields of other.
func contains(value, other any) bool {
	switch other := other.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		for name, field := range other {
			ok = ok && contains(object[name], field)
		}
		return ok
	case []any:
		list, ok := value.([]any)
		ok = ok && len(list) == len(other)
		for i := 0; ok && i < len(other); i++ {
			ok = contains(list[i], other[i])
		}
		return ok
	default:
		return value == other
	}
}

func mayHaveLanded(err error) bool {
	return !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) && !apierrors.IsNotFound(err) &&
		!apierrors.IsForbidden(err) && !apierrors.IsUnauthorized(err) && !apierrors.IsTooManyRequests(err) &&
		!posting.TooLarge(err)
}

func (d *Delivery) result() delivery.Result {
	return delivery.Result{Target: d.Target, Attempt: d.Attempt, Result: d.Result}
}

func results(batch []*Delivery) []delivery.Result {
	all := make([]delivery.Result, len(batch))
	for i, d := range batch {
		all[i] = d.result()
	}
	return all
}

// record records a batch of results. The same write claims the next cards of unfinished trees, and record returns
// those. ctx is the reconciliation's context: results are recorded even after its cancellation.
func (r *run) record(ctx context.Context, batch []*Delivery) (next []*Delivery, err error) {
	detached := context.WithoutCancel(ctx)
	if next = r.nextCards(ctx, batch); len(next) > 0 && !r.recordAndClaim(detached, batch, next) {
		next = nil
	}
	if len(next) == 0 {
		turn := noTurn
		if r.armed != nil {
			turn = r.Recording.Acquire
		}
		if err := r.recordInTurn(detached, r.post, r.cache, results(batch), turn); err != nil {
			return nil, err
		}
	}
	r.Failpoint(PointAfterRecord)
	if len(next) > 0 {
		r.hooks.Claimed(next)
		r.Failpoint(PointAfterClaim)
	}
	r.hooks.Recorded(detached, batch)
	r.releaseTrees(batch, next)
	return next, nil
}

func (r *run) nextCards(ctx context.Context, batch []*Delivery) []*Delivery {
	if ctx.Err() != nil || !r.Shard.IsHeld() || posting.Of(r.post).Cards() < 2 || !r.post.DeletionTimestamp.IsZero() {
		return nil
	}
	recorded := r.post.DeepCopy()
	r.applyResults(ctx, recorded, results(batch))
	return r.hooks.Next(ctx, recorded, batch)
}

// recordAndClaim records a batch and claims the next cards in one write, without a retry. If the write fails, nothing
// is sent, and the caller records the batch alone.
func (r *run) recordAndClaim(ctx context.Context, batch, next []*Delivery) bool {
	ctx, span := tracing.Child(ctx, "record and claim")
	defer span.End()
	span.Number(tracing.Targets, len(batch))
	r.Failpoint(PointBeforeClaim)
	post := r.post.DeepCopy()
	r.applyResults(ctx, post, results(batch))
	if err := r.open(post, next); err != nil {
		r.log(ctx, post).Error(err, "cannot continue a tree")
		return false
	}
	if err := r.storeClaim(ctx, post, r.cache, next); err != nil {
		span.Fail(string(apierrors.ReasonForError(err)))
		r.log(ctx, post).Info("the next card is not claimed together with the record of the one before", "error", err.Error())
		return false
	}
	r.Changed(ctx, post, &r.post.Status)
	*r.post = *post
	r.Owners.Record(r.post)
	return true
}

func (r *run) releaseTrees(batch, next []*Delivery) {
	if posting.Of(r.post).Cards() < 2 {
		return
	}
	for _, d := range batch {
		if !slices.ContainsFunc(next, func(n *Delivery) bool { return n.Target == d.Target }) {
			r.Scheduler.Release(r.key(), d.Gate())
		}
	}
}

// Backoff between attempts to record a result.
const (
	firstPause = 50 * time.Millisecond
	maxPause   = 5 * time.Second
)

func (p *Publisher) log(ctx context.Context, post *v1alpha1.Post) logr.Logger {
	return tracing.Logger(ctx, p.Log).WithValues("namespace", post.Namespace, "name", post.Name, "uid", post.UID)
}

// Record stores results in a post, with retries for up to RecordFor. After that, it keeps the results in memory for the
// next reconciliation. It updates post to the stored object.
func (p *Publisher) Record(ctx context.Context, post *v1alpha1.Post, memory *WriteCache, results []delivery.Result) error {
	return p.recordInTurn(ctx, post, memory, results, noTurn)
}

func noTurn() (done func()) { return func() {} }

// recordInTurn is Record with a turn for each write. The wait for the first turn does not count toward RecordFor. Each
// retry needs a new turn, so that writes of all results are attempted before a stopping process ends.
func (p *Publisher) recordInTurn(ctx context.Context, post *v1alpha1.Post, memory *WriteCache, results []delivery.Result, turn func() (done func())) error {
	done := turn()
	ctx, cancel := context.WithTimeout(ctx, p.RecordFor)
	defer cancel()
	ctx, span := tracing.Child(ctx, "record")
	defer span.End()
	span.Number(tracing.Targets, len(results))
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := p.tryRecord(ctx, post, memory, results)
		done()
		if err == nil {
			return nil
		}
		p.log(ctx, post).Error(err, "cannot record results; retrying")
		select {
		case <-p.Clock.After(pause):
			done = turn()
		case <-ctx.Done():
			for _, r := range results {
				memory.AddResult(r)
			}
			span.Fail(string(apierrors.ReasonForError(err)))
			return fmt.Errorf("cannot record results: %w", err)
		}
	}
}

// tryRecord stores results once. After a conflict it applies them to the current post and writes again.
func (p *Publisher) tryRecord(ctx context.Context, post *v1alpha1.Post, memory *WriteCache, results []delivery.Result) error {
	for {
		next := post.DeepCopy()
		p.applyResults(ctx, next, results)
		err := p.Client.Status().Update(ctx, next)
		switch {
		case err == nil:
			p.applyStored(ctx, post, next, memory)
			return nil
		case apierrors.IsNotFound(err):
			p.log(ctx, post).Info("the post was removed while it was being published")
			return nil
		case apierrors.IsInvalid(err), posting.TooLarge(err):
			return p.recordIDs(ctx, post, memory, results, err)
		case !apierrors.IsConflict(err):
			return err
		}
		fresh, err := p.live(ctx, post)
		if fresh == nil {
			return err
		}
		*post = *fresh
	}
}

func (p *Publisher) live(ctx context.Context, post *v1alpha1.Post) (*v1alpha1.Post, error) {
	var fresh v1alpha1.Post
	if err := p.APIReader.Get(ctx, client.ObjectKeyFromObject(post), &fresh); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if fresh.UID != post.UID {
		return nil, nil //nolint:nilnil // another post of the same name: this one is gone
	}
	return &fresh, nil
}

// applyResults applies results to a post. A late result is only logged.
func (p *Publisher) applyResults(ctx context.Context, post *v1alpha1.Post, results []delivery.Result) {
	if err := delivery.RecordResults(post, results, p.DeadlineShift(ctx, post.Namespace), p.Clock.Now()); err != nil {
		p.log(ctx, post).Info("a result is not recorded", "error", err.Error())
	}
}

func (p *Publisher) applyStored(ctx context.Context, post, next *v1alpha1.Post, memory *WriteCache) {
	p.Changed(ctx, next, &post.Status)
	*post = *next
	memory.RecordWrite(post)
	p.Owners.Record(post)
}

// recordIDs is the last resort when the API server rejects the full status: it writes only the ids of published posts
// and accepted operations to the current post. All other results are left to a lookup.
func (p *Publisher) recordIDs(ctx context.Context, post *v1alpha1.Post, memory *WriteCache, results []delivery.Result, refused error) error {
	p.log(ctx, post).Error(refused, "the API server rejected the status; recording only the ids")
	fresh, err := p.live(ctx, post)
	if fresh == nil {
		return err
	}
	for _, target := range delivery.RecordIDs(fresh, results, p.Clock.Now()) {
		p.log(ctx, post).Info("a result is not recorded; the platform is asked about it", "target", target)
	}
	if err := p.Client.Status().Update(ctx, fresh); err != nil {
		return err
	}
	p.applyStored(ctx, post, fresh, memory)
	return nil
}

// Write stores a post's status, if changed, after delivery.Describe has updated the derived fields.
func (p *Publisher) Write(ctx context.Context, post *v1alpha1.Post, memory *WriteCache, stored *v1alpha1.PostStatus) (changed bool, err error) {
	delivery.Describe(post, p.Clock.Now())
	if v1alpha1.SemanticEqual(*stored, post.Status) {
		return false, nil
	}
	if err := p.Client.Status().Update(ctx, post); err != nil {
		return false, fmt.Errorf("cannot write the status: %w", err)
	}
	p.Changed(ctx, post, stored)
	memory.RecordWrite(post)
	return true, nil
}
