// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prepare makes what precedes the visible calls: uploads, containers, and
// renditions of images. All of it may be repeated, and nothing of it is public.
package prepare

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/dispatch"
	"github.com/herald-social/herald/internal/media/location"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/forecast"
)

// Points of the protocol at which a test may kill the process.
const (
	PointAfterSecret = "after-secret"
	PointAfterPart   = "after-part"
	PointAfterAhead  = "after-ahead"
	// PointAfterPrepare comes before the claim of what is prepared.
	PointAfterPrepare = "after-prepare"
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
	// Conversions converts videos for the teams that want it; nil where that cannot be done,
	// for the reason in Unconverted, which continues a sentence.
	Conversions Conversions
	Unconverted string
	// TeamMedia returns what the team of a namespace decides about its files; nil decides
	// nothing.
	TeamMedia func(ctx context.Context, namespace string) (v1alpha1.TeamMedia, error)
	Clock     clock.WithTicker
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
	finder   *location.Finder
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
		o: o, sessions: sessions{client: o.Client, live: o.APIReader}, finder: location.NewFinder(o.Files.Open),
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
	// Converts says that the team has its videos converted for platforms that do not take
	// them.
	Converts bool
	// Wake has the post looked at again.
	Wake func()
}

// converter returns what prepares for a platform; false if this process cannot publish
// there.
func (p *Preparer) converter(name v1alpha1.Platform) (converter, bool) {
	to, ok := p.o.Platforms[name].(platforms.Publisher)
	return converter{
		to: to, files: p.o.Files, renditions: p.o.Renditions, thumbnails: p.o.Thumbnails,
		conversions: p.o.Conversions, unconverted: p.o.Unconverted,
	}, ok
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
	content, counting, rule := delivery.Content(t.Post, t.Index, t.Media), p.counting(t.Conn.Spec.Platform), p.privacyIn(t.Post.Namespace)
	for i, ref := range delivery.Files(t.Post, t.Index) {
		bytes := p.bytes(t.Media[ref.Name], rule, counting)
		bytes.converts = t.Converts
		content.Media[i].Bytes = bytes
	}
	return platforms.Job{
		Account: platforms.Account{ID: t.Conn.Spec.AccountID, Username: t.Conn.Status.Username, Token: t.Token},
		Content: content,
	}
}

// converterFor returns what prepares a target; false if nothing precedes its call.
func (p *Preparer) converterFor(t *Target) (converter, bool) {
	c, ok := p.converter(t.Conn.Spec.Platform)
	c.converts = t.Converts
	return c, ok && c.Prepares(delivery.Content(t.Post, t.Index, t.Media))
}

// State tells how far the preparation of a target is. What was prepared for another
// content is forgotten.
func (p *Preparer) State(m *Preparations, t *Target, now time.Time) delivery.Preparation {
	c, needed := p.converterFor(t)
	if !needed {
		return delivery.Preparation{State: delivery.PreparationNotNeeded}
	}
	hash := delivery.ContentHash(t.Post, t.Index, t.Conn, t.Media)
	known := m.get(t, hash)
	if known == nil {
		m.Drop(t.Index)
	}
	state := delivery.Preparation{State: delivery.PreparationMissing, Hash: hash, TTL: c.ttl()}
	if known == nil || known.ready() && now.Sub(known.endedAt) >= c.reusableFor() {
		return state
	}
	part := known.progress()
	state.State = delivery.PreparationRunning
	state.BegunAt, state.Ahead, state.Failures = known.startedAt, known.ahead, known.failures
	state.Checkpoint, state.Secret, state.SecretHash = part.Checkpoint, part.Secret != "", hashOf(hash, part)
	if !known.finished() {
		state.Converted, state.Converting = known.converted.percent()
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

// reusableFor is how long a preparation is taken for good without asking again: what is
// left then suffices for the tries that follow.
func (c converter) reusableFor() time.Duration { return c.ttl() * 3 / 4 }

// Result is what is ready for the call of a target.
type Result struct {
	Prepared
	// SecretHash identifies what the Secret of the post's uploads keeps of it; empty
	// if it keeps nothing.
	SecretHash string
	// Unverified is set if it was made ahead of the post's time.
	Unverified bool
	// Ambiguous is set if it has become visible already, by a call that was taken
	// for lost.
	Ambiguous *platforms.Error
}

// Result returns what is ready for the call of a target; nil if nothing precedes it.
func (p *Preparer) Result(m *Preparations, t *Target) *Result {
	known := m.byTarget[t.Index]
	if _, needed := p.converterFor(t); !needed || known == nil || !known.finished() {
		return nil
	}
	return &Result{Prepared: known.result, SecretHash: hashOf(known.hash, known.result), Unverified: known.ahead && known.err == nil, Ambiguous: known.err}
}

// Cards starts what precedes the next cards of targets, and waits for all together
// no longer than patience. It returns what is ready for each; nil for one that is
// not. What takes longer goes on, and its end wakes the post.
func (p *Preparer) Cards(ctx context.Context, m *Preparations, targets []*Target, wait time.Duration) []*Result {
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
