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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting"
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
	// RetryPause is how soon it is tried again to keep the record of a post that is being deleted
	// (default 15 s).
	RetryPause time.Duration
	// Underway is how long a post is under way before a record of it is kept as it stands
	// (default 1 min).
	Underway time.Duration
}

// defaultRetryPause is the default of Records.Again.
const defaultRetryPause = 15 * time.Second

// waitError says that a post that is being deleted stays until its record is kept.
type waitError struct {
	pause time.Duration
	why   error
}

func (w *waitError) Error() string { return "waiting for the record to be kept: " + w.why.Error() }

func (w *waitError) Unwrap() error { return w.why }

// releaseFinalizer takes the finalizer off a post that is being deleted. Every way of a post out of
// the cluster leads through here: what was, or may have been, published leaves a record
// first. While that cannot be kept, or what comes back would not be looked up, the post stays,
// and the error is a waiting. Where the namespace goes too, or its record could not be kept for an
// hour, since the store is away or refuses this one, it goes without.
func (r *Reconciler) releaseFinalizer(ctx context.Context, post *v1alpha1.Post) error {
	if record.Required(post) || r.records.hasIdempotencyKey(post) {
		if err := r.records.requireMinAge(ctx, post); err != nil {
			return err
		}
		if err := r.records.saveOrGiveUp(ctx, post); err != nil {
			return err
		}
		if err := r.records.listOrGiveUp(ctx, post); err != nil {
			return err
		}
	}
	r.o.Failpoint(PointBeforeRelease)
	return removeFinalizer(ctx, r.o.Client, post)
}

// errYoung is why a post that came through the API and was deleted within seconds stays for
// some more.
var errYoung = errors.New("an object that took its place now could not be told from it")

// requireMinAge returns a waiting while an object that takes the place of a post would not be
// looked up, since it would seem to be the one that the API has made.
func (rs *records) requireMinAge(ctx context.Context, post *v1alpha1.Post) error {
	pause := posting.RecreatedVisibleFrom(post, rs.o.ClockMargin).Sub(rs.o.Clock.Now())
	if pause <= 0 || rs.archiver == nil || !record.Required(post) {
		return nil
	}
	// Nothing is created in a namespace that goes.
	if ends, err := rs.namespaces.isTerminating(ctx, post.Namespace); err != nil || ends {
		return err
	}
	return &waitError{pause: pause, why: errYoung}
}

// ErrNotRecorded is that no record of a post is kept: its namespace has no Team, that is being
// deleted, or there is no bucket.
var ErrNotRecorded = errors.New("no record is kept, since no Team owns the namespace, the Team is being deleted, or there is no bucket")

// SaveRecord keeps the record of a finished post as it stands. It is for those who delete
// the post, and must not where the error is ErrNotRecorded: they go another way than through its
// deletion.
func (r *Reconciler) SaveRecord(ctx context.Context, post *v1alpha1.Post) error {
	kept, err := r.records.save(ctx, post)
	if err == nil && !kept {
		err = fmt.Errorf("post %s/%s: %w", post.Namespace, post.Name, ErrNotRecorded)
	}
	return err
}

// records keeps the records of posts, and finds those of earlier ones.
type records struct {
	o        *Options
	recorder *recorder
	archiver *archiver

	breaker    *storeBreaker
	namespaces *namespaceCache

	mu sync.Mutex
	// writeFailures says whether no record can be written, whether or not the store answers.
	writeFailures evidence
	// unsaved are the posts whose record could not be kept when it was tried last.
	unsaved map[types.NamespacedName]bool
	// blockedSince are those that are being deleted, and since when their record cannot be kept.
	blockedSince map[types.UID]time.Time
}

func newRecords(o *Options, events *recorder) *records {
	rs := &records{o: o, recorder: events, breaker: &storeBreaker{clock: o.Clock}, namespaces: newNamespaceCache(o), unsaved: map[types.NamespacedName]bool{}, blockedSince: map[types.UID]time.Time{}}
	if o.Records != nil && !o.Records.Archive.Absent() {
		rs.archiver = newArchiver(rs)
	}
	return rs
}

