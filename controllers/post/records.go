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

// Records configures the archive of records.
type Records struct {
	// Archive stores the records.
	Archive *archive.Archive
	// Owner returns the Team of a namespace, or nil without one. A record belongs to its Team, so a namespace without
	// one has no records.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// List adds a finished post to the lists of its team during its deletion, after its record was saved. The lists
	// make it available until its retention ends. If List is nil, there are no lists.
	List func(ctx context.Context, post *v1alpha1.Post) error
	// RetryPause is the pause between attempts to save the record of a post that is being deleted (default 15 s).
	RetryPause time.Duration
	// Underway is the delay before the record of an unfinished post is saved in its current state (default 1 min).
	Underway time.Duration
}

// defaultRetryPause is the default of Records.RetryPause.
const defaultRetryPause = 15 * time.Second

// waitError is returned while a post that is being deleted waits, usually for its record.
type waitError struct {
	pause time.Duration
	why   error
}

func (w *waitError) Error() string { return "waiting for the record to be kept: " + w.why.Error() }

func (w *waitError) Unwrap() error { return w.why }

// releaseFinalizer removes the finalizer of a post that is being deleted. Every deletion goes through it, since a post
// that was, or may have been, published must leave a record first. It returns a waitError while the record cannot be
// saved, or while a post that is created again would not be looked up. The post goes without a record if its namespace
// is being deleted too, or if the record could not be saved for an hour because the store is unavailable or rejects it.
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

// errYoung is the cause of the waitError for a post that came through the API and was deleted within seconds of its
// creation.
var errYoung = errors.New("an object that took its place now could not be told from it")

// requireMinAge returns a waitError while a replacement of the post would not be looked up, because it could not be
// distinguished from the object that the API has created.
func (rs *records) requireMinAge(ctx context.Context, post *v1alpha1.Post) error {
	pause := posting.RecreatedVisibleFrom(post, rs.o.ClockMargin).Sub(rs.o.Clock.Now())
	if pause <= 0 || rs.archiver == nil || !record.Required(post) {
		return nil
	}
	// Nothing can be created in a terminating namespace.
	if ends, err := rs.namespaces.isTerminating(ctx, post.Namespace); err != nil || ends {
		return err
	}
	return &waitError{pause: pause, why: errYoung}
}

// ErrNotRecorded is returned if a post has no record: its namespace has no Team, the Team is being deleted, or there is
// no bucket.
var ErrNotRecorded = errors.New("no record is kept, since no Team owns the namespace, the Team is being deleted, or there is no bucket")

// SaveRecord saves the record of a finished post in its current state, before the caller deletes the post. After
// ErrNotRecorded the caller must not delete it.
func (r *Reconciler) SaveRecord(ctx context.Context, post *v1alpha1.Post) error {
	kept, err := r.records.save(ctx, post)
	if err == nil && !kept {
		err = fmt.Errorf("post %s/%s: %w", post.Namespace, post.Name, ErrNotRecorded)
	}
	return err
}

// records saves the records of posts, and finds the records of earlier posts.
type records struct {
	o        *Options
	recorder *recorder
	archiver *archiver

	breaker    *storeBreaker
	namespaces *namespaceCache

	mu sync.Mutex
	// writeFailures is the evidence that no record can be written, even if the store answers reads.
	writeFailures evidence
	// unsaved holds the posts whose last save failed.
	unsaved map[types.NamespacedName]bool
	// blockedSince holds the time of the first failed save of each post that is being deleted.
	blockedSince map[types.UID]time.Time
}

func newRecords(o *Options, events *recorder) *records {
	rs := &records{o: o, recorder: events, breaker: &storeBreaker{clock: o.Clock}, namespaces: newNamespaceCache(o), unsaved: map[types.NamespacedName]bool{}, blockedSince: map[types.UID]time.Time{}}
	if o.Records != nil && !o.Records.Archive.Absent() {
		rs.archiver = newArchiver(rs)
	}
	return rs
}

// trackSave adds a post to unsaved, or removes it.
func (rs *records) trackSave(post types.NamespacedName, waits bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if waits {
		rs.unsaved[post] = true
	} else {
		delete(rs.unsaved, post)
	}
}

// blockedFor returns the time since the first failed save of a post that is being deleted.
func (rs *records) blockedFor(post types.UID) time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	now := rs.o.Clock.Now()
	if _, known := rs.blockedSince[post]; !known {
		rs.blockedSince[post] = now
	}
	return now.Sub(rs.blockedSince[post])
}

