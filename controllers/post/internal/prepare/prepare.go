// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prepare makes what precedes the visible calls: uploads, containers, and
// renditions of images. All of it may be repeated, and nothing of it is public.
package prepare

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/dispatch"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/forecast"
	"github.com/herald-social/herald/posting/ratelimit"
)

// Points of the protocol at which a test may kill the process.
const (
	PointAfterSecret = "after-secret"
	PointAfterPart   = "after-part"
	PointAfterAhead  = "after-ahead"
	// PointAfterPrepare comes before the claim of what is prepared.
	PointAfterPrepare = "after-prepare"
)

const (
	// within bounds one preparation, and slowest is how many bytes of its files a
	// second are waited for beside that.
	within  = time.Minute
	slowest = 128 << 10
	// lanesPerAccount is how many texts are prepared for one account at once. The
	// calls go out one after another, so that more would only run ahead of them.
	lanesPerAccount = 4
	// maxTargets is how many targets a post has at most, by its schema.
	maxTargets = 100
)

// Options is what preparing needs. Thumbnails may be nil; the rest is required.
type Options struct {
	// Client writes to the API server, and APIReader reads from it.
	Client    client.Client
	APIReader client.Reader
	// Platforms are the platforms of this process.
	Platforms platforms.Registry
	// Files reads the media files of posts.
	Files Files
	// Renditions converts images that a platform does not take.
	Renditions Renditions
	// Thumbnails takes pictures out of videos; nil where there is no ffmpeg.
	Thumbnails Thumbnails
	Clock      clock.WithTicker
	// Failpoint is called at the named points.
	Failpoint func(point string)
	// MaxUploads is how many targets with files are prepared at once. Each holds some
	// kilobytes of a file at a time. Teams share them as they share the workers.
	MaxUploads int
	// Sent counts the bytes of files that go to a platform; nil counts nothing.
	Sent func(v1alpha1.Platform) Sent
}

// Preparer prepares the targets of posts.
type Preparer struct {
	o        Options
	sessions sessions
	// uploads has the places for files, and lanes those for texts.
	uploads *dispatch.Scheduler
	lanes   *dispatch.Gates

	// pace measures the uploads that have ended; underWay has those that have not, by
	// uploadID.
	pace     forecast.Pace
	mu       sync.Mutex
	underWay map[string]*upload
}

// New makes a Preparer.
func New(o Options) *Preparer {
	return &Preparer{
		o: o, sessions: sessions{client: o.Client, live: o.APIReader},
		uploads: dispatch.NewScheduler(o.MaxUploads), lanes: dispatch.NewGates(lanesPerAccount), underWay: map[string]*upload{},
	}
}

// Target is one target of a post that is prepared.
type Target struct {
	Post  *v1alpha1.Post
	Index int
	Conn  *v1alpha1.Connection
	// Media holds the files of the post, by name.
	Media map[string]*v1alpha1.Media
	Token platforms.Token
	// Wake has the post looked at again.
	Wake func()
}

func (t *Target) waiter() dispatch.Waiter {
	return dispatch.Waiter{ID: client.ObjectKeyFromObject(t.Post).String(), Team: t.Post.Namespace, Due: posting.Due(t.Post), Wake: t.Wake}
}

// converter returns what prepares for a platform; false if this process cannot publish
// there.
func (p *Preparer) converter(name v1alpha1.Platform) (converter, bool) {
	to, ok := p.o.Platforms[name].(platforms.Publisher)
	return converter{to: to, files: p.o.Files, renditions: p.o.Renditions, thumbnails: p.o.Thumbnails}, ok
}

// Ready puts what was prepared into the job of a call to a platform.
func (p *Preparer) Ready(ctx context.Context, name v1alpha1.Platform, job *platforms.Job) *platforms.Error {
	c, ok := p.converter(name)
	if !ok {
		return platforms.Errorf(platforms.ClassTransient, "this installation cannot publish to %s", name)
	}
	return c.ready(ctx, job)
}

// Job is what is published next for a target, or looked up.
func (p *Preparer) Job(t *Target) platforms.Job {
	content, counting := delivery.Content(t.Post, t.Index, t.Media), p.counting(t.Conn.Spec.Platform)
	for i, ref := range delivery.Files(t.Post, t.Index) {
		content.Media[i].Bytes = p.bytes(t.Media[ref.Name], counting)
	}
	return platforms.Job{
		Account: platforms.Account{ID: t.Conn.Spec.AccountID, Username: t.Conn.Status.Username, Token: t.Token},
		Content: content,
	}
}

// needed returns what prepares a target; false if nothing precedes its call.
func (p *Preparer) needed(t *Target) (converter, bool) {
	c, ok := p.converter(t.Conn.Spec.Platform)
	return c, ok && c.Prepares(delivery.Content(t.Post, t.Index, t.Media))
}

