// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archived adds archived posts to the lists of package postindex, and reads individual ones.
package archived

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/archive/lists"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/posting/record"
	"github.com/herald-social/herald/posting/retention"
)

const (
	// segmentBytes and viewBytes limit the memory used for cached segments and indexes. A million posts of one team
	// take 10 MiB of viewBytes; docs/performance.md, B8, has the measurement.
	segmentBytes = 12 << 20
	viewBytes    = 24 << 20
	// maxAge is the TTL of a cached index. It is read again after minAge if the Team has a newer revision, or if posts
	// have since left the cluster.
	maxAge = time.Minute
	minAge = time.Second
	// away is the pause after a failed read of a team's archive, and within is the timeout of a read.
	away   = 5 * time.Second
	within = 5 * time.Second
	// rounds limits how often missing parts are read for one list. Without concurrent changes, two are enough.
	rounds = 32
	// retainFor is the minimum time that an archived post remains on lists that are not requested.
	retainFor = 2 * maxAge
)

// Reader reads archived posts. It is safe for concurrent use.
type Reader struct {
	bucket  *archive.Archive
	reader  *lists.Reader
	index   *postindex.Index
	owner   func(namespace string) *v1alpha1.Team
	clock   clock.Clock
	log     *slog.Logger
	flights singleflight.Group

	mu    sync.Mutex
	teams map[string]*list.Element
	// order is the teams' LRU order, most recently used first.
	order *list.List
	bytes int
}

type team struct {
	namespace string
	of        lists.Team
	// view is nil before the first read.
	view *lists.View
	// readAt is when the archive was last read, and failedAt when reading it last failed.
	readAt, failedAt time.Time
	bytes            int
}

// New returns a Reader of the archived posts in a bucket, which completes index's lists. owner returns the team that
// owns a namespace, or nil.
func New(bucket *store.Store, index *postindex.Index, owner func(namespace string) *v1alpha1.Team, c clock.Clock, log *slog.Logger) *Reader {
	index.RetainDeleted()
	return &Reader{
		bucket: archive.New(bucket), reader: lists.NewReader(bucket, segmentBytes), index: index, owner: owner, clock: c, log: log,
		teams: map[string]*list.Element{}, order: list.New(),
	}
}

// Run removes retained posts of teams whose lists are not requested, until the context is done.
func (p *Reader) Run(ctx context.Context) {
	before := p.index.RetainedSeq()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.clock.After(retainFor):
			now := p.index.RetainedSeq()
			p.index.Forget(before)
			before = now
		}
	}
}

// List is postindex.Index.List with archived posts.
func (p *Reader) List(ctx context.Context, namespace string, q postindex.Query) (page []postindex.Summary, total int, err error) {
	err = p.complete(ctx, namespace, func(rows map[lists.ID][]*lists.Row) (missing postindex.Missing) {
		page, total, missing = p.index.ListAll(namespace, q, rows)
		return missing
	})
	return page, total, err
}

// Find is postindex.Index.Find with archived posts, if the search covers them.
func (p *Reader) Find(ctx context.Context, namespace string, q *postindex.Search) (found postindex.Found, err error) {
	err = p.complete(ctx, namespace, func(rows map[lists.ID][]*lists.Row) (missing postindex.Missing) {
		found, missing = p.index.Find(namespace, q, rows)
		return missing
	})
	return found, err
}

// Days is postindex.Index.Days with archived posts, if the search covers them.
func (p *Reader) Days(ctx context.Context, namespace string, q *postindex.Search, bounds []time.Time) (days []postindex.Day, err error) {
	err = p.complete(ctx, namespace, func(rows map[lists.ID][]*lists.Row) (missing postindex.Missing) {
		days, missing = p.index.Days(namespace, q, bounds, rows)
		return missing
	})
	return days, err
}

// Counts is postindex.Index.Counts with archived posts.
func (p *Reader) Counts(ctx context.Context, namespace string) (counts postindex.Counts, err error) {
	err = p.complete(ctx, namespace, func(map[lists.ID][]*lists.Row) (missing postindex.Missing) {
		counts, missing = p.index.CountsAll(namespace)
		return missing
	})
	return counts, err
}