// forgetDeletion removes a released post from blockedSince.
func (rs *records) forgetDeletion(post types.UID) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	delete(rs.blockedSince, post)
}

// countUnsaved adds the number of unsaved posts to a snapshot.
func (rs *records) countUnsaved(to map[[2]string]int) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for post := range rs.unsaved {
		to[[2]string{post.Namespace, forRecord}]++
	}
}

// readableTeam returns the team whose archive is read for posts of a namespace; false if there is none. The records of
// a Team that is being deleted remain readable until they are cleared.
func (rs *records) readableTeam(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
	owner, err := rs.owner(ctx, namespace)
	if owner == nil {
		return archive.Team{}, false, err
	}
	return archive.Team{Namespace: namespace, Name: owner.Name}, true, nil
}

// owner returns the Team of a namespace, or nil if there is no Team or no archive.
func (rs *records) owner(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
	if rs.archiver == nil {
		return nil, nil //nolint:nilnil // absence is a valid answer
	}
	return rs.o.Records.Owner(ctx, namespace)
}

// writableTeam returns the team whose archive receives the record of a post; false if there is none. A Team that is
// being deleted receives no records, since they are cleared with it.
func (rs *records) writableTeam(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
	owner, err := rs.owner(ctx, namespace)
	if owner == nil || !owner.DeletionTimestamp.IsZero() {
		return archive.Team{}, false, err
	}
	return archive.Team{Namespace: namespace, Name: owner.Name}, true, nil
}

// save writes the record of a post, merged with the existing record. For a post that sent nothing it writes the request
// that created the post. It reports whether a record exists now.
func (rs *records) save(ctx context.Context, post *v1alpha1.Post) (kept bool, err error) {
	team, kept, err := rs.writableTeam(ctx, post.Namespace)
	if err != nil || !kept {
		return false, err
	}
	written := rs.o.Records.Archive.TrackWrite(team)
	defer written()
	if _, kept, err = rs.writableTeam(ctx, post.Namespace); err != nil || !kept {
		return false, err // The Team was deleted before the write was registered.
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

// observeWrite updates writeFailures with the result of a write. Successful reads are no evidence: a full bucket still
// answers them, and so does a bucket whose policy denies writes.
func (rs *records) observeWrite(post types.NamespacedName, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case err == nil:
		rs.writeFailures = evidence{}
	case errors.Is(err, errStoreUnavailable), errors.Is(err, context.Canceled), isRecordError(err): // These errors are no evidence about other records.
	default:
		rs.writeFailures.recordFailure(post, rs.o.Clock.Now())
	}
}

// unwritableFor returns how long record writes have been failing; zero if they succeed.
func (rs *records) unwritableFor() time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.writeFailures.duration(rs.o.Clock)
}

// removeOrphaned removes a record whose Team was deleted during the write: the cleanup of the Team's archive may have
// missed it, and nothing else would find it. It relies on the cached Team, as the cleanup does. It reports whether the
// record exists.
func (rs *records) removeOrphaned(ctx context.Context, team archive.Team, name string) (kept bool, err error) {
	_, kept, err = rs.writableTeam(ctx, team.Namespace)
	if err != nil || kept {
		return kept, err
	}
	return false, rs.o.Records.Archive.Delete(ctx, team, name) //nolint:wrapcheck // the error names the operation
}

// unreadable is the error for a record that the store returns, but that cannot be decoded.
type unreadable struct{ error }

// accounts returns a function that resolves the Connections of a post to their accounts.
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

// saveOrGiveUp saves the record of a post that is being deleted. It returns a waitError for a retry, and nil once the
// post may be released.
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
			level = 1 // The failed request has already been logged.
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

// mustWait reports, without a request, that a post with the given deletion time cannot be released yet: the store is
// unavailable, WriteTimeout has not passed, and the namespace is not being deleted.
func (rs *records) mustWait(ctx context.Context, namespace string, deleted time.Time) bool {
	if !rs.breaker.isOpen() || rs.o.Clock.Since(deleted) >= record.WriteTimeout {
		return false
	}
	ends, err := rs.namespaces.isTerminating(ctx, namespace)
	return err == nil && !ends
}

// listOrGiveUp adds a finished post that is being deleted to the lists of its team. It returns a waitError for a retry,
// and nil once the post may be released, under the same time limits as saveOrGiveUp.
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