// trackSave remembers whether the record of a post waits for the store.
func (rs *records) trackSave(post types.NamespacedName, waits bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if waits {
		rs.unsaved[post] = true
	} else {
		delete(rs.unsaved, post)
	}
}

// blockedFor is for how long a post that is being deleted has stayed by now since its record cannot be kept.
func (rs *records) blockedFor(post types.UID) time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := rs.o.Clock.Now()
	if _, known := rs.blockedSince[post]; !known {
		rs.blockedSince[post] = now
	}
	return now.Sub(rs.blockedSince[post])
}

// forgetDeletion forgets a post that goes.
func (rs *records) forgetDeletion(post types.UID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.blockedSince, post)
}

// countUnsaved adds the posts whose record waits for the store.
func (rs *records) countUnsaved(to map[[2]string]int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for post := range rs.unsaved {
		to[[2]string{post.Namespace, forRecord}]++
	}
}

// readableTeam returns whose record a post has; false if none is kept. A Team that is being deleted
// has its records until they are cleared.
func (rs *records) readableTeam(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
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

// writableTeam returns under whose name the record of a post is written; false if none is to be,
// also since the Team is being deleted: its records go with it.
func (rs *records) writableTeam(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
	owner, err := rs.owner(ctx, namespace)
	if owner == nil || !owner.DeletionTimestamp.IsZero() {
		return archive.Team{}, false, err
	}
	return archive.Team{Namespace: namespace, Name: owner.Name}, true, nil
}

// save writes the record of a post, joined with that of an earlier one; of a post of which
// nothing was sent, the request that created it. It reports whether there is one now.
func (rs *records) save(ctx context.Context, post *v1alpha1.Post) (kept bool, err error) {
	team, kept, err := rs.writableTeam(ctx, post.Namespace)
	if err != nil || !kept {
		return false, err
	}
	written := rs.o.Records.Archive.TrackWrite(team)
	defer written()
	if _, kept, err = rs.writableTeam(ctx, post.Namespace); err != nil || !kept {
		return false, err // It was deleted before that was said.
	}
	if !record.Required(post) {
		return true, rs.saveRequest(ctx, team, post)
	}
	account, err := rs.accounts(ctx, post)
	if err != nil {
		return false, err
	}
	own := record.New(post, team.Name, account)
	rs.o.Failpoint(PointBeforeKeep)
	join := func(before []byte) ([]byte, error) {
		if before == nil {
			return own.Encode()
		}
		was, err := record.Decode(before)
		if err != nil {
			return nil, &unreadable{fmt.Errorf("the record of post %q cannot be joined with the one that is there: %w", post.Name, err)}
		}
		return own.Merge(was).Encode()
	}
	key := client.ObjectKeyFromObject(post)
	err = rs.breaker.execute(key, func() error { return rs.o.Records.Archive.Put(ctx, team, post.Name, join) })
	rs.observeWrite(key, err)
	if err != nil {
		return false, err
	}
	rs.o.Failpoint(PointAfterKeep)
	return rs.removeOrphaned(ctx, team, post.Name)
}

// observeWrite takes whether the record of a post could be written. That it could be read by others says nothing
// of that: a full bucket answers, and one whose policy allows no writes any more.
func (rs *records) observeWrite(post types.NamespacedName, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case err == nil:
		rs.writeFailures = evidence{}
	case errors.Is(err, errStoreUnavailable), errors.Is(err, context.Canceled), isRecordError(err): // That says nothing of other records.
	default:
		rs.writeFailures.recordFailure(post, rs.o.Clock.Now())
	}
}

// unwritableFor is for how long no record could be written; zero while they can.
func (rs *records) unwritableFor() time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.writeFailures.duration(rs.o.Clock)
}

// removeOrphaned removes a record whose Team was deleted while it was written: what clears the
// Team's records may have passed it by, and nobody would find it. The caches of this process
// tell, which those who clear the records go by too. It reports whether the record is left.
func (rs *records) removeOrphaned(ctx context.Context, team archive.Team, name string) (kept bool, err error) {
	_, kept, err = rs.writableTeam(ctx, team.Namespace)
	if err != nil || kept {
		return kept, err
	}
	return false, rs.o.Records.Archive.Delete(ctx, team, name) //nolint:wrapcheck // it says what was being done
}

