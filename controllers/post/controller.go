// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package post delivers Posts. A reconciliation (reconcile.go) reads the objects that a post refers to, calls
// delivery.Decide, and runs the returned actions (actions.go). Only package internal/publish can make anything public;
// internal/prepare does the preparation, and internal/lookup finds the outcome of calls whose answer was lost.
package post

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clientworkqueue "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/dispatch"
	"github.com/herald-social/herald/controllers/post/internal/limits"
	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/controllers/post/internal/records"
	"github.com/herald-social/herald/controllers/post/internal/stats"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/internal/installation"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/rollback"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/internal/unlisted"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/delivery"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Tokens returns access tokens of connections.
type Tokens interface {
	// Token returns the connection's current token.
	Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error)
	// Forget drops the cached token of a connection after the platform refused it.
	Forget(conn *v1alpha1.Connection)
}

// The interfaces to media files; see package internal/prepare.
type (
	// Files reads the media files of posts.
	Files = prepare.Files
	// Renditions converts images that a platform does not accept.
	Renditions = prepare.Renditions
	// Thumbnails extracts pictures from videos.
	Thumbnails = prepare.Thumbnails
	// Conversions converts videos that a platform does not accept.
	Conversions = prepare.Conversions
)

// Records configures the archive of records.
type Records = records.Config

// ErrNotRecorded is returned if a post has no record; see package internal/records.
var ErrNotRecorded = records.ErrNotRecorded

// Metrics measures how well the delivery keeps its guarantees.
type Metrics = stats.Metrics

// NewMetrics creates the metrics, and registers them unless registerer is nil.
func NewMetrics(registerer prometheus.Registerer) *Metrics { return stats.New(registerer) }

// Options configures the reconciler. Client, APIReader, Platforms, Tokens, Files, Renditions, Owned, Clock and NewID
// are required.
type Options struct {
	// Client reads from the cache, which needs the index cachetransform.MediaIndex, and writes to the API server.
	Client client.Client
	// APIReader reads from the API server without the cache.
	APIReader client.Reader
	// Platforms holds the publishers of this process.
	Platforms platforms.Registry
	// Tokens returns access tokens of connections.
	Tokens Tokens
	// Apps holds the ids of the installation's own apps. App-wide rate limits are only accepted for these apps; nil
	// accepts none.
	Apps credentials.Apps
	// Files reads the media files of posts.
	Files Files
	// Renditions converts images that a platform does not accept.
	Renditions Renditions
	// Thumbnails extracts pictures from videos. It is nil without ffmpeg; posts are then published without thumbnails.
	Thumbnails Thumbnails
	// Conversions converts videos. It is nil if videos cannot be converted, for the reason in Unconverted, which is the
	// end of a sentence.
	Conversions Conversions
	Unconverted string
	// TeamMedia returns the media settings of the team that owns a namespace; nil uses the defaults.
	TeamMedia func(ctx context.Context, namespace string) (v1alpha1.TeamMedia, error)
	// Owned reports whether a team owns a namespace. Nothing is sent from other namespaces.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Suspension reports whether the team of a namespace is suspended, and its recent suspensions; nil suspends no
	// team. SuspendAll suspends all teams; nil never does.
	Suspension func(ctx context.Context, namespace string) (suspended bool, recent []v1alpha1.Suspension, err error)
	SuspendAll *installation.Suspension
	// Clock returns the time. Jumps notifies of clock changes that make its timers wrong; nil if the clock never jumps.
	Clock clock.WithTicker
	Jumps *apiclock.Jumps
	// NewID returns a unique id for an attempt.
	NewID func() string
	// Records stores the outcomes of posts beyond their deletion. If it is nil, a post that is deleted and created
	// again is published again.
	Records *Records
	// Rollback returns the rollback state of the cluster, and may block until it is known; nil if the cluster is never
	// rolled back.
	Rollback func(ctx context.Context) (rollback.Status, error)
	// Plans counts the usage that the teams' plans limit; nil sets no limits.
	Plans *Plans
	// Events records events for the post's owner; nil records none.
	Events events.EventRecorder
	// Metrics holds the metrics of the reconciler; nil exports none.
	Metrics *Metrics
	// Unlisted counts platform errors that are missing from the error tables; nil counts none.
	Unlisted *unlisted.Counter
	// Stopping is closed when the shutdown of this process starts; nil is never closed. After that another process may
	// report the gauges.
	Stopping <-chan struct{}
	// Tracer traces reconciliations; nil traces none.
	Tracer *tracing.Tracer
	// MaxConcurrentReconciles is the number of posts that are reconciled concurrently (default 256).
	MaxConcurrentReconciles int
	// MaxUploads is the number of targets with files that are prepared concurrently (default 32).
	MaxUploads int
	// PrepareAhead is the lead time for the preparation of a scheduled post with files (default 30 min). It includes
	// uploads that are not visible. Large files start earlier, and content that a platform keeps only for a short time
	// starts later.
	PrepareAhead time.Duration
	// StartingDeadline is the longest lateness of a scheduled post, and limits the retries of temporary refusals
	// (default 1 h).
	StartingDeadline time.Duration
	// LongestDelay is the longest lateness of a post whose platform announced pauses (default 6 h, at least
	// StartingDeadline).
	LongestDelay time.Duration
	// SendWindow is the time after a claim within which its call must start (default 5 s).
	SendWindow time.Duration
	// ClockMargin is the largest expected difference between two clocks (default 2 s).
	ClockMargin time.Duration
	// RecordFor limits the retries of a reconciliation to record the result of its call (default DefaultRecordFor).
	// Later reconciliations continue after that.
	RecordFor time.Duration
	// Namespaces are the namespaces that this installation serves.
	Namespaces configv1alpha1.Namespaces
	// Failpoint is called at named points of the delivery, for tests that kill the process there; nil does nothing.
	Failpoint func(point string)
}

