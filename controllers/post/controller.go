// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package post delivers Posts. controller.go wires it up; sync.go decides what
// a pass does; prepare.go has made what precedes the visible calls; publish.go
// is the only place that can make anything public, and trees.go has it go on from
// card to card;
// settle.go finds out what became of calls whose answer was lost; ledger.go
// writes; status.go describes.
package post

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	clientworkqueue "k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/dispatch"
	"github.com/herald-social/herald/platforms"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;watch;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=connections,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Tokens hands out the token of a connection for one call.
type Tokens interface {
	// Token returns the connection's current token.
	Token(ctx context.Context, conn *v1alpha1.Connection) (platforms.Token, error)
	// Forget drops what is held in memory for a connection, after the
	// platform refused it.
	Forget(conn *v1alpha1.Connection)
}

// Options is what the reconciler needs. Client, APIReader, Platforms, Tokens, Files,
// Renditions, Clock and NewID are required.
type Options struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Platforms are the publishers of this process.
	Platforms platforms.Registry
	// Tokens gives access to credentials.
	Tokens Tokens
	// Files reads the media files of posts.
	Files Files
	// Renditions converts images that a platform does not take.
	Renditions Renditions
	// Thumbnails takes pictures out of videos; nil where there is no ffmpeg, so
	// that posts go out without.
	Thumbnails Thumbnails
	// Clock is the time.
	Clock clock.WithTicker
	// NewID makes ids of attempts; they never repeat.
	NewID func() string
	// Plans are what teams may do only so often; nil sets no limits.
	Plans *Plans
	// Events tells the story of a post to its owner; nil tells nothing.
	Events events.EventRecorder
	// Metrics counts; nil counts nothing.
	Metrics *Metrics
	// MaxConcurrentReconciles is how many posts are worked on at once (default 256).
	MaxConcurrentReconciles int
	// PrepareAhead is how long before its time a scheduled post with files is
	// prepared: uploaded, as far as nobody sees it (default 30 min). Big files
	// begin earlier, and what a platform keeps for a short time begins later.
	PrepareAhead time.Duration
	// StartingDeadline is how late a scheduled post may still go out, and how
	// long temporary refusals are tried again (default 1 h).
	StartingDeadline time.Duration
	// SendWindow is how long after its claim a call may be begun (default 5 s).
	SendWindow time.Duration
	// ClockMargin is how far clocks may differ (default 2 s).
	ClockMargin time.Duration
	// RecordFor is how long the result of a call is tried to be written by
	// the pass that made it (default DefaultRecordFor); after that the next
	// passes go on.
	RecordFor time.Duration
	// Failpoint is called at named points of the protocol, for tests that kill
	// the process there; nil does nothing.
	Failpoint func(point string)
}

// DefaultRecordFor is the default of Options.RecordFor. A process that is stopped
// must be given longer than that and a call together.
const DefaultRecordFor = time.Minute

func (o *Options) setDefaults() {
	orDefault(&o.StartingDeadline, time.Hour)
	orDefault(&o.PrepareAhead, 30*time.Minute)
	orDefault(&o.SendWindow, 5*time.Second)
	orDefault(&o.ClockMargin, 2*time.Second)
	orDefault(&o.RecordFor, DefaultRecordFor)
	if o.MaxConcurrentReconciles == 0 {
		o.MaxConcurrentReconciles = 256
	}
	if o.Failpoint == nil {
		o.Failpoint = func(string) {}
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
}

func orDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Reconciler works on posts.
type Reconciler struct {
	Options

	// admission says whose turn it is to publish, uploads whose to prepare files,
	// and lanes whose to prepare texts.
	admission *dispatch.Scheduler
	uploads   *dispatch.Scheduler
	lanes     *dispatch.Gates
	turns     *dispatch.Turns
	waiting   *waiting
	ledger    *ledger
	taken     *taken
	story     *story
	holds     *holds
	// preparations holds what was made ahead of visible calls, and sessions what
	// carries authority over it.
	preparations *preparations
	sessions     sessions

	queue atomic.Pointer[workqueue]
}

// workqueue is what the controller takes posts from.
type workqueue struct {
	clientworkqueue.TypedRateLimitingInterface[reconcile.Request]
}

// New makes a reconciler.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Platforms == nil || o.Tokens == nil || o.Files == nil || o.Renditions == nil || o.Clock == nil || o.NewID == nil {
		return nil, errors.New("the post reconciler needs Client, APIReader, Platforms, Tokens, Files, Renditions, Clock and NewID")
	}
	o.setDefaults()
	r := &Reconciler{
		Options: o,

		admission: dispatch.NewScheduler(o.MaxConcurrentReconciles),
		uploads:   dispatch.NewScheduler(uploads),
		lanes:     dispatch.NewGates(),
		turns:     dispatch.NewTurns(o.Clock.Now),
		waiting:   newWaiting(),
		taken:     newTaken(o.APIReader, o.Clock),
		story:     newStory(o.Events, o.Clock),
		holds:     newHolds(),

		preparations: newPreparations(o.Clock),
		sessions:     sessions{client: o.Client, live: o.APIReader},
	}
	r.ledger = newLedger(o, r.taken)
	return r, nil
}