// unreadable says that the store answers, and that what lies there is no record.
type unreadable struct{ error }

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

// saveOrGiveUp keeps the record of a post that is being deleted. It returns a waiting while
// that is to be tried again, and nil once the post may go.
func (rs *records) saveOrGiveUp(ctx context.Context, post *v1alpha1.Post) error {
	_, err := rs.save(ctx, post)
	key := client.ObjectKeyFromObject(post)
	rs.trackSave(key, err != nil)
	if err == nil {
		rs.forgetDeletion(post.UID)
		return nil
	}
	ends, problem := rs.namespaces.isTerminating(ctx, post.Namespace)
	if problem != nil {
		return errors.Join(err, problem)
	}
	since := rs.o.Clock.Since(post.DeletionTimestamp.Time)
	fails := max(rs.breaker.openFor(), rs.unwritableFor(), rs.blockedFor(post.UID))
	late := since >= record.WriteTimeout && (errors.As(err, new(*unreadable)) || fails >= record.WriteTimeout)
	log := ctrl.Log.WithName("records")
	if !ends && !late {
		level := 0
		if errors.Is(err, errStoreUnavailable) {
			level = 1 // Whoever asked has said why.
		}
		log.V(level).Info("a deleted post waits for its record to be kept", "namespace", post.Namespace, "name", post.Name, "uid", post.UID, "error", err.Error())
		rs.recorder.warn(postSubject(post), v1alpha1.ReasonRecordUnavailable, fmt.Sprintf(
			"the post stays until the record that keeps it from being published twice is in the store of media files, for an hour at most: %v", err))
		return &waitError{pause: cmp.Or(rs.o.Records.RetryPause, defaultRetryPause), why: err}
	}
	log.Error(err, "a post goes without a record: it is published again if it is created again", "namespace", post.Namespace, "name", post.Name, "uid", post.UID)
	rs.recorder.recordAbandoned(post, ends)
	rs.trackSave(key, false)
	rs.forgetDeletion(post.UID)
	rs.o.Metrics.abandoned.WithLabelValues(post.Namespace).Inc()
	return nil
}

// mustWait reports whether it is known without a try that a post, deleted at a time, cannot go
// yet: the store is away, and neither its hour is over nor does its namespace go.
func (rs *records) mustWait(ctx context.Context, namespace string, deleted time.Time) bool {
	if !rs.breaker.isOpen() || rs.o.Clock.Since(deleted) >= record.WriteTimeout {
		return false
	}
	ends, err := rs.namespaces.isTerminating(ctx, namespace)
	return err == nil && !ends
}

// listOrGiveUp enters a finished post that is being deleted in the lists of its team. It returns
// a waiting while that is to be tried again, for as long as a record is tried to be kept.
func (rs *records) listOrGiveUp(ctx context.Context, post *v1alpha1.Post) error {
	if rs.archiver == nil || rs.o.Records.List == nil || !post.Status.Finished {
		return nil
	}
	err := errStoreUnavailable
	if !rs.breaker.isOpen() {
		err = rs.o.Records.List(ctx, post)
	}
	if err == nil {
		return nil
	}
	ends, problem := rs.namespaces.isTerminating(ctx, post.Namespace)
	if problem != nil {
		return errors.Join(err, problem)
	}
	log := ctrl.Log.WithName("records")
	late := rs.o.Clock.Since(post.DeletionTimestamp.Time) >= record.WriteTimeout && (!errors.Is(err, errStoreUnavailable) || rs.breaker.openFor() >= record.WriteTimeout)
	if !ends && !late {
		log.Info("a deleted post waits for its place in the lists", "namespace", post.Namespace, "name", post.Name, "uid", post.UID, "error", err.Error())
		return &waitError{pause: cmp.Or(rs.o.Records.RetryPause, defaultRetryPause), why: err}
	}
	log.Error(err, "a deleted post is in no list from now on: it can be read by its id", "namespace", post.Namespace, "name", post.Name, "uid", post.UID)
	return nil
}
