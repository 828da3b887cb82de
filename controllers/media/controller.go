// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package media maintains media files: it notices uploads and verifies them, fetches
// files that have a source, ends the wait for files that never arrive, deletes what
// no post uses, and makes sure that no file outlives its Media.
//
// A Media has a finalizer, so that its file is deleted first. The sweep finds a file
// that arrives after its Media is gone.
package media

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/deadline"
	"github.com/herald-social/herald/internal/eventrecorder"
	"github.com/herald-social/herald/internal/logconstructor"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/retries"
	"github.com/herald-social/herald/internal/sweeps"
	"github.com/herald-social/herald/posting/retention"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=media,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=media/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// conflictPause is how long to wait after a conflict; meanwhile the watch
	// delivers the other change.
	conflictPause = time.Second
	// writeWithin bounds the write of a status, which is finished even if the
	// process is told to end.
	writeWithin = 10 * time.Second
)

// Store keeps the files; *store.Store implements it.
type Store interface {
	PresignPut(ctx context.Context, key, mimeType string, size int64) (url string, expires time.Time, err error)
	Stat(ctx context.Context, key string) (store.Object, error)
	Put(ctx context.Context, key, mimeType string, size int64, body io.Reader) (store.Object, error)
	DeleteAll(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[store.Object, error]
	// Absent reports whether the installation has no store.
	Absent() bool
}

// Source downloads files; *fetch.Client implements it.
type Source interface {
	Get(ctx context.Context, address string, want fetch.Expected, take func(ctx context.Context, size int64, body io.Reader) error) error
}

// Requests keeps requests whose objects are gone; *archive.Archive implements it.
type Requests interface {
	PutRequest(ctx context.Context, team archive.Team, name string, r archive.Request) error
}

// Options is what the reconciler needs. Required are those that say nothing else.
type Options struct {
	// Client reads from a cache, in which SetupWithManager indexes the posts, and
	// writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Store keeps the files.
	Store Store
	// Verify examines the file of a Media and returns the status that follows:
	// uploaded or rejected. It returns store.ErrNotFound if there is no file, and
	// store.ErrChanged if the file is overwritten all the time.
	Verify func(ctx context.Context, m *v1alpha1.Media) (v1alpha1.MediaStatus, error)
	// Source downloads the files that have one.
	Source Source
	// UnusedAfter is how long a file without a post is kept. An upload address in
	// the status is renewed for as long.
	UnusedAfter time.Duration
	// Retention says how long a rejected Media stays: as long as a finished post.
	Retention retention.Policy
	// MayDelete returns an error if nothing may be removed from the store that another cluster
	// may have put there, *installation.ForeignBucketError if it is another's. What was stored for
	// a Media of this cluster goes with it all the same. Without it all may be removed.
	MayDelete func(ctx context.Context) error
	// Namespaces are those that this installation serves. Files of others stay in the
	// store.
	Namespaces configv1alpha1.Namespaces
	// Owned reports whether a team owns a namespace. In others, no file is taken.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Owner returns the team that owns a namespace, or nil: its budget bounds the files that
	// are waited for. Without it nothing does.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// Requests keeps the requests under an Idempotency-Key that created Media which are
	// deleted; nil keeps none.
	Requests Requests
	// Clock is the time.
	Clock clock.WithTicker
	// Events takes the events of media files; nil emits none.
	Events events.EventRecorder
	// Metrics counts what is done; nil counts nothing.
	Metrics *Metrics
	// MaxConcurrentReconciles is how many media files are reconciled at once: most of
	// the time they wait for the store (default 16). MaxFetches is how many of them are
	// fetched from their source (default 8), so that workers are left for uploads.
	MaxConcurrentReconciles int
	MaxFetches              int
}

// Reconciler reconciles media files.
type Reconciler struct {
	Options

	status       conditions.Reporter
	fetchSlots   *fetchSlots
	reservations reservations
}

// New returns a reconciler; an error says which of the required options is missing.
func New(o Options) (*Reconciler, error) {
	if o.Client == nil || o.APIReader == nil || o.Store == nil || o.Verify == nil || o.Source == nil || o.UnusedAfter <= 0 || o.Owned == nil || o.Clock == nil {
		return nil, errors.New("the media reconciler needs Client, APIReader, Store, Verify, Source, UnusedAfter, Owned and Clock")
	}
	if o.MayDelete == nil {
		o.MayDelete = func(context.Context) error { return nil }
	}
	if o.Metrics == nil {
		o.Metrics = NewMetrics(nil)
	}
	o.Events = eventrecorder.New(o.Events, o.Client.Scheme(), o.Clock)
	r := &Reconciler{Options: o, fetchSlots: newFetchSlots(cmp.Or(o.MaxFetches, 8), o.Clock), status: conditions.Reporter{
		Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Reconcile",
		Normal: []string{v1alpha1.ReasonUploaded, v1alpha1.ReasonAwaitingUpload, v1alpha1.ReasonFetching, v1alpha1.ReasonBudgetLimit},
	}}
	r.reservations.byMedia = map[types.NamespacedName]reservation{}
	return r, nil
}

// SetupWithManager adds the reconciler and its sweep to a manager. A Media is
// reconciled when it changes, when a post that refers to it comes or goes, when a Team
// comes to own its namespace, and by the clock. The manager's cache has cached.MediaIndex.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Media{}, pendingIndex, pending); err != nil {
		return fmt.Errorf("cannot index the media files that are waited for: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Media{}, fileIndex, fileKeys); err != nil {
		return fmt.Errorf("cannot index media files by their key: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Media{}).
		Watches(&v1alpha1.Post{}, mediaOf(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.Client, func() client.ObjectList { return &v1alpha1.MediaList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.MaxConcurrentReconciles, 16), ReconciliationTimeout: deadline.Media, RateLimiter: retries.Limiter()}).
		WithLogConstructor(logconstructor.ForController(mgr.GetLogger(), "media")).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up the media controller: %w", err)
	}
	sweep := sweeps.Sweep{
		Name: "media-sweep", Do: (&sweeper{Reconciler: r}).sweep, First: firstSweep, Every: sweepEvery, Within: deadline.Sweep, Clock: r.Clock,
	}
	if err := mgr.Add(sweep); err != nil {
		return fmt.Errorf("cannot set up the sweep of media files: %w", err)
	}
	return nil
}

// Reconcile does the next step for one Media.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	var m v1alpha1.Media
	if err := r.Client.Get(ctx, req.NamespacedName, &m); apierrors.IsNotFound(err) {
		return reconcile.Result{}, nil
	} else if err != nil {
		return reconcile.Result{}, fmt.Errorf("cannot read the media file: %w", err)
	}
	again, err := r.sync(ctx, &m)
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: conflictPause}, nil
	case apierrors.IsNotFound(err): // It went in the meantime.
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	default:
		return reconcile.Result{RequeueAfter: again}, nil
	}
}

