// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package media maintains media files. It verifies uploads, fetches files that have a source, expires files that never
// arrive, deletes Media that no post uses, and makes sure that no file outlives its Media.
//
// A Media has a finalizer, so that its file is deleted first. If a file arrives after its Media is gone, the sweep
// finds it.
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
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/pacing"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/posting/retention"
)

// +kubebuilder:rbac:groups=social.herald.dev,resources=media,verbs=get;list;watch;update;patch;delete
// +kubebuilder:rbac:groups=social.herald.dev,resources=media/status,verbs=get;update;patch
// +kubebuilder:rbac:groups=social.herald.dev,resources=posts,verbs=get;list;watch
// +kubebuilder:rbac:groups=social.herald.dev,resources=teams,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=get
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

const (
	// conflictPause is the requeue delay after a conflict. In the meantime, the watch delivers the other change.
	conflictPause = time.Second
	// writeTimeout is the timeout for a status write, which completes even during shutdown.
	writeTimeout = 10 * time.Second
)

// Store stores the files; *store.Store implements it.
type Store interface {
	PresignPut(ctx context.Context, key, mimeType string, size int64) (url string, expires time.Time, err error)
	Stat(ctx context.Context, key string) (store.Object, error)
	Put(ctx context.Context, key, mimeType string, size int64, body io.Reader) (store.Object, error)
	DeleteAll(ctx context.Context, key string) error
	List(ctx context.Context, prefix string) iter.Seq2[store.Object, error]
	AbandonParts(ctx context.Context, prefix string, selected func(key string, begun time.Time) bool) error
	// Absent reports whether the installation has no store.
	Absent() bool
}

// Source downloads files; *fetch.Client implements it.
type Source interface {
	Get(ctx context.Context, address string, want fetch.Expected, take func(ctx context.Context, size int64, body io.Reader) error) error
}

// Requests stores requests whose objects are gone; *archive.Archive implements it.
type Requests interface {
	PutRequest(ctx context.Context, team archive.Team, name string, r archive.Request) error
}

// Options configures the Reconciler. All fields are required unless their comment gives a default.
type Options struct {
	// Client reads from a cache with the indexes of SetupWithManager, and writes to the API server.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Store stores the files.
	Store Store
	// Verify examines the file of a Media and returns the resulting status: uploaded or rejected. It returns
	// store.ErrNotFound if there is no file, and store.ErrChanged if the file keeps being overwritten.
	Verify func(ctx context.Context, m *v1alpha1.Media) (v1alpha1.MediaStatus, error)
	// Source downloads the files of Media that have a source.
	Source Source
	// UnusedAfter is how long an unused file is kept. An upload URL in the status is renewed for the same length of time.
	UnusedAfter time.Duration
	// Retention returns how long a rejected Media is kept: as long as a finished post.
	Retention retention.Policy
	// MayDelete returns an error if files that another cluster may have stored must not be deleted, and
	// *installation.ForeignBucketError if the bucket belongs to another cluster. A file stored for one of this cluster's
	// Media is deleted with the Media regardless. If nil, everything may be deleted.
	MayDelete func(ctx context.Context) error
	// Namespaces are the namespaces that this installation serves. Files of other namespaces are kept in the store.
	Namespaces configv1alpha1.Namespaces
	// Owned reports whether a team owns a namespace. Files are not accepted in other namespaces.
	Owned func(ctx context.Context, namespace string) (bool, error)
	// Owner returns a namespace's team, whose budget limits pending files, or nil. If Owner is nil, there is no limit.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// MakeSmall makes the small picture that lists show for a verified file. If nil, none are made.
	MakeSmall func(ctx context.Context, m *v1alpha1.Media) error
	// Requests stores the requests with an Idempotency-Key whose Media were deleted. If nil, none are stored.
	Requests Requests
	// Clock is the clock of the process.
	Clock clock.WithTicker
	// Events records the events of Media. If nil, none are emitted.
	Events events.EventRecorder
	// Metrics counts uploads, fetches and removals. If nil, nothing is counted.
	Metrics *Metrics
	// MaxConcurrentReconciles limits the Media reconciled concurrently, which mostly wait for the store (default 16).
	// MaxFetches limits concurrent fetches (default 8), so that workers remain for uploads.
	MaxConcurrentReconciles int
	MaxFetches              int
}

// Reconciler reconciles media files.
type Reconciler struct {
	Options

	status       conditions.Reporter
	fetchSlots   *fetchSlots
	reservations *reservations
	references   references
	files        *fileDeleter
	finalizer    *finalizer
}

// New returns a Reconciler. It returns an error if a required option is missing.
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
	o.Events = conditions.NewEventRecorder(o.Events, o.Client.Scheme(), o.Clock)
	files := &fileDeleter{client: o.Client, store: o.Store, mayDelete: o.MayDelete}
	return &Reconciler{
		Options: o, fetchSlots: newFetchSlots(cmp.Or(o.MaxFetches, 8), o.Clock), references: references{client: o.Client, apiReader: o.APIReader}, files: files,
		reservations: &reservations{client: o.Client, clock: o.Clock, owner: o.Owner, byMedia: map[types.NamespacedName]reservation{}},
		finalizer: &finalizer{
			client: o.Client, apiReader: o.APIReader, clock: o.Clock, files: files, requests: o.Requests, owner: o.Owner, events: o.Events,
		},
		status: conditions.Reporter{
			Client: o.Client, Clock: o.Clock, Events: o.Events, Action: "Reconcile",
			Normal: []string{v1alpha1.ReasonUploaded, v1alpha1.ReasonAwaitingUpload, v1alpha1.ReasonFetching, v1alpha1.ReasonBudgetLimit},
		},
	}, nil
}

