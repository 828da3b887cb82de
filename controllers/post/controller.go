// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package post delivers Posts. A pass (pass.go) reads what a post refers to, asks
// delivery.Decide what comes next, and carries the actions out (actions.go). Package
// internal/publish is the only one that can make anything public;
// internal/prepare makes what precedes that, and internal/lookup finds out what
// became of calls whose answer was lost.
package post

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	"github.com/herald-social/herald/controllers/post/internal/lookup"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/internal/apiclock"
	"github.com/herald-social/herald/internal/appid"
	"github.com/herald-social/herald/internal/deadline"
	"github.com/herald-social/herald/internal/dispatch"
	"github.com/herald-social/herald/internal/eventrecorder"
	"github.com/herald-social/herald/internal/logconstructor"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/retries"
	"github.com/herald-social/herald/internal/rollback"
	"github.com/herald-social/herald/internal/suspend"
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

// Tokens hands out the token of a connection for one call.
type Tokens interface {
	// Token returns the connection's current token.
	Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error)
	// Forget drops what is held in memory for a connection, after the
	// platform refused it.
	Forget(conn *v1alpha1.Connection)
}

// What the reconciler needs of media files; see package internal/prepare.
type (
	// Files reads the media files of posts.
	Files = prepare.Files
	// Renditions converts images that a platform does not take.
	Renditions = prepare.Renditions
	// Thumbnails takes pictures out of videos.
	Thumbnails = prepare.Thumbnails
	// Conversions converts videos that a platform does not take.
	Conversions = prepare.Conversions
)

// Options is what the reconciler needs. Client, APIReader, Platforms, Tokens, Files,
// Renditions, Owned, Clock and NewID are required.
type Options struct {
	// Client reads from the cache, which has cached.MediaIndex, and writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Platforms are the publishers of this process.
	Platforms platforms.Registry
	// Tokens gives access to credentials.
	Tokens Tokens
	// Apps are the installation's own apps. What a platform says of the limits of an app
	// is believed of these; nil believes nothing of that kind.
	Apps appid.Apps
	// Files reads the media files of posts.
	Files Files
	// Renditions converts images that a platform does not take.
	Renditions Renditions
	// Thumbnails takes pictures out of videos; nil where there is no ffmpeg, so
	// that posts go out without.
	Thumbnails Thumbnails
	// Conversions converts videos; nil where that cannot be done, for the reason in
	// Unconverted, which continues a sentence.
	Conversions Conversions
	Unconverted string
	// TeamMedia returns what the team of a namespace decides about its photos and videos; nil
	// decides nothing.
	TeamMedia func(ctx context.Context, namespace string) (v1alpha1.TeamMedia, error)
	// Owned reports whether a team owns a namespace. In others, nothing is sent.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Suspension tells whether the team of a namespace is suspended, and when it was; nil if
	// none ever is. Brake suspends all teams; nil never does.
	Suspension func(ctx context.Context, namespace string) (suspended bool, recent []v1alpha1.Suspension, err error)
	SuspendAll *suspend.Switch
	// Clock is the time, and Leaps tells when timers for one have become wrong; nil if they never do.
	Clock clock.WithTicker
	Jumps *apiclock.Jumps
	// NewID makes ids of attempts; they never repeat.
	NewID func() string
	// Records outlive posts; nil keeps none, so that what is deleted and created again is
	// published again.
	Records *Records
	// Rollback tells whether the cluster was put back to an earlier state. It may wait until that is
	// known; nil if it never is.
	Rollback func(ctx context.Context) (rollback.Status, error)
	// Plans are what teams may do only so often; nil sets no limits.
	Plans *Plans
	// Events tells the owner of a post what happened to it; nil tells nothing.
	Events events.EventRecorder
	// Metrics counts; nil counts nothing.
	Metrics *Metrics
	// Unlisted counts the errors of platforms that are in no table; nil counts nothing.
	Unlisted *unlisted.Counter
	// Stopping is closed when this process is told to stop; nil never is. Another one may count the posts then.
	Stopping <-chan struct{}
	// Tracer traces what passes do; nil traces nothing.
	Tracer *tracing.Tracer
	// MaxConcurrentReconciles is how many posts are worked on at once (default 256).
	MaxConcurrentReconciles int
	// MaxUploads is how many targets with files are prepared at once (default 32).
	MaxUploads int
	// PrepareAhead is how long before its time a scheduled post with files is
	// prepared: uploaded, as far as that is not visible (default 30 min). Big files
	// begin earlier, and what a platform keeps for a short time begins later.
	PrepareAhead time.Duration
	// StartingDeadline is how late a scheduled post may still go out, and how
	// long temporary refusals are tried again (default 1 h).
	StartingDeadline time.Duration
	// LongestDelay is how late a post may still go out whose platform announced
	// pauses. Defaults to six hours.
	LongestDelay time.Duration
	// SendWindow is how long after its claim a call may be begun (default 5 s).
	SendWindow time.Duration
	// ClockMargin is how far clocks may differ (default 2 s).
	ClockMargin time.Duration
	// RecordFor is how long the result of a call is tried to be written by
	// the pass that made it (default DefaultRecordFor); after that the next
	// passes go on.
	RecordFor time.Duration
	// Namespaces are those that this installation serves.
	Namespaces configv1alpha1.Namespaces
	// Failpoint is called at named points of the protocol, for tests that kill
	// the process there; nil does nothing.
	Failpoint func(point string)
}

