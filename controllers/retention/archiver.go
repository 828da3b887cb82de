// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package retention

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/posting/retention"
)

const (
	maxConcurrentSaves = 8
	expireMost         = 500
	// maxTitle and maxAgent limit both fields in characters, as in the lists of posts in the cluster.
	maxTitle = 256
	maxAgent = 128
)

// ArchiverOptions configures an Archiver; all fields are required.
type ArchiverOptions struct {
	// Client reads connections from the cache. APIReader reads posts from the API server.
	Client    client.Client
	APIReader client.Reader
	Clock     clock.Clock
	Policy    retention.Policy
	// Record stores a finished post's record in its current state.
	Record func(ctx context.Context, post *v1alpha1.Post) error
	// Archive stores the records. Lists writes the lists of posts that have left the cluster.
	Archive *archive.Archive
	Lists   *lists.Writer
	// MayDelete returns an error unless the bucket belongs to this cluster. Another cluster's data is not removed.
	MayDelete func(ctx context.Context) error
}

// Archiver is the archive of an installation with a bucket.
type Archiver struct {
	ArchiverOptions

	mu             sync.Mutex
	recordsSweptAt map[archive.Team]time.Time
	changed        map[archive.Team]bool
}

// NewArchiver returns an Archiver.
func NewArchiver(o ArchiverOptions) *Archiver {
	return &Archiver{ArchiverOptions: o, recordsSweptAt: map[archive.Team]time.Time{}, changed: map[archive.Team]bool{}}
}

// SaveRecords implements Archive.
func (s *Archiver) SaveRecords(ctx context.Context, posts []*v1alpha1.Post) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConcurrentSaves)
	for _, post := range posts {
		group.Go(func() error { return s.Record(ctx, post) })
	}
	return group.Wait() //nolint:wrapcheck // the error names the record
}

// List implements Archive.
func (s *Archiver) List(ctx context.Context, team *v1alpha1.Team, posts ...*v1alpha1.Post) error {
	entries := make([]lists.Entry, 0, len(posts))
	for _, post := range posts {
		if posting.Unfinished(posting.Of(post).Phase()) {
			continue // A client has written its status. It has its record, and must not block other posts.
		}
		entry, err := s.entry(ctx, team, post)
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	of := teamOf(team)
	written := s.Archive.TrackWrite(of)
	defer written()
	if gone, err := s.removeOrphaned(ctx, of); gone || err != nil {
		return err
	}
	err := s.Lists.Add(ctx, lists.Team(of), entries)
	if errors.Is(err, lists.ErrDamaged) {
		if err = s.rebuild(ctx, team, err); err == nil {
			err = s.Lists.Add(ctx, lists.Team(of), entries)
		}
	}
	if err != nil {
		return err //nolint:wrapcheck // the error has its context
	}
	s.markChanged(of)
	_, err = s.removeOrphaned(ctx, of)
	return err
}

// removeOrphaned removes the lists of a Team that was deleted before or while they were written. The cleanup of its
// archive may have missed them, and only a new Team with the same name would find them. It reads the Team from the same
// cache as the cleanup. It reports whether the Team is gone or being deleted.
func (s *Archiver) removeOrphaned(ctx context.Context, of archive.Team) (gone bool, err error) {
	var team v1alpha1.Team
	err = s.Client.Get(ctx, types.NamespacedName{Name: of.Name}, &team)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("cannot see whether team %s is being deleted: %w", of.Name, err)
	}
	if err == nil && team.DeletionTimestamp.IsZero() {
		return false, nil
	}
	if err := s.MayDelete(ctx); err != nil {
		return true, err
	}
	return true, s.Lists.Remove(ctx, lists.Team(of)) //nolint:wrapcheck // the error has its context
}

func (s *Archiver) entry(ctx context.Context, team *v1alpha1.Team, post *v1alpha1.Post) (lists.Entry, error) {
	view, times := posting.Of(post), s.Policy.Of(team)
	platforms, err := s.platforms(ctx, post)
	if err != nil {
		return lists.Entry{}, err
	}
	entry := lists.Entry{
		Kind: lists.Kind{
			Status: view.Phase(), Category: post.Spec.Category, Agent: text.First(post.Annotations[v1alpha1.AgentAnnotation], maxAgent),
		},
		Name: post.Name, UID: string(post.UID), DisplayAt: view.DisplayAt(), Bytes: int(view.Footprint()),
		// The lists expire an entry once the team's retention period has passed since FinishedAt, but some posts are kept
		// longer.
		FinishedAt: times.ArchivedUntil(post, s.Clock.Now()).Add(-times.Archived),
		Title:      text.First(view.Title(func(i int) v1alpha1.Platform { return platforms[i] }), maxTitle),
	}
	for i, platform := range platforms {
		if platform != "" {
			entry.Targets = append(entry.Targets, lists.Target{Platform: platform, Status: view.TargetPhase(i), Mark: view.Mark(i)})
		}
	}
	return entry, nil
}

