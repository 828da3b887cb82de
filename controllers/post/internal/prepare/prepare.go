// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prepare performs the steps that precede a publishing call: uploads, containers, and image renditions. All of
// them are repeatable, and their results are not public.
package prepare

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/internal/media/location"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/forecast"
)

// Failpoints of the preparation, where a test may kill the process.
const (
	PointAfterSecret = "after-secret"
	PointAfterPart   = "after-part"
	PointAfterAhead  = "after-ahead"
	// PointAfterPrepare comes before the claim of prepared content.
	PointAfterPrepare = "after-prepare"
)

// Options configures a Preparer. Thumbnails, Conversions, TeamMedia and Sent may be nil; the rest is required.
type Options struct {
	// Client writes to the API server, and APIReader reads from it without the cache.
	Client    client.Client
	APIReader client.Reader
	// Platforms holds the platforms of this process.
	Platforms platforms.Registry
	// Files reads the media files of posts.
	Files Files
	// Renditions converts images that a platform does not accept.
	Renditions Renditions
	// Thumbnails extracts pictures from videos. It is nil without ffmpeg.
	Thumbnails Thumbnails
	// Conversions converts videos for the teams that want it. It is nil if videos cannot be converted, for the reason in
	// Unconverted, which is phrased to end a sentence.
	Conversions Conversions
	Unconverted string
	// TeamMedia returns the media settings of the team that owns a namespace. If nil, the defaults apply.
	TeamMedia func(ctx context.Context, namespace string) (v1alpha1.TeamMedia, error)
	Clock     clock.WithTicker
	// Failpoint is called at the failpoints of the package.
	Failpoint func(point string)
	// MaxUploads limits concurrent preparations with files. Each holds a few kilobytes of a file at a time. Teams share
	// the slots fairly, like the workers. Managers is the number of processes that share uploads, for the forecast; zero
	// counts only this one.
	MaxUploads, Managers int
	// Sent returns the counter for the file bytes that are sent to a platform. If nil, none are counted.
	Sent func(v1alpha1.Platform) Sent
}

// Preparer prepares the targets of posts.
type Preparer struct {
	o        Options
	sessions sessions
	finder   *location.Finder
	// uploads has the slots for files, and lanes the slots for text posts.
	uploads *dispatch.Scheduler
	lanes   *dispatch.Gates

	// pace measures the completed uploads; underWay holds the running ones, by uploadID.
	pace     forecast.Pace
	mu       sync.Mutex
	underWay map[string]*upload
}

// New returns a Preparer.
func New(o Options) *Preparer {
	return &Preparer{
		o: o, sessions: sessions{client: o.Client, live: o.APIReader}, finder: location.NewFinder(o.Files.Open),
		uploads: dispatch.NewScheduler(o.MaxUploads), lanes: dispatch.NewGates(lanesPerAccount), underWay: map[string]*upload{},
	}
}

// Target is a target of a post.
type Target struct {
	Post  *v1alpha1.Post
	Index int
	Conn  *v1alpha1.Connection
	// Media holds the files of the post, by name.
	Media map[string]*v1alpha1.Media
	Token platforms.Token
	// Converts is set if the team's videos are converted for platforms that do not accept them.
	Converts bool
	// Wake enqueues the post.
	Wake func()
}

// converter returns the converter for an account, or false if this process cannot publish to its platform. A nil status
// means that nothing is known about the account.
func (p *Preparer) converter(name v1alpha1.Platform, account *v1alpha1.ConnectionStatus) (converter, bool) {
	to, ok := p.o.Platforms[name].(platforms.Publisher)
	if !ok {
		return converter{}, false
	}
	return converter{
		to: to, rules: to.Capabilities().Of(account), files: p.o.Files, renditions: p.o.Renditions, thumbnails: p.o.Thumbnails,
		conversions: p.o.Conversions, unconverted: p.o.Unconverted,
	}, true
}

// Ready adds the prepared files to the job of a call for an account.
func (p *Preparer) Ready(ctx context.Context, conn *v1alpha1.Connection, job *platforms.Job) *platforms.Error {
	c, ok := p.converter(conn.Spec.Platform, &conn.Status)
	if !ok {
		return platforms.Errorf(platforms.ClassTransient, "this installation cannot publish to %s", conn.Spec.Platform)
	}
	return c.ready(ctx, job)
}

// Job returns the job for the next call or the lookup of a target.
func (p *Preparer) Job(t *Target) platforms.Job {
	content, counting, rule := delivery.Content(t.Post, t.Index, t.Media), p.newSent(t.Conn.Spec.Platform), p.privacyIn(t.Post.Namespace)
	for i, ref := range delivery.Files(t.Post, t.Index) {
		bytes := p.bytes(t.Media[ref.Name], rule, counting)
		bytes.converts = t.Converts
		content.Media[i].Bytes = bytes
	}
	return platforms.Job{
		Account: platforms.Account{ID: t.Conn.Spec.AccountID, Username: t.Conn.Status.Username, Token: t.Token},
		Content: content, Key: delivery.Key(t.Post, t.Index),
	}
}

// converterFor returns the converter for a target, or false if the target does not need preparation.
func (p *Preparer) converterFor(t *Target) (converter, bool) {
	c, ok := p.converter(t.Conn.Spec.Platform, &t.Conn.Status)
	c.converts = t.Converts
	return c, ok && c.Prepares(delivery.Content(t.Post, t.Index, t.Media))
}

// State returns the state of a target's preparation. It drops a preparation for different content.
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

// reusableFor returns the time for which a preparation is used without the platform checking it.
func (c converter) reusableFor() time.Duration { return delivery.ReusableFor(c.ttl()) }

// Result is the prepared content for the call of a target.
type Result struct {
	Prepared
	// SecretHash is the hash of the upload session in the Secret of the post's uploads, or empty if there is none.
	SecretHash string
	// Unverified is set if the preparation was made before the post was due.
	Unverified bool
	// Ambiguous is set if the content is already visible, through a call that was assumed lost.
	Ambiguous *platforms.Error
}

// Result returns the prepared content for the call of a target, or nil if there is no finished preparation.
func (p *Preparer) Result(m *Preparations, t *Target) *Result {
	known := m.byTarget[t.Index]
	if _, needed := p.converterFor(t); !needed || known == nil || !known.finished() {
		return nil
	}
	return &Result{Prepared: known.result, SecretHash: hashOf(known.hash, known.result), Unverified: known.ahead && known.err == nil, Ambiguous: known.err}
}

// Cards starts preparing the targets' next cards, and waits for all of them until the timeout. It returns the results,
// with nil for a card that is not ready. Slower preparations continue, and wake the post when they finish.
func (p *Preparer) Cards(ctx context.Context, m *Preparations, targets []*Target, wait time.Duration) []*Result {
	ready := make([]*Result, len(targets))
	timer := p.o.Clock.NewTimer(wait)
	defer timer.Stop()
	now := p.o.Clock.Now()
	var started []*preparation
	for i, t := range targets {
		switch p.State(m, t, now).State {
		case delivery.PreparationNotNeeded:
			ready[i] = &Result{}
		case delivery.PreparationMissing:
			p.Start(ctx, m, *t, now)
		case delivery.PreparationRunning, delivery.PreparationReady, delivery.PreparationFailed, delivery.PreparationVisible:
		}
		started = append(started, m.byTarget[t.Index])
	}
	late := false
	for i, b := range started {
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