// DefaultRecordFor is the default of Options.RecordFor. The termination grace period of the process must be longer than
// this and one call together.
const DefaultRecordFor = time.Minute

func (o *Options) setDefaults() {
	o.StartingDeadline = cmp.Or(o.StartingDeadline, time.Hour)
	o.LongestDelay = max(cmp.Or(o.LongestDelay, 6*time.Hour), o.StartingDeadline)
	o.PrepareAhead = cmp.Or(o.PrepareAhead, 30*time.Minute)
	o.SendWindow = cmp.Or(o.SendWindow, 5*time.Second)
	o.ClockMargin = cmp.Or(o.ClockMargin, 2*time.Second)
	o.RecordFor = cmp.Or(o.RecordFor, DefaultRecordFor)
	o.MaxConcurrentReconciles = cmp.Or(o.MaxConcurrentReconciles, 256)
	o.MaxUploads = cmp.Or(o.MaxUploads, 32)
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
}

// settings returns the time limits for delivery.Decide.
func (o *Options) settings() delivery.Settings {
	return delivery.Settings{
		StartingDeadline: o.StartingDeadline, LongestDelay: o.LongestDelay, SendWindow: o.SendWindow, ClockMargin: o.ClockMargin, PrepareAhead: o.PrepareAhead,
	}
}

// Reconciler reconciles posts.
type Reconciler struct {
	o Options

	// scheduler holds the gates of the accounts, and priorities orders the posts that are due at the same time.
	scheduler  *dispatch.Scheduler
	priorities *dispatch.Sequencer
	states     *postStates
	objects    stats.Objects

	preparer  *prepare.Preparer
	publisher *publish.Publisher
	lookups   *lookup.Lookups
	owners    *lookup.Owners
	limits    *limits.Limits
	plans     *plans
	records   *records.Records
	archiver  *records.Archiver
	// finalizers keeps posts until their records are saved.
	finalizers *records.Finalizers
	recorder   *recorder
	reporter   *reporter

	// largeReads limits concurrent reads of large posts.
	largeReads chan struct{}

	queue atomic.Pointer[workqueue]

	// startedAt is the time of the first reconciliation: the reconciler exists before this process leads.
	startedAt time.Time
	startOnce sync.Once
}

// workqueue is the queue of the controller.
type workqueue = clientworkqueue.TypedRateLimitingInterface[reconcile.Request]

