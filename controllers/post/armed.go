// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

func (r *Reconciler) groups() *publish.Groups {
	if r.o.Groups == nil {
		return nil
	}
	return publish.NewGroups(publish.GroupOptions{
		Client: r.o.Client, APIReader: r.o.APIReader, Clock: r.o.Clock, Namespace: r.o.Groups.Namespace, Prefix: r.o.Groups.Prefix,
		Owners: r.o.Groups.Owners, Within: r.o.SendWindow, Failpoint: r.o.Failpoint, Log: ctrl.Log.WithName("groups"),
	})
}

// groupState implements delivery.Facts.Group. Without groups, every group may be open.
func (r *Reconciler) groupState(group string) delivery.GroupState {
	if r.publisher.Groups == nil {
		return delivery.GroupMayBeOpen
	}
	return r.publisher.Groups.State(group)
}

// closeGroups closes the groups of another process, which shows whether their calls were made.
func (r *Reconciler) closeGroups(ctx context.Context, p *reconciliation, f *delivery.Facts, groups []string) error {
	for _, group := range groups {
		if err := r.publisher.Groups.Close(ctx, group); err != nil {
			return err //nolint:wrapcheck // the error names the operation
		}
	}
	return r.decideAgain(ctx, p, f)
}

// arm claims the targets ahead of their time. If that is not possible, the post is claimed when it is due.
func (r *Reconciler) arm(ctx context.Context, p *reconciliation, targets []int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopping before a claim: %w", err)
	}
	var deliveries []*publish.Delivery
	accounts := map[string]bool{}
	for _, i := range targets {
		d := r.newDelivery(p, i)
		deliveries = append(deliveries, d)
		accounts[d.Gate()] = true
	}
	if len(accounts) < len(deliveries) {
		return nil // two targets of one account are sent one after the other
	}
	within, err := r.plans.enforceLimits(ctx, p, deliveries)
	if err != nil || len(within) < len(deliveries) {
		p.Post.Status = *p.stored.DeepCopy() // the claim reports it when the post is due
		return nil                           //nolint:nilerr // as above
	}
	err = r.publisher.Arm(ctx, &publishHooks{r, p}, p.Post, &p.state.publish, deliveries, func(post *v1alpha1.Post) publish.ArmedHooks {
		return &armedHooks{publishHooks{r, p.after(post)}}
	})
	if errors.Is(err, publish.ErrNoGroup) || errors.Is(err, publish.ErrWithheld) {
		p.Post.Status = *p.stored.DeepCopy()
		return nil
	}
	p.wrote = true
	if errors.Is(err, publish.ErrDropped) {
		r.recorder.warn(postSubject(p.Post), reasonRecordDropped, publish.ErrDropped.Error())
	}
	return err //nolint:wrapcheck // the error names the operation
}

// after returns a copy of a reconciliation for the calls of an armed post, which begin after the reconciliation has
// ended. It shares no state with the post's next reconciliation.
func (p *reconciliation) after(post *v1alpha1.Post) *reconciliation {
	return &reconciliation{
		View: posting.Of(post), stored: *post.Status.DeepCopy(), key: p.key, now: p.now, log: p.log, state: &postState{uid: post.UID},
		connections: p.connections, media: p.media, limits: p.limits, tokens: maps.Clone(p.tokens), credentials: maps.Clone(p.credentials),
		converts: p.converts, hasUploadSecret: p.hasUploadSecret,
	}
}

// armedHooks are the hooks of an armed post.
type armedHooks struct{ publishHooks }

// Calls implements publish.ArmedHooks. A limit may have been reached since the post was armed.
func (u *armedHooks) Calls(d *publish.Delivery) *platforms.Error {
	until := u.p.limits.BlockedUntil(d.Conn, u.r.o.Clock.Now())
	if until.IsZero() {
		return nil
	}
	err := platforms.Errorf(platforms.ClassRateLimited, "the platform does not accept calls for this account at the moment")
	err.RetryAt = until
	return err
}

// Ended implements publish.ArmedHooks. It ends the delivery as a reconciliation does.
func (u *armedHooks) Ended(ctx context.Context, unrecorded map[string]delivery.Result) {
	if len(unrecorded) > 0 {
		u.r.armed.add(u.p.key, unrecorded)
		return
	}
	if u.p.isFinished() {
		u.r.tidy(ctx, u.p)
	}
	u.r.archiver.Enqueue(u.p.Post)
}

// claimStarted measures how late an armed post is.
func (r *Reconciler) claimStarted(d *publish.Delivery, due time.Time) {
	r.o.Metrics.Deliveries.ObserveLateness(d.Conn, due, r.o.Clock.Now())
}

// armedResults holds results of armed posts until a reconciliation records them. Unlike a postState, it may be used
// while the post is being reconciled.
type armedResults struct {
	queue *postQueue

	mu      sync.Mutex
	results map[types.NamespacedName]map[string]delivery.Result
}

func newArmedResults(queue *postQueue) *armedResults {
	return &armedResults{queue: queue, results: map[types.NamespacedName]map[string]delivery.Result{}}
}

func (a *armedResults) add(post types.NamespacedName, results map[string]delivery.Result) {
	a.mu.Lock()
	if a.results[post] == nil {
		a.results[post] = map[string]delivery.Result{}
	}
	maps.Copy(a.results[post], results)
	a.mu.Unlock()
	a.queue.enqueue(post)
}

// moveTo moves a post's results to the memory of its reconciliation.
func (a *armedResults) moveTo(post types.NamespacedName, memory *publish.WriteCache) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range a.results[post] {
		memory.AddResult(r)
	}
	delete(a.results, post)
}