// platforms returns the platforms of a post's targets, from the status or else from the connections. If a connection
// does not exist, the platform is empty, unless the presumed platform is not in version 1 of the API.
func (s *Archiver) platforms(ctx context.Context, post *v1alpha1.Post) ([]v1alpha1.Platform, error) {
	found := make([]v1alpha1.Platform, len(post.Spec.Targets))
	for i := range post.Spec.Targets {
		if target := posting.Of(post).Target(i); target != nil && target.Platform != "" {
			found[i] = target.Platform
			continue
		}
		var conn v1alpha1.Connection
		name := post.Spec.Targets[i].ConnectionRef.Name
		err := s.Client.Get(ctx, types.NamespacedName{Namespace: post.Namespace, Name: name}, &conn)
		if client.IgnoreNotFound(err) != nil {
			return nil, fmt.Errorf("cannot read connection %s/%s: %w", post.Namespace, name, err)
		}
		if found[i] = conn.Spec.Platform; err != nil {
			if presumed := posting.PresumedPlatform(&post.Spec.Targets[i]); !presumed.InVersion1() {
				found[i] = presumed // as in the lists of posts in the cluster
			}
		}
	}
	return found, nil
}

// Expire implements Archive.
func (s *Archiver) Expire(ctx context.Context, team *v1alpha1.Team, times retention.Times) (more bool, err error) {
	of, now := teamOf(team), s.Clock.Now()
	written := s.Archive.TrackWrite(of)
	defer written()
	if gone, err := s.removeOrphaned(ctx, of); gone || err != nil {
		return false, err
	}
	if err := s.MayDelete(ctx); err != nil {
		return false, err
	}
	n, err := s.Lists.Expire(ctx, lists.Team(of), now.Add(-times.Archived), expireMost, func(ctx context.Context, posts []lists.Ref) error {
		return s.forget(ctx, of, posts)
	})
	if errors.Is(err, lists.ErrDamaged) {
		err = s.rebuild(ctx, team, err)
		_, left := s.removeOrphaned(ctx, of)
		return true, errors.Join(err, left)
	}
	if err != nil {
		return false, err //nolint:wrapcheck // the error has its context
	}
	if n > 0 {
		if _, err := s.removeOrphaned(ctx, of); err != nil {
			return false, err
		}
	}
	s.markChanged(of) // also needed after startup, when the Team's status may be outdated
	if n == expireMost {
		return true, nil
	}
	return s.sweepRecords(ctx, team, now, times)
}

// readRecord returns a post's record, or nil if there is none or the document is not a valid record.
func (s *Archiver) readRecord(ctx context.Context, of archive.Team, name string) (*record.Record, error) {
	data, err := s.Archive.Get(ctx, of, name)
	if errors.Is(err, archive.ErrNotFound) {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	if err != nil {
		return nil, err //nolint:wrapcheck // the error names the record
	}
	kept, err := record.Decode(data)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot decode a record", "namespace", of.Namespace, "name", name)
		return nil, nil //nolint:nilnil // an invalid record is useless
	}
	return kept, nil
}

func (s *Archiver) inCluster(ctx context.Context, namespace, name string) (bool, error) {
	post := metav1.PartialObjectMetadata{}
	post.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("Post"))
	err := s.APIReader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &post)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("cannot see whether post %s/%s is in the cluster: %w", namespace, name, err)
	}
	return true, nil
}

func (s *Archiver) markChanged(of archive.Team) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[of] = true
}

func (s *Archiver) drainChanged() map[archive.Team]bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	taken := s.changed
	s.changed = map[archive.Team]bool{}
	return taken
}

func teamOf(team *v1alpha1.Team) archive.Team {
	return archive.Team{Namespace: team.Spec.Namespace, Name: team.Name}
}