// State tells how far the preparation of a target is. What was prepared for another
// content is forgotten.
func (p *Preparer) State(m *Memory, t *Target, now time.Time) delivery.Preparation {
	c, needed := p.needed(t)
	if !needed {
		return delivery.Preparation{State: delivery.PreparationNotNeeded}
	}
	hash := delivery.ContentHash(t.Post, t.Index, t.Conn, t.Media)
	known := m.known(t, hash)
	if known == nil {
		m.Drop(t.Index)
	}
	state := delivery.Preparation{State: delivery.PreparationMissing, Hash: hash, Lasts: c.lasts()}
	if known == nil || known.ready() && now.Sub(known.endedAt) >= c.keptFor() {
		return state
	}
	part := known.progress()
	state.State = delivery.PreparationRunning
	state.BegunAt, state.Ahead, state.Failures = known.begunAt, known.ahead, known.failures
	state.Checkpoint, state.Secret = part.Checkpoint, part.Secret != ""
	if !known.finished() {
		return state
	}
	state.EndedAt, state.Err = known.endedAt, known.err
	switch {
	case known.err == nil:
		state.State = delivery.PreparationReady
	case known.err.Class == platforms.ClassDuplicate && known.result.Checkpoint != "":
		state.State = delivery.PreparationVisible
	default:
		state.State = delivery.PreparationFailed
	}
	return state
}

// keptFor is how long a preparation is taken for good without asking again: what is
// left then suffices for the tries that follow.
func (c converter) keptFor() time.Duration { return c.lasts() * 3 / 4 }

// Result is what is ready for the call of a target.
type Result struct {
	Prepared
	// Unverified is set if it was made ahead of the post's time.
	Unverified bool
	// Ambiguous is set if it has become visible already, by a call that was taken
	// for lost.
	Ambiguous *platforms.Error
}

// Result returns what is ready for the call of a target; nil if nothing precedes it.
func (p *Preparer) Result(m *Memory, t *Target) *Result {
	known := m.byTarget[t.Index]
	if _, needed := p.needed(t); !needed || known == nil || !known.finished() {
		return nil
	}
	return &Result{Prepared: known.result, Unverified: known.ahead && known.err == nil, Ambiguous: known.err}
}

// Cards starts what precedes the next cards of targets, and waits for all together
// no longer than patience. It returns what is ready for each; nil for one that is
// not. What takes longer goes on, and its end wakes the post.
func (p *Preparer) Cards(ctx context.Context, m *Memory, targets []*Target, wait time.Duration) []*Result {
	ready := make([]*Result, len(targets))
	timer := p.o.Clock.NewTimer(wait)
	defer timer.Stop()
	now := p.o.Clock.Now()
	var begun []*preparation
	for i, t := range targets {
		switch p.State(m, t, now).State {
		case delivery.PreparationNotNeeded:
			ready[i] = &Result{}
		case delivery.PreparationMissing:
			p.Start(ctx, m, *t, now)
		case delivery.PreparationRunning, delivery.PreparationReady, delivery.PreparationFailed, delivery.PreparationVisible:
		}
		begun = append(begun, m.byTarget[t.Index])
	}
	late := false
	for i, b := range begun {
		if b == nil || ready[i] != nil {
			continue
		}
		if !late {
			select {
			case <-b.done:
			case <-timer.C():
				late = true
			}
		}
		if b.ready() {
			ready[i] = p.Result(m, targets[i])
			p.o.Failpoint(PointAfterPrepare)
		}
	}
	return ready
}

// Start adopts what the post remembers of the preparation of a target, or begins
// it. It does not wait: the end of a preparation wakes the post. If the account, or
// the team, has as many under way as it may, nothing is begun, and the post is woken
// when there is a place.
func (p *Preparer) Start(ctx context.Context, m *Memory, t Target, now time.Time) {
	c, needed := p.needed(&t)
	if !needed {
		return
	}
	job, hash := p.Job(&t), delivery.ContentHash(t.Post, t.Index, t.Conn, t.Media)
	before := m.known(&t, hash)
	if before == nil {
		if known := p.adopt(ctx, &t, hash, now, c.keptFor()); known != nil {
			m.put(t.Index, known)
			return
		}
	}
	leave := p.enter(&t, len(job.Content.Media) > 0)
	if leave == nil {
		return
	}
	begun := &preparation{
		uid: t.Post.UID, hash: hash, begunAt: now, savedAt: now, ahead: posting.Wait(t.Post, now) > 0, part: begunBefore(before, &t, hash),
		done: make(chan struct{}),
	}
	if before != nil && before.finished() && before.err != nil {
		begun.failures = before.failures + 1
	}
	begun.upload = uploadOf(&t, &job.Content, begun)
	owner := ownerOf(t.Post, t.Index, hash)
	limit := patience(&job.Content)
	if p.o.Thumbnails != nil && wantsPicture(c.to.Capabilities(), &job.Content) {
		limit += thumbnailWithin
	}
	ctx, begun.stop = context.WithTimeout(context.WithoutCancel(ctx), limit)
	m.put(t.Index, begun)
	p.began(&t, begun.upload)
	go func() {
		defer begun.stop()
		ctx, span := tracing.Child(ctx, "prepare")
		begun.result, begun.err = p.make(ctx, c, job, begun, owner, t.Wake)
		trace(span, &t, begun.err)
		begun.endedAt = p.o.Clock.Now()
		p.ended(&t, begun.upload, begun.err == nil, begun.endedAt)
		close(begun.done)
		leave()
		if begun.ahead && begun.err == nil {
			p.o.Failpoint(PointAfterAhead)
		}
		t.Wake()
	}()
}

