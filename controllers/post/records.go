// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// Records is where the records of posts are kept.
type Records struct {
	// Archive holds them.
	Archive *archive.Archive
	// Owner returns the Team of a namespace, nil if there is none. A record belongs to its
	// Team: in a namespace without one none is kept.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// List enters a finished post that is being deleted, and whose record is kept, in the lists
	// of its team, so that it can be found until its time is over; nil enters none.
	List func(ctx context.Context, post *v1alpha1.Post) error
	// Again is how soon it is tried again to keep the record of a post that is being deleted
	// (default 15 s).
	Again time.Duration
}

const (
	// promiseEnds is how long a deleted post waits for a store that does not answer. Then it
	// goes without a record.
	promiseEnds = time.Hour
	// defaultAgain is the default of Records.Again.
	defaultAgain = 15 * time.Second
)

// waiting says that a post that is being deleted stays until its record is kept.
type waiting struct {
	pause time.Duration
	why   error
}

func (w *waiting) Error() string { return "waiting for the record to be kept: " + w.why.Error() }

func (w *waiting) Unwrap() error { return w.why }

// letGo takes the finalizer off a post that is being deleted. Every way of a post out of
// the cluster leads through here: what was, or may have been, published leaves a record
// first. While that cannot be kept the post stays, and the error is a waiting. Where the
// namespace goes too, or the store is away for an hour, it goes without.
func (r *Reconciler) letGo(ctx context.Context, post *v1alpha1.Post) error {
	if record.Needed(post) || r.records.holdsKey(post) {
		if err := r.records.keepOrGiveUp(ctx, post); err != nil {
			return err
		}
		if err := r.records.listOrGiveUp(ctx, post); err != nil {
			return err
		}
	}
	r.o.Failpoint(PointBeforeRelease)
	return removeFinalizer(ctx, r.o.Client, post)
}

// hold puts the finalizer on a post that must leave a record, or whose Idempotency-Key outlives
// it, and has none: `herald release` or a person has taken it off, or a person is asked about a
// post for which this object never claimed a call. It reports whether it did, which wakes the post again. What
// was armed is not armed again: a copy from a backup is still known by its annotation.
func (r *Reconciler) hold(ctx context.Context, p *pass) (held bool, err error) {
	if !p.post.DeletionTimestamp.IsZero() || p.post.Status.Finished || !record.Needed(p.post) && !r.records.holdsKey(p.post) {
		return false, nil
	}
	base := p.post.DeepCopy()
	if !controllerutil.AddFinalizer(p.post, v1alpha1.DeliveryFinalizer) {
		return false, nil
	}
	if err := r.o.Client.Patch(ctx, p.post, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); err != nil {
		return false, fmt.Errorf("cannot put the finalizer on a post that is being delivered: %w", err)
	}
	p.wrote = true
	return true, nil
}

// KeepRecord keeps the record of a finished post as it stands. It is for those who delete
// the post: they go another way than through its deletion.
func (r *Reconciler) KeepRecord(ctx context.Context, post *v1alpha1.Post) error {
	return r.records.keep(ctx, post)
}

// records keeps the records of posts, and finds those of earlier ones.
type records struct {
	o        *Options
	recorder *recorder
	archiver *archiver

	mu sync.Mutex
	// away is since when the store has not answered; zero while it does.
	away time.Time
	// unkept are the posts whose record could not be kept when it was tried last.
	unkept map[types.NamespacedName]bool
}

func newRecords(o *Options, events *recorder) *records {
	rs := &records{o: o, recorder: events, unkept: map[types.NamespacedName]bool{}}
	if o.Records != nil && !o.Records.Archive.Absent() {
		rs.archiver = newArchiver(rs)
	}
	return rs
}

// tried remembers whether the record of a post waits for the store.
func (rs *records) tried(post types.NamespacedName, waits bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if waits {
		rs.unkept[post] = true
	} else {
		delete(rs.unkept, post)
	}
}

// countUnkept adds the posts whose record waits for the store.
func (rs *records) countUnkept(to map[[2]string]int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for post := range rs.unkept {
		to[[2]string{post.Namespace, forRecord}]++
	}
}

// team returns whose record a post has; false if none is kept. A Team that is being deleted
// has its records until they are cleared.
func (rs *records) team(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
	owner, err := rs.owner(ctx, namespace)
	if owner == nil {
		return archive.Team{}, false, err
	}
	return archive.Team{Namespace: namespace, Name: owner.Name}, true, nil
}