// complete calls try, and reads missing parts from the archive until nothing is missing.
func (p *Reader) complete(ctx context.Context, namespace string, try func(rows map[lists.ID][]*lists.Row) postindex.Missing) error {
	if err := p.refresh(ctx, namespace); err != nil {
		return err
	}
	missing := try(nil)
	if missing.View == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rows := map[lists.ID][]*lists.Row{}
	for range rounds {
		if err := p.read(ctx, namespace, missing, rows); err != nil {
			// A missing segment was replaced: the cached index is outdated.
			p.spoil(namespace)
			return fmt.Errorf("%w: %w", bridge.ErrArchiveAway, err)
		}
		if missing = try(rows); missing.View == nil {
			return nil
		}
	}
	return fmt.Errorf("%w: it changes faster than it can be read", bridge.ErrArchiveAway)
}

func (p *Reader) read(ctx context.Context, namespace string, missing postindex.Missing, rows map[lists.ID][]*lists.Row) error {
	for _, id := range missing.Segments {
		part, err := missing.View.Rows(ctx, id)
		if err != nil {
			return err //nolint:wrapcheck // names what was read
		}
		rows[id] = part
	}
	if len(missing.Names) == 0 {
		return nil
	}
	found := map[string]*lists.Sealed{}
	for _, name := range missing.Names {
		sealed, err := missing.View.Find(ctx, name)
		if err != nil {
			return err //nolint:wrapcheck // names what was read
		}
		if sealed != nil {
			found[name] = sealed
		}
	}
	p.index.SetSealed(namespace, missing.View, found)
	return nil
}

// refresh reads a team's index if the cached one may be outdated. If that fails and the Team's status reports no
// archived posts, lists contain only the posts in the cluster.
func (p *Reader) refresh(ctx context.Context, namespace string) error {
	owner := p.owner(namespace)
	if owner == nil {
		p.forget(namespace)
		return nil
	}
	of := lists.Team{Namespace: namespace, Name: owner.Name}
	known := p.lookup(namespace, of)
	if p.isFresh(&known, owner) {
		return nil
	}
	var err error
	if p.clock.Since(known.failedAt) < away {
		err = errors.New("it could not be read a moment ago")
	} else {
		_, err, _ = p.flights.Do(namespace, func() (any, error) {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
			defer cancel()
			return nil, p.open(ctx, &known)
		})
	}
	switch archived := owner.Status.Archive; {
	case err == nil, known.view != nil, archived == nil, archived.Posts == 0:
		return nil
	default:
		return fmt.Errorf("%w: %w", bridge.ErrArchiveAway, err)
	}
}

// isFresh reports whether the cached state of a team's archive can be used without a refresh.
func (p *Reader) isFresh(known *team, owner *v1alpha1.Team) bool {
	age := p.clock.Since(known.readAt)
	switch {
	case known.view == nil || age >= maxAge:
		return false
	case age < minAge:
		return true
	default:
		newer := owner.Status.Archive != nil && owner.Status.Archive.Revision > known.view.Revision()
		return !newer && !p.index.HasRetained(known.namespace)
	}
}

// open reads a team's index and passes it to the post index.
func (p *Reader) open(ctx context.Context, known *team) error {
	at, left := p.clock.Now(), p.index.RetainedSeq()
	view, err := p.reader.Open(ctx, known.of, known.view)
	if err != nil {
		if !errors.Is(err, archive.ErrNone) {
			p.log.WarnContext(ctx, "Cannot read the lists of archived posts", "namespace", known.namespace, "team", known.of.Name, "error", err)
		}
		p.store(&team{namespace: known.namespace, of: known.of, view: known.view, readAt: known.readAt, failedAt: at, bytes: known.bytes})
		return err //nolint:wrapcheck // names what was read
	}
	p.index.SetArchive(known.namespace, view, left)
	p.store(&team{namespace: known.namespace, of: known.of, view: view, readAt: at, bytes: view.Bytes()})
	return nil
}