// DefaultRecordFor is the default of Options.RecordFor. A process that is stopped
// must be given longer than that and a call together.
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

// settings are the times that delivery.Decide works with.
func (o *Options) settings() delivery.Settings {
	return delivery.Settings{
		StartingDeadline: o.StartingDeadline, LongestDelay: o.LongestDelay, SendWindow: o.SendWindow, ClockMargin: o.ClockMargin, PrepareAhead: o.PrepareAhead,
	}
}

// Reconciler works on posts.
type Reconciler struct {
	o Options

	// scheduler says whose turn it is to publish, and turns who comes first of what
	// is due at one time.
	scheduler  *dispatch.Scheduler
	priorities *dispatch.Sequencer
	states     *postStates
	objects    objectCounts

	preparer  *prepare.Preparer
	publisher *publish.Publisher
	lookups   *lookup.Lookups
	owners    *lookup.Owners
	limits    *rateLimits
	plans     *plans
	records   *records
	recorder  *recorder
	reporter  *reporter

	// largeReads bounds how many large posts are read at once.
	largeReads chan struct{}

	queue atomic.Pointer[workqueue]

	// startedAt is when the first pass was made: the reconciler is there before it leads.
	startedAt time.Time
	startOnce sync.Once
}

// workqueue is what the controller takes posts from.
type workqueue = clientworkqueue.TypedRateLimitingInterface[reconcile.Request]

// New makes a reconciler.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Platforms == nil || o.Tokens == nil || o.Files == nil || o.Renditions == nil || o.Owned == nil || o.Clock == nil || o.NewID == nil {
		return nil, errors.New("the post reconciler needs Client, APIReader, Platforms, Tokens, Files, Renditions, Owned, Clock and NewID")
	}
	o.setDefaults()
	o.Events = eventrecorder.New(o.Events, o.Client.Scheme(), o.Clock)
	r := &Reconciler{
		o:          o,
		scheduler:  dispatch.NewScheduler(o.MaxConcurrentReconciles),
		priorities: dispatch.NewSequencer(o.Clock.Now),
		states:     newPostStates(),
		owners:     lookup.NewOwners(o.APIReader, o.Clock),
		limits:     newRateLimits(&o),
		recorder:   newRecorder(o.Events, o.Clock),
		largeReads: make(chan struct{}, maxConcurrentReads),
	}
	r.preparer = prepare.New(prepare.Options{
		Client: o.Client, APIReader: o.APIReader, Platforms: o.Platforms, Files: o.Files, Renditions: o.Renditions, Thumbnails: o.Thumbnails,
		Conversions: o.Conversions, Unconverted: o.Unconverted,
		TeamMedia: o.TeamMedia, Clock: o.Clock, Failpoint: o.Failpoint, MaxUploads: o.MaxUploads, Sent: o.Metrics.sent,
	})
	r.publisher = &publish.Publisher{
		Client: o.Client, APIReader: o.APIReader, Clock: o.Clock, NewID: o.NewID, SendWindow: o.SendWindow, RecordFor: o.RecordFor,
		Scheduler: r.scheduler, Claims: dispatch.NewCongestionWindow(o.MaxConcurrentReconciles, o.SendWindow, o.Clock), Owners: r.owners, DeadlineShift: r.deadlineShift,
		Changed: r.changed, ClaimExpired: o.Metrics.expired.Inc, Failpoint: o.Failpoint, Log: ctrl.Log.WithName("publish"),
	}
	r.reporter = &reporter{o: &r.o, preparer: r.preparer, limits: r.limits, recorder: r.recorder, observeLimits: r.observeLimits}
	r.lookups = &lookup.Lookups{
		Client: o.Client, APIReader: o.APIReader, Token: o.Tokens.Token, Preparer: r.preparer, Owners: r.owners, Clock: o.Clock, Refused: r.reporter.reportRefusedToken,
	}
	r.plans = &plans{o: &r.o, rejectTarget: r.rejectTarget}
	r.records = newRecords(&r.o, r.recorder)
	return r, nil
}