// trace ends the span of a preparation.
func trace(span tracing.Span, t *Target, err *platforms.Error) {
	defer span.End()
	span.Number(tracing.Target, t.Index)
	span.Text(tracing.Platform, string(t.Conn.Spec.Platform))
	if err != nil {
		span.Fail(string(err.Class))
	}
}

// adopt returns the preparation that the post remembers; nil if there is none, or
// the platform does not keep it for long enough to go without asking.
func (p *Preparer) adopt(ctx context.Context, t *Target, hash string, now time.Time, fresh time.Duration) *preparation {
	noted := posting.Target(t.Post, t.Index).Prepared
	if noted == nil || !noted.Complete || noted.ContentHash != hash || now.Sub(noted.MadeAt.Time) >= fresh {
		return nil
	}
	result := Prepared{Checkpoint: noted.Checkpoint}
	if noted.Secret {
		kept, err := p.Session(ctx, t.Post, t.Index)
		if err != nil || kept.Checkpoint != noted.Checkpoint {
			return nil
		}
		result.Secret = kept.Secret
	}
	return adopted(t.Post.UID, hash, result, noted.MadeAt.Time)
}

// begunBefore is what is known to be there of a target's preparation.
func begunBefore(before *preparation, t *Target, hash string) Prepared {
	if before != nil && before.progress().Checkpoint != "" {
		return before.progress()
	}
	status := posting.Target(t.Post, t.Index)
	if noted := status.Prepared; noted != nil && noted.ContentHash == hash && noted.Checkpoint != "" {
		return Prepared{Checkpoint: noted.Checkpoint}
	}
	return Prepared{Checkpoint: attempt.Checkpoint(status.Attempt, hash)}
}

// make does the work of a preparation, going on from where an earlier one stood.
func (p *Preparer) make(ctx context.Context, c converter, job platforms.Job, begun *preparation, owner sessionOwner, wake func()) (Prepared, *platforms.Error) {
	part := begun.progress()
	if c.to.Capabilities().SecretUploads {
		kept, err := p.sessions.load(ctx, owner)
		if err != nil {
			return Prepared{}, &platforms.Error{Class: platforms.ClassTransient, Problem: "the Secret of the post's uploads cannot be read", Err: err}
		}
		if kept.ContentHash == owner.hash {
			part = Prepared{kept.Checkpoint, kept.Secret}
		}
		owner.found = kept.Checkpoint
	}
	job.Checkpoint, job.Secret = part.Checkpoint, part.Secret
	job.Keep = func(ctx context.Context, checkpoint, secret string) error {
		now := Prepared{checkpoint, secret}
		if secret != "" && now != part {
			if err := p.sessions.store(ctx, owner, now); err != nil {
				return err
			}
			owner.found = checkpoint
			p.o.Failpoint(PointAfterSecret)
		}
		part = now
		p.o.Failpoint(PointAfterPart)
		if begun.note(now, p.o.Clock.Now()) {
			wake()
		}
		return nil
	}
	checkpoint, err := c.Prepare(ctx, job)
	err = ratelimit.WithRetryAt(err, p.o.Clock.Now())
	if checkpoint == part.Checkpoint {
		return part, err
	}
	return Prepared{Checkpoint: checkpoint}, err
}

// patience is how long a preparation may take.
func patience(c *platforms.Content) time.Duration {
	var bytes int64
	for i := range c.Media {
		bytes += c.Media[i].Size
	}
	return within + time.Duration(bytes/slowest)*time.Second
}

// enter takes a place for a preparation, and returns what gives it back: among the few
// of its account for a text, among the uploads for files, which take longer and
// more of the network. It returns nil if none is free; the post is woken when one is.
func (p *Preparer) enter(t *Target, files bool) (leave func()) {
	w := t.waiter()
	if files {
		w.ID = uploadID(w.ID, t.Index)
		if len(p.uploads.Enter(w, []string{w.ID})) == 0 {
			return nil
		}
		return func() { p.uploads.Done(w.ID) }
	}
	lane := string(t.Conn.UID)
	if !p.lanes.TryAcquire(lane, w) {
		return nil
	}
	return func() { p.lanes.Release(lane) }
}

// uploadID names the waiter of a target of a post.
func uploadID(post string, target int) string { return fmt.Sprintf("%s#%d", post, target) }

// Pass lets others have the places that were kept for a post and that it did not
// take in a pass. Targets that an edit took out of the post are among them; post is
// nil for one that is gone.
func (p *Preparer) Pass(key string, post *v1alpha1.Post) {
	targets := maxTargets
	if post != nil {
		targets = max(len(post.Spec.Targets), len(post.Status.Targets))
	}
	for i := range targets {
		p.uploads.Pass(uploadID(key, i))
	}
	p.lanes.Pass(key)
}