// lookup returns a copy of the cached state of a team's archive.
func (p *Reader) lookup(namespace string, of lists.Team) team {
	p.mu.Lock()
	defer p.mu.Unlock()
	if element := p.teams[namespace]; element != nil {
		p.order.MoveToFront(element)
		if t := element.Value.(*team); t.of == of { //nolint:forcetypeassert // the list has only *team elements
			return *t
		}
		// The namespace has a new owner. The archived posts belong to the old one.
		p.drop(namespace)
		p.index.SetArchive(namespace, nil, 0)
	}
	return team{namespace: namespace, of: of}
}

// store caches a team's state, and evicts the least recently used ones beyond viewBytes.
func (p *Reader) store(t *team) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(t.namespace)
	p.teams[t.namespace] = p.order.PushFront(t)
	p.bytes += t.bytes
	for p.bytes > viewBytes && p.order.Len() > 1 {
		oldest := p.order.Back().Value.(*team) //nolint:forcetypeassert // the list has only *team elements
		p.drop(oldest.namespace)
		p.index.SetArchive(oldest.namespace, nil, 0)
	}
}

// drop removes a team from the cache. The caller holds the lock.
func (p *Reader) drop(namespace string) {
	if element := p.teams[namespace]; element != nil {
		p.bytes -= p.order.Remove(element).(*team).bytes //nolint:forcetypeassert // the list has only *team elements
		delete(p.teams, namespace)
	}
}

func (p *Reader) forget(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.teams[namespace] != nil {
		p.drop(namespace)
		p.index.SetArchive(namespace, nil, 0)
	}
}

// spoil marks a namespace's index as outdated, so the next list reads it again.
func (p *Reader) spoil(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if element := p.teams[namespace]; element != nil {
		element.Value.(*team).readAt = time.Time{} //nolint:forcetypeassert // the list has only *team elements
	}
}

// Post returns a finished post from the archive, or nil if it has none or its retention period has expired.
func (p *Reader) Post(ctx context.Context, namespace, name string) (*v1alpha1.Post, error) {
	post, err := p.PostIncludingDeleted(ctx, namespace, name)
	if post == nil || !post.Status.Finished {
		return nil, err
	}
	return post, nil
}

// PostIncludingDeleted is like Post, but also returns an unfinished post that was deleted after a call may have been
// made for it.
func (p *Reader) PostIncludingDeleted(ctx context.Context, namespace, name string) (*v1alpha1.Post, error) {
	owner := p.owner(namespace)
	if owner == nil {
		return nil, nil //nolint:nilnil // nil means not found
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, err := p.bucket.Get(ctx, archive.Team{Namespace: namespace, Name: owner.Name}, name)
	switch {
	case errors.Is(err, archive.ErrNotFound), errors.Is(err, archive.ErrNone):
		return nil, nil //nolint:nilnil // nil means not found
	case err != nil:
		return nil, fmt.Errorf("%w: %w", bridge.ErrArchiveAway, err)
	}
	kept, err := record.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read the record of post %s/%s: %w", namespace, name, err)
	}
	over := kept.FinishedAt != nil && p.isOver(owner, kept)
	if kept.Namespace != namespace || kept.Team != owner.Name || kept.Name != name || over {
		return nil, nil //nolint:nilnil // nil means not found
	}
	return kept.Post(), nil
}

// usualInCluster is the default time that finished posts remain in the cluster.
const usualInCluster = 7 * 24 * time.Hour

// isOver reports whether an archived post's retention period has expired while its record still exists. It applies only
// a retention that the Team sets. Only the sweep applies the installation's default, and the retention of applied
// posts, which starts when they leave the cluster.
func (p *Reader) isOver(owner *v1alpha1.Team, kept *record.Record) bool {
	if owner.Spec.Retention.Archived == nil || kept.Labels[v1alpha1.OriginLabel] == "" {
		return false
	}
	until := kept.FinishedAt.Add(retention.Policy{InCluster: usualInCluster}.Of(owner).Archived)
	if key := kept.CreatedAt.Add(v1alpha1.KeyLifetime); kept.Annotations[v1alpha1.RequestAnnotation] != "" && key.After(until) {
		until = key
	}
	return !p.clock.Now().Before(until)
}