// SetupWithManager registers the reconciler and what wakes it: posts that are not
// finished, changes of what posts wait for, the loss of what they refer to, a Team that comes to own their namespace, a clock
// that leaps, and turns that have come.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.objects.watch(mgr); err != nil {
		return err
	}
	r.o.Metrics.watch(r, mgr.Elected(), r.o.Stopping)
	if err := errors.Join(indexAppBlocked(context.Background(), mgr.GetFieldIndexer()), lookup.Index(context.Background(), mgr.GetFieldIndexer())); err != nil {
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
		Watches(&v1alpha1.Team{}, r.records.enqueueBackfill(), builder.WithPredicates(quota.OwnershipChanged())).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.o.Client, func() client.ObjectList { return &v1alpha1.PostList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WatchesRawSource(wake).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.o.MaxConcurrentReconciles, ReconciliationTimeout: deadline.Post, RateLimiter: retries.Limiter()}).
		WithLogConstructor(logconstructor.ForController(mgr.GetLogger(), "post")).
		Complete(r); err != nil {
		return fmt.Errorf("cannot set up the post controller: %w", err)
	}
	if err := r.records.add(mgr); err != nil {
		return err
	}
	return mgr.Add(&deletions{
		reconciler: r, config: mgr.GetConfig(), client: mgr.GetHTTPClient(), namespaces: r.o.Namespaces, waiting: map[types.NamespacedName]time.Time{},
	})
}

// enqueueForInput has a change of an input wake the posts that wait for it.
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

// enqueueAppLimited has the posts that wait for the limit of an app woken when that is
// recorded, or lifted by a person, and drops what is known of a connection that is gone.
func (r *Reconciler) enqueueAppLimited() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue) {
			before, ok := e.ObjectOld.(*v1alpha1.Connection)
			after, is := e.ObjectNew.(*v1alpha1.Connection)
			if ok && is && (before.Status.App != after.Status.App || !v1alpha1.SemanticEqual(before.Status.AppRateLimitedUntil, after.Status.AppRateLimitedUntil)) {
				r.wakeApp(after.Spec.Platform, wakeAll)
			}
			if ok && is && before.UID != after.UID {
				r.limits.forget(before.UID)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue) {
			r.limits.forget(e.Object.GetUID())
			if conn, ok := e.Object.(*v1alpha1.Connection); ok && conn.Status.AppRateLimitedUntil != nil {
				r.wakeApp(conn.Spec.Platform, wakeAll)
			}
		},
	}
}

// wakeApp wakes the posts that wait for the limit of the app on a platform, so many at most.
func (r *Reconciler) wakeApp(platform v1alpha1.Platform, most int) {
	for _, post := range r.states.drainUpTo(appInput(platform), most) {
		r.enqueue(post)
	}
}

// observeLimits takes what an answer told before it is recorded, and wakes the posts that wait
// for it.
func (r *Reconciler) observeLimits(p *reconciliation, d *publish.Delivery) {
	if wake := r.limits.observe(p.key, d); wake != wakeNone {
		r.wakeApp(d.Conn.Spec.Platform, wake)
	}
}

// blockedUntil is until when a connection's platform takes no calls for a pass's post.
func (r *Reconciler) blockedUntil(p *reconciliation, conn *v1alpha1.Connection, now time.Time) time.Time {
	return r.limits.blockedUntil(conn, p.appLimitEnds[conn.Spec.Platform], p.key, now)
}

// enqueue asks for another pass over a post.
func (r *Reconciler) enqueue(post types.NamespacedName) {
	if queue := r.queue.Load(); queue != nil {
		(*queue).Add(reconcile.Request{NamespacedName: post})
	}
}