// New returns a Reconciler.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Platforms == nil || o.Tokens == nil || o.Files == nil || o.Renditions == nil || o.Owned == nil || o.Clock == nil || o.NewID == nil {
		return nil, errors.New("the post reconciler needs Client, APIReader, Platforms, Tokens, Files, Renditions, Owned, Clock and NewID")
	}
	o.setDefaults()
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	r := &Reconciler{
		o:          o,
		scheduler:  dispatch.NewScheduler(o.MaxConcurrentReconciles),
		priorities: dispatch.NewSequencer(o.Clock.Now),
		states:     newPostStates(),
		owners:     lookup.NewOwners(o.APIReader, o.Clock),
		recorder:   newRecorder(o.Events, o.Clock),
		largeReads: make(chan struct{}, maxConcurrentReads),
	}
	limiting := &limits.Options{Client: o.Client, APIReader: o.APIReader, Apps: o.Apps, Clock: o.Clock}
	r.limits = limits.New(limiting)
	r.preparer = prepare.New(prepare.Options{
		Client: o.Client, APIReader: o.APIReader, Platforms: o.Platforms, Files: o.Files, Renditions: o.Renditions, Thumbnails: o.Thumbnails,
		Conversions: o.Conversions, Unconverted: o.Unconverted,
		TeamMedia: o.TeamMedia, Clock: o.Clock, Failpoint: o.Failpoint, MaxUploads: o.MaxUploads, Sent: o.Metrics.Sent,
	})
	r.publisher = &publish.Publisher{
		Client: o.Client, APIReader: o.APIReader, Clock: o.Clock, NewID: o.NewID, SendWindow: o.SendWindow, RecordFor: o.RecordFor,
		Scheduler: r.scheduler, Claims: dispatch.NewCongestionWindow(o.MaxConcurrentReconciles, o.SendWindow, o.Clock), Owners: r.owners, DeadlineShift: r.deadlineShift,
		Changed: r.changed, ClaimExpired: o.Metrics.ClaimExpired, Failpoint: o.Failpoint, Log: ctrl.Log.WithName("publish"),
	}
	r.reporter = &reporter{o: &r.o, preparer: r.preparer, limits: limits.NewRecorder(limiting, r.limits), recorder: r.recorder, observeLimits: r.observeLimits}
	r.lookups = &lookup.Lookups{
		Client: o.Client, APIReader: o.APIReader, Token: o.Tokens.Token, Preparer: r.preparer, Owners: r.owners, Clock: o.Clock, Refused: r.reporter.reportRefusedToken,
	}
	r.plans = &plans{o: &r.o, rejectTarget: r.rejectTarget}
	recording := &records.Options{
		Client: o.Client, APIReader: o.APIReader, Clock: o.Clock, ClockMargin: o.ClockMargin, Namespaces: o.Namespaces, Records: o.Records,
		Events: r.recorder, Abandoned: o.Metrics.Abandoned, Failpoint: o.Failpoint,
	}
	r.records = records.New(recording)
	r.archiver = records.NewArchiver(recording, r.records)
	r.finalizers = records.NewFinalizers(recording, r.records)
	return r, nil
}