// sync decides by what is recorded, and does one thing. It returns when to look again;
// zero means when something changes.
func (r *Reconciler) sync(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	if !m.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, m)
	}
	if m.Status.Phase == v1alpha1.MediaPending || m.Status.Phase == "" {
		owned, err := r.Owned(ctx, m.Namespace)
		if err != nil {
			return 0, err
		}
		if !owned {
			return r.reportUnowned(ctx, m)
		}
	}
	if err := r.ensureFinalizer(ctx, m); err != nil {
		return 0, err
	}
	switch m.Status.Phase {
	case v1alpha1.MediaUploaded:
		return r.syncUploaded(ctx, m)
	case v1alpha1.MediaRejected, v1alpha1.MediaExpired:
		return 0, r.cleanUpEnded(ctx, m)
	case v1alpha1.MediaPending, "":
	}
	if m.Spec.Source != nil {
		return r.fetch(ctx, m)
	}
	return r.checkUpload(ctx, m)
}

// ensureFinalizer puts the finalizer on, before there can be a file, and notes the file's key in the
// same write: a backup keeps that. A key that came with a backup stays.
func (r *Reconciler) ensureFinalizer(ctx context.Context, m *v1alpha1.Media) error {
	before := m.DeepCopy()
	held, noted := controllerutil.AddFinalizer(m, v1alpha1.MediaFileFinalizer), m.Annotations[v1alpha1.FileAnnotation] == store.Key(m)
	if !held && noted {
		return nil
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.FileAnnotation, store.Key(m))
	if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot put the finalizer on the media file: %w", err)
	}
	return nil
}