// owner is the Team of a namespace; nil if there is none, or nothing is kept here.
func (rs *records) owner(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
	if rs.archiver == nil {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	return rs.o.Records.Owner(ctx, namespace)
}

// keeper returns under whose name the record of a post is written; false if none is to be,
// also since the Team is being deleted: its records go with it.
func (rs *records) keeper(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
	owner, err := rs.owner(ctx, namespace)
	if owner == nil || !owner.DeletionTimestamp.IsZero() {
		return archive.Team{}, false, err
	}
	return archive.Team{Namespace: namespace, Name: owner.Name}, true, nil
}

// keep writes the record of a post, joined with that of an earlier one; of a post of which
// nothing was sent, the request that created it.
func (rs *records) keep(ctx context.Context, post *v1alpha1.Post) error {
	if !record.Needed(post) {
		return rs.keepRequest(ctx, post)
	}
	team, kept, err := rs.keeper(ctx, post.Namespace)
	if err != nil || !kept {
		return err
	}
	account, err := rs.accounts(ctx, post)
	if err != nil {
		return err
	}
	own := record.Of(post, team.Name, account)
	rs.o.Failpoint(PointBeforeKeep)
	err = rs.o.Records.Archive.Put(ctx, team, post.Name, func(before []byte) ([]byte, error) {
		if before == nil {
			return own.Encode()
		}
		was, err := record.Decode(before)
		if err != nil {
			return nil, &unreadable{fmt.Errorf("the record of post %q cannot be joined with the one that is there: %w", post.Name, err)}
		}
		return own.Succeed(was).Encode()
	})
	rs.note(err)
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	rs.o.Failpoint(PointAfterKeep)
	return rs.takeBack(ctx, team, post.Name)
}

// takeBack removes a record whose Team was deleted while it was written: what clears the
// Team's records may have passed it by, and nobody would find it. The caches of this process
// tell, which those who clear the records go by too.
func (rs *records) takeBack(ctx context.Context, team archive.Team, name string) error {
	_, kept, err := rs.keeper(ctx, team.Namespace)
	if err != nil || kept {
		return err
	}
	return rs.o.Records.Archive.Delete(ctx, team, name) //nolint:wrapcheck // it says what was being done
}

// unreadable says that the store answers, and that what lies there is no record.
type unreadable struct{ error }

// note takes whether the store answers.
func (rs *records) note(err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case err == nil || errors.As(err, new(*unreadable)) || errors.Is(err, archive.ErrNotFound):
		rs.away = time.Time{}
	case rs.away.IsZero():
		rs.away = rs.o.Clock.Now()
	}
}

// awayFor is how long the store has not answered.
func (rs *records) awayFor() time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.away.IsZero() {
		return 0
	}
	return rs.o.Clock.Since(rs.away)
}

// accounts tells the accounts of the Connections that a post names.
func (rs *records) accounts(ctx context.Context, post *v1alpha1.Post) (record.Account, error) {
	found := map[string]*v1alpha1.Connection{}
	for i := range post.Spec.Targets {
		name := post.Spec.Targets[i].ConnectionRef.Name
		if _, ok := found[name]; ok {
			continue
		}
		conn := &v1alpha1.Connection{}
		err := rs.o.Client.Get(ctx, client.ObjectKey{Namespace: post.Namespace, Name: name}, conn)
		switch {
		case apierrors.IsNotFound(err):
			conn = nil
		case err != nil:
			return nil, fmt.Errorf("cannot read connection %q: %w", name, err)
		}
		found[name] = conn
	}
	return func(connection string) (v1alpha1.Platform, string, bool) {
		conn := found[connection]
		if conn == nil {
			return "", "", false
		}
		return conn.Spec.Platform, conn.Spec.AccountID, true
	}, nil
}

