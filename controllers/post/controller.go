// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package post delivers Posts. A reconciliation (reconcile.go) reads the objects that a post refers to, calls
// delivery.Decide, and runs the returned actions (actions.go). Only package internal/publish can make anything public;
// internal/prepare does the preparation, and internal/lookup finds the outcome of calls whose response was lost.
package post

import (
	"context"
	"errors"
	"sync"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/controllers/post/internal/records"
	"github.com/herald-social/herald/controllers/post/internal/stats"
	"github.com/herald-social/herald/internal/conditions"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler reconciles posts.
type Reconciler struct {
	o Options

	scheduler *dispatch.Scheduler
	states    *postStates
	objects   stats.Objects
	queue     *postQueue
	// crowds tracks the posts that are due soon.
	crowds *crowds
	// sharding closes the gates of accounts that another holder of the shard may be calling.
	sharding *sharding
	arrivals *arrivals

	inputs      *inputReader
	assistant   *assistant
	suspensions *suspensionReader
	preparer    *prepare.Preparer
	publisher   *publish.Publisher
	deliveries  *deliveryBuilder
	armer       *armer
	retries     *retries
	lookups     *lookup.Lookups
	owners      *lookup.Owners
	limits      *limits.Limits
	plans       *plans
	prefetcher  *tokenPrefetcher
	records     *records.Records
	archiver    *records.Archiver
	// finalizers keeps posts until their records are saved.
	finalizers *records.Finalizers
	recorder   *recorder
	reporter   *reporter

	// startedAt is the time of the first reconciliation. The reconciler is created earlier, before this process becomes
	// the leader.
	startedAt time.Time
	startOnce sync.Once
}

// maxArmedRecords is the maximum number of concurrent writes that record results of armed posts.
const maxArmedRecords = 32

// New returns a Reconciler.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Platforms == nil || o.Tokens == nil || o.Files == nil || o.Renditions == nil || o.Owned == nil || o.Clock == nil || o.NewID == nil || o.Shard != nil && o.Team == nil {
		return nil, errors.New("the post reconciler needs Client, APIReader, Platforms, Tokens, Files, Renditions, Owned, Clock and NewID")
	}
	o.setDefaults()
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	r := &Reconciler{
		o: o, scheduler: dispatch.NewScheduler(o.MaxConcurrentReconciles).WithArmed(o.MaxArmedCalls), states: newPostStates(),
		owners: lookup.NewOwners(o.APIReader, o.Clock),
	}
	r.recorder = newRecorder(o.Events, o.Clock, r.scheduler.BusyUntil(o.Stopping))
	r.queue = newPostQueue(&r.o, r.states)
	r.crowds, r.prefetcher = newCrowds(&r.o, r.queue), newTokenPrefetcher(&r.o)
	r.sharding, r.arrivals = newSharding(&r.o, r.scheduler), newArrivals(&r.o)
	r.suspensions = &suspensionReader{o: &r.o, states: r.states}
	limiting := &limits.Options{Client: o.Client, APIReader: o.APIReader, Apps: o.Apps, Clock: o.Clock}
	r.limits = limits.New(limiting)
	r.inputs = &inputReader{o: &r.o, states: r.states, limits: r.limits, suspensions: r.suspensions, largeReads: make(chan struct{}, maxConcurrentReads)}
	recording := &records.Options{
		Client: o.Client, APIReader: o.APIReader, Clock: o.Clock, ClockMargin: o.ClockMargin, Namespaces: o.Namespaces, Records: o.Records,
		Events: r.recorder, Abandoned: o.Metrics.Abandoned, Failpoint: o.Failpoint,
	}
	r.records = records.New(recording)
	r.archiver = records.NewArchiver(recording, r.records)
	r.finalizers = records.NewFinalizers(recording, r.records)
	r.preparer = prepare.New(prepare.Options{
		Client: o.Client, APIReader: o.APIReader, Platforms: o.Platforms, Files: o.Files, Renditions: o.Renditions, Thumbnails: o.Thumbnails,
		Conversions: o.Conversions, Unconverted: o.Unconverted,
		TeamMedia: o.TeamMedia, Clock: o.Clock, Failpoint: o.Failpoint, MaxUploads: o.MaxUploads, Managers: o.Managers, Sent: o.Metrics.Sent,
	})
	r.assistant = newAssistant(&r.o, r.states, r.inputs, r.preparer, r)
	r.queue.assisted = r.assistant.queue
	r.reporter = &reporter{o: &r.o, preparer: r.preparer, limits: limits.NewRecorder(limiting, r.limits), recorder: r.recorder, queue: r.queue}
	r.lookups = &lookup.Lookups{
		Client: o.Client, APIReader: o.APIReader, Token: o.Tokens.Token, Preparer: r.preparer, Owners: r.owners, Clock: o.Clock, Refused: r.reporter.reportRefusedToken,
	}
	if o.Shard != nil {
		r.lookups.ArrivedAt = r.arrivals.arrivedAt
	}
	r.plans = &plans{o: &r.o, scheduler: r.scheduler, recorder: r.recorder}
	r.publisher = &publish.Publisher{
		Client: o.Client, APIReader: o.APIReader, Clock: o.Clock, NewID: o.NewID, SendWindow: o.SendWindow, RecordFor: o.RecordFor,
		Scheduler: r.scheduler, Claims: dispatch.NewCongestionWindow(o.MaxConcurrentReconciles, o.SendWindow, o.Clock), Owners: r.owners, DeadlineShift: r.suspensions.shift,
		Groups: newGroups(&r.o), Recording: dispatch.NewRecordLimit(min(maxArmedRecords, o.MaxConcurrentReconciles), o.Clock, r.scheduler.BusyUntil(o.Stopping)),
		Shard:        o.Shard,
		ClaimStarted: r.reporter.claimStarted,
		Changed:      r.reporter.changed, ClaimExpired: o.Metrics.ClaimExpired, Failpoint: o.Failpoint, Log: ctrl.Log.WithName("publish"),
	}
	r.deliveries = &deliveryBuilder{o: &r.o, preparer: r.preparer, suspensions: r.suspensions, reporter: r.reporter, queue: r.queue}
	r.armer = &armer{
		o: &r.o, deliveries: r.deliveries, plans: r.plans, sharding: r.sharding, arrivals: r.arrivals, limits: r.limits, publisher: r.publisher, recorder: r.recorder,
		results: newArmedResults(r.queue), ended: r.ended,
	}
	r.retries = &retries{o: &r.o, archiver: r.archiver}
	return r, nil
}

// SaveRecord saves the record of a finished post in its current state, before the caller deletes the post. After
// ErrNotRecorded the caller must not delete it.
func (r *Reconciler) SaveRecord(ctx context.Context, post *v1alpha1.Post) error {
	return r.records.Save(ctx, post) //nolint:wrapcheck // the error names the operation
}