// SetupWithManager adds the reconciler and its sweep to a manager. A Media is reconciled when it changes, when a post
// that refers to it is created or deleted, when a Team acquires its namespace, and on a schedule. The manager's cache
// needs the index kubeclient.MediaIndex.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Media{}, pendingIndex, pending); err != nil {
		return fmt.Errorf("cannot index the pending media files: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &v1alpha1.Media{}, fileIndex, fileKeys); err != nil {
		return fmt.Errorf("cannot index media files by their key: %w", err)
	}
	err := ctrl.NewControllerManagedBy(mgr).
		For(&v1alpha1.Media{}).
		Watches(&v1alpha1.Post{}, mediaOf(), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&v1alpha1.Team{}, quota.InNamespace(r.Namespaces, r.Client, func() client.ObjectList { return &v1alpha1.MediaList{} }), builder.WithPredicates(quota.OwnershipChanged())).
		WithOptions(controller.Options{MaxConcurrentReconciles: cmp.Or(r.MaxConcurrentReconciles, 16), ReconciliationTimeout: pacing.MediaTimeout, RateLimiter: pacing.NewRateLimiter()}).
		WithLogConstructor(conditions.ControllerLogConstructor(mgr.GetLogger(), "media")).
		Complete(r)
	if err != nil {
		return fmt.Errorf("cannot set up the media controller: %w", err)
	}
	sweep := pacing.Sweep{
		Name: "media-sweep", Do: (&sweeper{Reconciler: r}).sweep, First: firstSweep, Every: sweepEvery, Within: pacing.SweepTimeout, Clock: r.Clock,
	}
	if err := mgr.Add(sweep); err != nil {
		return fmt.Errorf("cannot set up the sweep of media files: %w", err)
	}
	return nil
}

// Reconcile performs the next step for one Media.
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
	case apierrors.IsNotFound(err): // the Media was deleted in the meantime
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, err
	default:
		return reconcile.Result{RequeueAfter: again}, nil
	}
}

// sync performs the next step, depending on the status. It returns the requeue delay. Zero means that the next step
// waits for a change.
func (r *Reconciler) sync(ctx context.Context, m *v1alpha1.Media) (time.Duration, error) {
	if !m.DeletionTimestamp.IsZero() {
		return r.finalizer.finalize(ctx, m)
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

// ensureFinalizer adds the finalizer before there can be a file. The same write records the file's key in an
// annotation, which a backup preserves. A key restored from a backup is not overwritten.
func (r *Reconciler) ensureFinalizer(ctx context.Context, m *v1alpha1.Media) error {
	before := m.DeepCopy()
	added, recorded := controllerutil.AddFinalizer(m, v1alpha1.MediaFileFinalizer), m.Annotations[v1alpha1.FileAnnotation] == store.Key(m)
	if !added && recorded {
		return nil
	}
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, v1alpha1.FileAnnotation, store.Key(m))
	if err := r.Client.Patch(ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("cannot add the finalizer to the media file: %w", err)
	}
	return nil
}

// syncUploaded handles a verified file. It notices new posts that use the file, and checks once whether the file was
// overwritten. Removing the store from the configuration, or adding it again, takes effect after a restart.
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

func (r *Reconciler) cleanUpEnded(ctx context.Context, m *v1alpha1.Media) error {
	if err := r.files.drop(ctx, m); err != nil {
		return err
	}
	return r.pruneStatus(ctx, m, m.Status.DeepCopy())
}

// pruneStatus removes outdated fields from the status: the upload URL, and unusedSince if a post uses the Media. It
// does not set unusedSince, because a finished post may use the Media; the sweep reads finished posts and sets it.
func (r *Reconciler) pruneStatus(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) error {
	m.Status.UploadURL, m.Status.UploadURLExpiresAt = "", nil
	if m.Status.UnusedSince != nil {
		used, err := r.references.inUse(ctx, m)
		if err != nil {
			return err
		}
		if used {
			m.Status.UnusedSince = nil
		}
	}
	return r.write(ctx, m, before)
}

func (r *Reconciler) conclude(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) error {
	m.Status.UploadURL, m.Status.UploadURLExpiresAt = "", nil
	used, err := r.references.inUse(ctx, m)
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
		r.shrink(ctx, m)
		return nil
	}
	return r.files.drop(ctx, m)
}

// smallTimeout limits the time for a small picture, including the wait for a slot: posts' conversions come first.
const smallTimeout = 30 * time.Second

// shrink makes a file's small picture. Without it, lists show the original or a symbol.
func (r *Reconciler) shrink(ctx context.Context, m *v1alpha1.Media) {
	if r.MakeSmall == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, smallTimeout)
	defer cancel()
	if err := r.MakeSmall(ctx, m); err != nil {
		ctrllog.FromContext(ctx).Info("made no small picture of a media file", "namespace", m.Namespace, "name", m.Name, "reason", err.Error())
	}
}

// describe sets the phase and the conditions of a Media. Only a settled file is ready.
func (r *Reconciler) describe(m *v1alpha1.Media, phase v1alpha1.MediaPhase, progress conditions.Progress, reason, message string) {
	m.Status.Phase, m.Status.ObservedGeneration = phase, m.Generation
	conditions.Apply(&m.Status.Conditions, conditions.Summary{
		Ready: progress == conditions.Settled, Reason: reason, Message: message, Progress: progress,
	}, m.Generation, r.Clock.Now())
}

// write stores the status with optimistic concurrency, because the apiserver verifies uploads too.
func (r *Reconciler) write(ctx context.Context, m *v1alpha1.Media, before *v1alpha1.MediaStatus) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	return r.status.Report(ctx, m, before, &m.Status)
}