// SetupWithManager registers the reconciler and what wakes it: posts that are
// not finished, changes of connections that posts wait for, and turns that
// have come.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := r.Metrics.watch(newUnfinished(r.Options)); err != nil {
		return err
	}
	if err := indexAppHeld(context.Background(), mgr.GetFieldIndexer()); err != nil {
		return err
	}
	wake := source.Func(func(_ context.Context, queue clientworkqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.queue.Store(&workqueue{queue})
		return nil
	})
	if err := ctrl.NewControllerManagedBy(mgr).
		Named("post").
		For(&v1alpha1.Post{}).
		Watches(&v1alpha1.Connection{}, handler.EnqueueRequestsFromMapFunc(r.postsWaitingFor)).
		Watches(&v1alpha1.Media{}, handler.EnqueueRequestsFromMapFunc(r.postsWaitingForMedia)).
		WatchesRawSource(wake).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.MaxConcurrentReconciles}).
		Complete(r); err != nil {
		return fmt.Errorf("cannot set up the post controller: %w", err)
	}
	return mgr.Add(&deletions{reconciler: r, config: mgr.GetConfig(), client: mgr.GetHTTPClient()})
}

func (r *Reconciler) postsWaitingFor(_ context.Context, conn client.Object) []reconcile.Request {
	return r.take(client.ObjectKeyFromObject(conn))
}

func (r *Reconciler) postsWaitingForMedia(_ context.Context, media client.Object) []reconcile.Request {
	return r.take(mediaKey(media.GetNamespace(), media.GetName()))
}

// take lists the posts that wait for something, and forgets that they do.
func (r *Reconciler) take(awaited types.NamespacedName) []reconcile.Request {
	var requests []reconcile.Request
	for _, key := range r.waiting.take(awaited) {
		requests = append(requests, reconcile.Request{NamespacedName: key})
	}
	return requests
}

// enqueue asks for another pass over a post.
func (r *Reconciler) enqueue(key types.NamespacedName) {
	if queue := r.queue.Load(); queue != nil {
		queue.Add(reconcile.Request{NamespacedName: key})
	}
}

// Reconcile makes one pass over one post.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	r.taken.began()
	defer r.lanes.Pass(req.String())
	defer r.admission.Pass(req.String())

	var post v1alpha1.Post
	if err := r.Client.Get(ctx, req.NamespacedName, &post); err != nil {
		if apierrors.IsNotFound(err) {
			r.waiting.forget(req.NamespacedName)
			r.ledger.forget(req.NamespacedName)
			r.preparations.forget(req.NamespacedName)
			r.passUploads(req.String(), maxTargets)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, fmt.Errorf("cannot read the post: %w", err)
	}
	// Targets that an edit took out of the post stand in its status still.
	defer r.passUploads(req.String(), max(len(post.Spec.Targets), len(post.Status.Targets)))
	if r.ledger.stale(&post) {
		// The cache has not seen our own last write yet; its event comes.
		return ctrl.Result{}, nil
	}
	s := &scope{
		Reconciler: r,
		post:       post.DeepCopy(),
		stored:     post.Status,

		keepsSessions: keepsSessions(&post.Status),
		key:           req.NamespacedName,
		log:           log.FromContext(ctx),
	}
	wait, err := s.sync(ctx)
	if err == nil && s.over() {
		s.returnUnused(ctx)
		s.discardUploads(ctx)
	}
	if !s.waits {
		r.waiting.forget(s.key)
	}
	switch {
	case apierrors.IsConflict(err):
		// Somebody else was first; their change wakes us again.
		s.log.V(1).Info("the post was changed meanwhile; looking again", "error", err.Error())
		return ctrl.Result{RequeueAfter: conflictPause}, nil
	case apierrors.IsNotFound(err):
		return ctrl.Result{}, nil
	case err != nil:
		return ctrl.Result{}, err
	case wait > 0:
		return ctrl.Result{RequeueAfter: wait, Priority: s.rank}, nil
	default:
		return ctrl.Result{}, nil
	}
}

// conflictPause lets the cache catch up after a lost write.
const conflictPause = 50 * time.Millisecond

// warn tells the owner of a post that something needs attention.
func (s *scope) warn(reason, message string) {
	s.story.tell(s.post, corev1.EventTypeWarning, reason, message)
}