// SetupWithManager registers the reconciler and its watches. A reconciliation is triggered by changes of unfinished
// posts, by changes of inputs that posts wait for, by the loss of an input, by a Team that becomes the owner of the
// namespace, by clock jumps, and by gates that become free.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.objects.Watch(mgr); err != nil {
		return err
	}
	r.o.Metrics.Watch(&stats.Source{
		Objects: &r.objects, Clock: r.o.Clock, Settings: r.o.settings(), Platforms: r.o.Platforms, Uploads: r.preparer,
		Posts: r.queueLen, Turns: r.scheduler.Waiting, Claims: r.publisher.Claims.Size, Unsaved: r.records.Unsaved, LimitedApps: r.limits.LimitedApps,
		Elected: mgr.Elected(), Stopping: r.o.Stopping,
	})
	if err := errors.Join(limits.Index(context.Background(), mgr.GetFieldIndexer()), lookup.Index(context.Background(), mgr.GetFieldIndexer())); err != nil {
		return err
	}
	if r.o.SuspendAll != nil {
		r.o.SuspendAll.Subscribe(r.suspendAllChanged)
	}
	if r.o.Jumps != nil {
		r.o.Jumps.Subscribe(r.clockJumped)
	}
	wake := source.Func(func(_ context.Context, queue workqueue) error {
		r.queue.Store(&queue)
		return nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("post").
		For(&v1alpha1.Post{}).
		Watches(&v1alpha1.Connection{}, r.enqueueForInput(kindConnection)).
		Watches(&v1alpha1.Connection{}, r.enqueueAppLimited()).
		Watches(&v1alpha1.Connection{}, r.enqueueDependents(), builder.WithPredicates(becameUnusable())).
		Watches(&v1alpha1.Media{}, r.enqueueForInput(kindMedia)).
		Watches(&v1alpha1.Media{}, r.enqueueDependents(), builder.WithPredicates(becameUnusable())).
		Watches(&v1alpha1.Team{}, r.enqueueSuspended(), builder.WithPredicates(quota.SuspensionEnded())).
		Watches(&v1alpha1.Team{}, r.archiver.Backfill(), builder.WithPredicates(quota.OwnershipChanged())).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.o.Namespaces, r.o.Client, func() client.ObjectList { return &v1alpha1.PostList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WatchesRawSource(wake).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.o.MaxConcurrentReconciles, ReconciliationTimeout: pacing.PostTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "post")).
		Complete(r); err != nil {
		return fmt.Errorf("cannot set up the post controller: %w", err)
	}
	return errors.Join(r.archiver.SetupWithManager(mgr), r.finalizers.SetupWithManager(mgr))
}

// SaveRecord saves the record of a finished post in its current state, before the caller deletes the post. After
// ErrNotRecorded the caller must not delete it.
func (r *Reconciler) SaveRecord(ctx context.Context, post *v1alpha1.Post) error {
	return r.records.Save(ctx, post) //nolint:wrapcheck // the error names the operation
}

// enqueueForInput enqueues the posts that wait for a changed input.
func (r *Reconciler) enqueueForInput(kind string) handler.EventHandler {
	return handler.EnqueueRequestsFromMapFunc(func(_ context.Context, obj client.Object) (requests []reconcile.Request) {
		for _, key := range []types.NamespacedName{client.ObjectKeyFromObject(obj), {Namespace: obj.GetNamespace()}} {
			for _, post := range r.states.drain(input{kind, key}) {
				requests = append(requests, reconcile.Request{NamespacedName: post})
			}
		}
		return requests
	})
}

// enqueueAppLimited enqueues the posts that wait for an app's rate limit after the limit was recorded, or removed by a
// person. It also drops the limits of a deleted connection.
func (r *Reconciler) enqueueAppLimited() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue) {
			before, ok := e.ObjectOld.(*v1alpha1.Connection)
			after, is := e.ObjectNew.(*v1alpha1.Connection)
			if ok && is && (before.Status.App != after.Status.App || !v1alpha1.SemanticEqual(before.Status.AppRateLimitedUntil, after.Status.AppRateLimitedUntil)) {
				r.wakeApp(after.Spec.Platform, math.MaxInt)
			}
			if ok && is && before.UID != after.UID {
				r.limits.Forget(before.UID)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue) {
			r.limits.Forget(e.Object.GetUID())
			if conn, ok := e.Object.(*v1alpha1.Connection); ok && conn.Status.AppRateLimitedUntil != nil {
				r.wakeApp(conn.Spec.Platform, math.MaxInt)
			}
		},
	}
}

// wakeApp enqueues up to most of the posts that wait for the app's rate limit on a platform.
func (r *Reconciler) wakeApp(platform v1alpha1.Platform, most int) {
	for _, post := range r.states.drainUpTo(appInput(platform), most) {
		r.enqueue(post)
	}
}

// observeLimits applies the rate limits of an answer before they are recorded, and enqueues the posts that wait for
// them.
func (r *Reconciler) observeLimits(p *reconciliation, d *publish.Delivery) {
	r.wakeApp(d.Conn.Spec.Platform, r.reporter.limits.Observe(p.key, d))
}

// queueLen returns the number of posts in the queue of the controller.
func (r *Reconciler) queueLen() int {
	if queue := r.queue.Load(); queue != nil {
		return (*queue).Len()
	}
	return 0
}

// enqueue adds a post to the queue of the controller.
func (r *Reconciler) enqueue(post types.NamespacedName) {
	if queue := r.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: post})
	}
}