// keepOrGiveUp keeps the record of a post that is being deleted. It returns a waiting while
// that is to be tried again, and nil once the post may go.
func (rs *records) keepOrGiveUp(ctx context.Context, post *v1alpha1.Post) error {
	// Thousands of posts of one namespace do not wait one after another for what is away.
	ends, err := rs.endsWhileAway(ctx, post.Namespace)
	if err == nil {
		err = rs.keep(ctx, post)
	}
	key := client.ObjectKeyFromObject(post)
	rs.tried(key, err != nil)
	if err == nil {
		return nil
	}
	if !ends {
		var problem error
		if ends, problem = rs.namespaceEnds(ctx, post.Namespace); problem != nil {
			return errors.Join(err, problem)
		}
	}
	since := rs.o.Clock.Since(post.DeletionTimestamp.Time)
	late := since >= promiseEnds && (errors.As(err, new(*unreadable)) || rs.awayFor() >= promiseEnds)
	log := ctrl.Log.WithName("records")
	if !ends && !late {
		log.Info("a deleted post waits for its record to be kept", "namespace", post.Namespace, "name", post.Name, "uid", post.UID, "error", err.Error())
		rs.recorder.warn(post, v1alpha1.ReasonRecordUnavailable, fmt.Sprintf(
			"the post stays until the record that keeps it from being published twice is in the store of media files, for an hour at most: %v", err))
		return &waiting{pause: cmp.Or(rs.o.Records.Again, defaultAgain), why: err}
	}
	log.Error(err, "a post goes without a record: it is published again if it is created again", "namespace", post.Namespace, "name", post.Name, "uid", post.UID)
	rs.recorder.recordAbandoned(post, ends)
	rs.tried(key, false)
	rs.o.Metrics.abandoned.WithLabelValues(post.Namespace).Inc()
	return nil
}

// listOrGiveUp enters a finished post that is being deleted in the lists of its team. It returns
// a waiting while that is to be tried again, for as long as a record is tried to be kept.
func (rs *records) listOrGiveUp(ctx context.Context, post *v1alpha1.Post) error {
	if rs.archiver == nil || rs.o.Records.List == nil || !post.Status.Finished {
		return nil
	}
	err := rs.o.Records.List(ctx, post)
	if err == nil {
		return nil
	}
	ends, problem := rs.namespaceEnds(ctx, post.Namespace)
	if problem != nil {
		return errors.Join(err, problem)
	}
	log := ctrl.Log.WithName("records")
	if !ends && rs.o.Clock.Since(post.DeletionTimestamp.Time) < promiseEnds {
		log.Info("a deleted post waits for its place in the lists", "namespace", post.Namespace, "name", post.Name, "uid", post.UID, "error", err.Error())
		return &waiting{pause: cmp.Or(rs.o.Records.Again, defaultAgain), why: err}
	}
	log.Error(err, "a deleted post is in no list from now on: it can be read by its id", "namespace", post.Namespace, "name", post.Name, "uid", post.UID)
	return nil
}

// endsWhileAway reports, with an error, that a namespace is being deleted while the store is
// known not to answer: it is not asked again for each post.
func (rs *records) endsWhileAway(ctx context.Context, namespace string) (bool, error) {
	if rs.awayFor() == 0 {
		return false, nil
	}
	ends, err := rs.namespaceEnds(ctx, namespace)
	if err == nil && ends {
		err = errAway
	}
	return ends, err
}

// errAway is why no record is kept of a post whose namespace goes.
var errAway = errors.New("the store did not answer a moment ago")

// namespaceEnds reports whether a namespace is being deleted.
func (rs *records) namespaceEnds(ctx context.Context, name string) (bool, error) {
	namespace := metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	err := rs.o.APIReader.Get(ctx, client.ObjectKey{Name: name}, &namespace)
	switch {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("cannot read namespace %q: %w", name, err)
	}
	return !namespace.DeletionTimestamp.IsZero(), nil
}

// find asks the archive what became of an earlier post of the name.
func (rs *records) find(ctx context.Context, p *pass, f *delivery.Facts) {
	if p.memory.earlier != nil {
		f.Earlier = *p.memory.earlier
		return
	}
	team, kept, err := rs.team(ctx, p.key.Namespace)
	switch {
	case err != nil:
		f.Earlier = delivery.Earlier{State: delivery.EarlierUnavailable, Problem: err.Error()}
		return
	case !kept:
		f.Earlier = delivery.Earlier{State: delivery.EarlierNotKept}
		return
	}
	p.asked = true
	data, err := rs.o.Records.Archive.Get(ctx, team, p.key.Name)
	rs.note(err)
	found := delivery.Earlier{State: delivery.EarlierKept}
	if err == nil {
		found.Record, err = record.Decode(data)
	}
	if err != nil && !errors.Is(err, archive.ErrNotFound) {
		p.log.Error(err, "cannot look up an earlier post of this name", "uid", p.post.UID)
		f.Earlier = delivery.Earlier{State: delivery.EarlierUnavailable, Problem: storeProblem}
		return
	}
	p.memory.earlier = &found
	f.Earlier = found
}

// storeProblem is what a status says of a store that does not answer. It is the same at
// each try: the log has the error.
const storeProblem = "the store of media files does not answer, or what it holds is no record (the manager's log has the error)"
