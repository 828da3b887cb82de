// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package records stores the outcomes of posts beyond their deletion. Records saves and finds records, the Archiver
// saves those of finished posts in the background, and Finalizers keeps a post until its record is saved. The package
// never calls a platform.
package records

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/posting/record"
)

// Options configures the package. All fields but Records are required.
type Options struct {
	// Client reads from the cache and writes to the API server. APIReader reads from the API server.
	Client    client.Client
	APIReader client.Reader
	// Clock returns the time. ClockMargin is the largest expected difference between two clocks.
	Clock       clock.WithTicker
	ClockMargin time.Duration
	// Namespaces are the namespaces that this installation serves.
	Namespaces configv1alpha1.Namespaces
	// Records configures the archive; without it no post leaves a record.
	Records *Config
	// Events emits the events about records.
	Events Events
	// Abandoned counts a post that was deleted without a record, by namespace.
	Abandoned func(namespace string)
	// Failpoint is called at the failpoints of this package, for tests that kill the process there.
	Failpoint func(point string)
}

// Events emits the events about the records and the deletion of posts.
type Events interface {
	// RecordUnavailable warns that a deleted post waits for its record, for the given reason.
	RecordUnavailable(post *v1alpha1.Post, why error)
	// RecordAbandoned warns that a post is deleted without a record. namespaceEnds is set if its namespace is deleted too.
	RecordAbandoned(post *v1alpha1.Post, namespaceEnds bool)
	// Reapplied warns that a cancelled post was applied again, which has no effect.
	Reapplied(post *v1alpha1.Post)
}

// Failpoints, where a test may kill the process; see Options.Failpoint.
const (
	PointBeforeKeep = "before-keep"
	PointAfterKeep  = "after-keep"
	// PointBeforeRelease is before the removal of a post's finalizer.
	PointBeforeRelease = "before-release"
)

// Config configures the archive of records.
type Config struct {
	// Archive stores the records.
	Archive *archive.Archive
	// Owner returns a namespace's Team, or nil. A record belongs to a Team, so there are no records without one.
	Owner func(ctx context.Context, namespace string) (*v1alpha1.Team, error)
	// List adds a finished post to its team's lists while it is being deleted, after its record was saved. The lists make
	// it available until its retention period expires. If List is nil, there are no lists.
	List func(ctx context.Context, post *v1alpha1.Post) error
	// RetryPause is the pause between attempts to save the record of a post that is being deleted (default 15 s).
	RetryPause time.Duration
	// Underway is the delay before the record of an unfinished post is saved in its current state (default 1 min).
	Underway time.Duration
}

// ErrNotRecorded means that the namespace of a post has no Team, the Team is being deleted, or there is no bucket.
var ErrNotRecorded = errors.New("no record is kept, since no Team owns the namespace, the Team is being deleted, or there is no bucket")

// Records saves the records of posts, and finds the records of earlier posts.
type Records struct {
	o       *Options
	breaker *storeBreaker

	mu sync.Mutex
	// writeFailures is the evidence that no record can be written, even if the store responds to reads.
	writeFailures evidence
	unsaved       map[types.NamespacedName]bool
}

// New returns the records in an archive.
func New(o *Options) *Records {
	return &Records{o: o, breaker: &storeBreaker{clock: o.Clock}, unsaved: map[types.NamespacedName]bool{}}
}

func (rs *Records) archived() bool { return rs.o.Records != nil && !rs.o.Records.Archive.Absent() }

func (rs *Records) trackSave(post types.NamespacedName, waits bool) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if waits {
		rs.unsaved[post] = true
	} else {
		delete(rs.unsaved, post)
	}
}

// Unsaved returns the number of posts whose last save failed, by namespace.
func (rs *Records) Unsaved() map[string]int {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	count := map[string]int{}
	for post := range rs.unsaved {
		count[post.Namespace]++
	}
	return count
}

// readableTeam returns the team whose archive is read for posts of a namespace, or false if there is none. The records
// of a Team that is being deleted remain readable until they are cleared.
func (rs *Records) readableTeam(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
	owner, err := rs.owner(ctx, namespace)
	if owner == nil {
		return archive.Team{}, false, err
	}
	return archive.Team{Namespace: namespace, Name: owner.Name}, true, nil
}

func (rs *Records) owner(ctx context.Context, namespace string) (*v1alpha1.Team, error) {
	if !rs.archived() {
		return nil, nil //nolint:nilnil // absence is a valid answer
	}
	return rs.o.Records.Owner(ctx, namespace)
}

// writableTeam returns the team whose archive receives the record of a post, or false if there is none. A Team that is
// being deleted does not receive records, because its archive is cleared with it.
func (rs *Records) writableTeam(ctx context.Context, namespace string) (team archive.Team, kept bool, err error) {
	owner, err := rs.owner(ctx, namespace)
	if owner == nil || !owner.DeletionTimestamp.IsZero() {
		return archive.Team{}, false, err
	}
	return archive.Team{Namespace: namespace, Name: owner.Name}, true, nil
}

// Save saves the record of a finished post in its current state, before the caller deletes the post. After
// ErrNotRecorded the caller must not delete it.
func (rs *Records) Save(ctx context.Context, post *v1alpha1.Post) error {
	kept, err := rs.save(ctx, post)
	if err == nil && !kept {
		err = fmt.Errorf("post %s/%s: %w", post.Namespace, post.Name, ErrNotRecorded)
	}
	return err
}

// save writes the record of a post, merged with the existing record. For a post without a call it writes the request
// that created the post. It reports whether a record exists now.
func (rs *Records) save(ctx context.Context, post *v1alpha1.Post) (kept bool, err error) {
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

// observeWrite updates writeFailures with the result of a write. Successful reads are not evidence: a full bucket still
// serves them, and so does a bucket whose policy denies writes.
func (rs *Records) observeWrite(post types.NamespacedName, err error) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	switch {
	case err == nil:
		rs.writeFailures = evidence{}
	case errors.Is(err, errStoreUnavailable), errors.Is(err, context.Canceled), isRecordError(err): // no evidence about others
	default:
		rs.writeFailures.recordFailure(post, rs.o.Clock.Now())
	}
}

func (rs *Records) unwritableFor() time.Duration {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	return rs.writeFailures.duration(rs.o.Clock)
}

// removeOrphaned removes a record whose Team was deleted during the write: the cleanup of its archive may have missed
// it, and nothing else would find it. Like the cleanup, it uses the cached Team. It reports whether the record exists.
func (rs *Records) removeOrphaned(ctx context.Context, team archive.Team, name string) (kept bool, err error) {
	_, kept, err = rs.writableTeam(ctx, team.Namespace)
	if err != nil || kept {
		return kept, err
	}
	return false, rs.o.Records.Archive.Delete(ctx, team, name) //nolint:wrapcheck // the error names the operation
}

// unreadable is the error for a record that the store returns but that cannot be decoded.
type unreadable struct{ error }

func (rs *Records) accounts(ctx context.Context, post *v1alpha1.Post) (record.Account, error) {
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

func (rs *Records) saveRequest(ctx context.Context, team archive.Team, post *v1alpha1.Post) error {
	request := archive.Request{UID: post.UID, Fingerprint: post.Annotations[v1alpha1.RequestAnnotation]}
	return rs.breaker.execute(client.ObjectKeyFromObject(post), func() error { return rs.o.Records.Archive.PutRequest(ctx, team, post.Name, request) })
}