// syncUploaded handles a verified file: it notices when posts begin to use it, and checks once
// more whether it was overwritten. That the installation has no store any more, or has one
// again, shows at the start of the manager.
func (r *Reconciler) syncUploaded(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	before := m.Status.DeepCopy()
	if r.Store.Absent() {
		r.describe(m, v1alpha1.MediaUploaded, conditions.Stuck, v1alpha1.ReasonStoreUnavailable, noStore)
		return 0, r.pruneStatus(ctx, m, before)
	}
	due, in := recheckDue(m, r.Clock.Now())
	if due || isWithoutStore(m) {
		if err := r.compare(ctx, m); err != nil {
			return 0, err
		}
		if m.Status.Phase != v1alpha1.MediaUploaded {
			return 0, r.conclude(ctx, m, before)
		}
	}
	return in, r.pruneStatus(ctx, m, before)
}

// cleanUpEnded handles a Media whose wait is over without a file.
func (r *Reconciler) cleanUpEnded(ctx context.Context, m *v1alpha1.Media) error {
	if err := r.drop(ctx, m); err != nil {
		return err
	}
	return r.pruneStatus(ctx, m, m.Status.DeepCopy())
}

// pruneStatus removes from the status what no longer holds: the upload address, and
// unusedSince if a post uses the Media. Only the sweep sets unusedSince, since a
// finished post may use the Media.
func (r *Reconciler) pruneStatus(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) error {
	m.Status.UploadURL, m.Status.UploadURLExpiresAt = "", nil
	if m.Status.UnusedSince != nil {
		used, err := r.inUse(ctx, m)
		if err != nil {
			return err
		}
		if used {
			m.Status.UnusedSince = nil
		}
	}
	return r.write(ctx, m, before)
}

// conclude writes a new phase, and deletes a file that is of no use.
func (r *Reconciler) conclude(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) error {
	m.Status.UploadURL, m.Status.UploadURLExpiresAt = "", nil
	used, err := r.inUse(ctx, m)
	if err != nil {
		return err
	}
	if !used && before.Phase != v1alpha1.MediaUploaded {
		m.Status.UnusedSince = v1alpha1.NewTimePtr(r.Clock.Now())
	}
	if err := r.write(ctx, m, before); err != nil {
		return err
	}
	r.Metrics.concluded(m.Status.Phase)
	if m.Status.Phase == v1alpha1.MediaUploaded {
		return nil
	}
	return r.drop(ctx, m)
}

// describe writes a phase, and why, into the status of a Media. Only a file that is
// settled is ready.
func (r *Reconciler) describe(m *v1alpha1.Media, phase v1alpha1.MediaPhase, progress conditions.Progress, reason, message string) {
	m.Status.Phase, m.Status.ObservedGeneration = phase, m.Generation
	conditions.Apply(&m.Status.Conditions, conditions.Summary{
		Ready: progress == conditions.Settled, Reason: reason, Message: message, Progress: progress,
	}, m.Generation, r.Clock.Now())
}

// write stores the status under the resourceVersion that was read: the apiserver
// verifies uploads too, and the one that comes second looks again.
func (r *Reconciler) write(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeWithin)
	defer cancel()
	return r.status.Report(ctx, m, before, &m.Status)
}
