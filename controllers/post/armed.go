// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
)

// armer claims a crowd's posts before they are due.
type armer struct {
	o          *Options
	deliveries *deliveryBuilder
	plans      *plans
	sharding   *sharding
	arrivals   *arrivals
	limits     *limits.Limits
	publisher  *publish.Publisher
	recorder   *recorder
	// results holds armed posts' results that could not be recorded.
	results *armedResults
	// ended runs after the last call of an armed post, when its result is recorded.
	ended func(context.Context, *reconciliation)
}

func newGroups(o *Options) *publish.Groups {
	if o.Groups == nil {
		return nil
	}
	return publish.NewGroups(publish.GroupOptions{
		Client: o.Client, APIReader: o.APIReader, Clock: o.Clock, Namespace: o.Groups.Namespace, Prefix: o.Groups.Prefix,
		Owners: o.Groups.Owners, Within: o.SendWindow, Failpoint: o.Failpoint, Log: ctrl.Log.WithName("groups"),
	})
}

// groupState implements delivery.Facts.Group. If this process has no groups, every group may be open.
func (a *armer) groupState(group string) delivery.GroupState {
	if a.publisher.Groups == nil {
		return delivery.GroupMayBeOpen
	}
	return a.publisher.Groups.State(group)
}

// closeGroups closes another process's groups. The outcome shows whether their calls were made.
func (a *armer) closeGroups(ctx context.Context, groups []string) error {
	for _, group := range groups {
		if err := a.publisher.Groups.Close(ctx, group); err != nil {
			return err //nolint:wrapcheck // the error names the operation
		}
	}
	return nil
}

// arm claims the targets before they are due. If that is not possible, the post is claimed when it is due.
func (a *armer) arm(ctx context.Context, p *reconciliation, targets []int) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("stopping before a claim: %w", err)
	}
	bytes, err := p.size()
	if err != nil {
		return err
	}
	var deliveries []*publish.Delivery
	accounts := map[string]bool{}
	for _, i := range targets {
		d := a.deliveries.delivery(p, i)
		deliveries = append(deliveries, d)
		accounts[d.Gate()] = true
	}
	if ready, err := a.arrivals.caughtUp(ctx, p.key.Namespace); err != nil || !ready {
		p.armAt = a.o.Clock.Now().Add(catchUpPause)
		return err
	}
	if until, err := a.sharding.closed(ctx, deliveries, p.rollback.DetectedAt); err != nil || !until.IsZero() {
		p.armAt = until
		return err
	}
	if len(accounts) < len(deliveries) {
		return nil // two targets of one account are sent one after the other
	}
	// If the plan refuses the post, the claim reports it when the post is due.
	within, err := a.plans.silently().enforceLimits(ctx, p, deliveries)
	if err != nil || len(within) < len(deliveries) {
		p.Post.Status = *p.stored.DeepCopy()
		return nil //nolint:nilerr // as above
	}
	err = a.publisher.Arm(ctx, a.deliveries.hooks(p), p.Post, &p.state.publish, deliveries, bytes, func(post *v1alpha1.Post) publish.ArmedHooks {
		return &armedHooks{a.deliveries.hooks(p.after(post)), a}
	})
	if errors.Is(err, publish.ErrNoGroupYet) {
		p.armAt = a.o.Clock.Now().Add(publish.ArmPause)
	}
	if errors.Is(err, publish.ErrNoGroup) || errors.Is(err, publish.ErrWithheld) {
		p.Post.Status = *p.stored.DeepCopy()
		return nil
	}
	p.wrote = true
	if errors.Is(err, publish.ErrDropped) {
		a.recorder.warn(postSubject(p.Post), reasonRecordDropped, publish.ErrDropped.Error())
	}
	return err //nolint:wrapcheck // the error names the operation
}

// size returns the JSON size of a post with its connections and files.
func (p *reconciliation) size() (bytes int, err error) {
	data, err := json.Marshal([]any{p.Post, p.connections, p.media})
	if err != nil {
		return 0, fmt.Errorf("cannot measure the post: %w", err)
	}
	return len(data), nil
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
type armedHooks struct {
	*publishHooks
	armer *armer
}

// Calls implements publish.ArmedHooks. It rereads everything that may have changed since the post was armed.
func (u *armedHooks) Calls(ctx context.Context, post *v1alpha1.Post, d *publish.Delivery) *platforms.Error {
	because := func(problem string, args ...any) *platforms.Error {
		return platforms.Errorf(platforms.ClassTransient, problem, args...)
	}
	var conn v1alpha1.Connection
	if err := u.o.Client.Get(ctx, client.ObjectKeyFromObject(d.Conn), &conn); err != nil {
		return because("cannot read connection %q: %v", d.Conn.Name, err)
	}
	if conn.UID != d.Conn.UID || u.ContentHash(post, &publish.Delivery{Target: d.Target, Conn: &conn}) != posting.Of(post).Target(d.Target).Attempt.ContentHash {
		return because("connection %q has changed since the post was claimed", d.Conn.Name)
	}
	now, connections := u.o.Clock.Now(), map[string]*v1alpha1.Connection{conn.Name: &conn}
	known, err := u.armer.limits.Read(ctx, u.p.key, connections, now)
	if err != nil {
		return because("%v", err)
	}
	owned, err := u.o.Owned(ctx, u.p.key.Namespace)
	if err != nil {
		return because("%v", err)
	}
	f := &delivery.Facts{
		Unowned: !owned,
		View:    posting.Of(post), Now: now, Settings: u.o.settings(), Platforms: u.o.Platforms, Connections: connections, Media: u.p.media,
		Suspended:    u.Withheld(ctx),
		BlockedUntil: func(conn *v1alpha1.Connection) time.Time { return known.BlockedUntil(conn, now) },
	}
	if b := f.Withheld(d.Target); b != nil {
		return because("%s", b.Problem)
	}
	token, err := u.o.Tokens.Token(ctx, &conn)
	if err != nil {
		return because("the credentials of connection %q cannot be used: %v", d.Conn.Name, err)
	}
	d.Conn, d.Token = &conn, token
	return nil
}

// Ended implements publish.ArmedHooks. It ends the delivery as a reconciliation does.
func (u *armedHooks) Ended(ctx context.Context, unrecorded map[string]delivery.Result) {
	if len(unrecorded) > 0 {
		u.armer.results.add(u.p.key, unrecorded)
		return
	}
	u.armer.ended(ctx, u.p)
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
