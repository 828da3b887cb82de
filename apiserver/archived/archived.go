// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package archived shows the posts that left the cluster as if they were there: on the lists of
// package postindex, and one by one.
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
	// segmentBytes and viewBytes are how much memory the segments and the indexes take that
	// are kept. A million posts of one team take 10 MiB of the latter; B8 of
	// docs/performance.md has what both come to.
	segmentBytes = 12 << 20
	viewBytes    = 24 << 20
	// maxAge is how old an index may be for a list. Where a Team tells a newer revision, or
	// posts have left the cluster since, it is read again after leastAge.
	maxAge   = time.Minute
	leastAge = time.Second
	// away is how long the archive is not asked for a team after it could not be read, and
	// within is how long one read may take.
	away   = 5 * time.Second
	within = 5 * time.Second
	// rounds is how often what a list lacks is read before it is given up. Two are enough
	// but for changes in between.
	rounds = 32
	// retainFor is how long a post that left the cluster stays on lists that nobody asks
	// for, at least.
	retainFor = 2 * maxAge
)

// Reader reads archived posts. Its methods may be called from many goroutines at once.
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
	// order has the teams whose lists were asked for last at its front.
	order *list.List
	bytes int
}

// team is what is known of the archive of the team of a namespace.
type team struct {
	namespace string
	of        lists.Team
	// view is nil if it was never read.
	view *lists.View
	// readAt is when it was read, and failedAt when that failed last.
	readAt, failedAt time.Time
	bytes            int
}

// New returns what reads the posts that lie in a bucket, for the lists of index. owner returns
// the team of a namespace; nil if it has none.
func New(bucket *store.Store, index *postindex.Index, owner func(namespace string) *v1alpha1.Team, c clock.Clock, log *slog.Logger) *Reader {
	index.RetainDeleted()
	return &Reader{
		bucket: archive.New(bucket), reader: lists.NewReader(bucket, segmentBytes), index: index, owner: owner, clock: c, log: log,
		teams: map[string]*list.Element{}, order: list.New(),
	}
}

// Run forgets posts that left the cluster some minutes ago, of teams whose lists nobody has
// asked for since, until the context ends.
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

// Between is postindex.Index.Between with archived posts.
func (p *Reader) Between(ctx context.Context, namespace string, r *postindex.Range) (found []postindex.Summary, more bool, err error) {
	err = p.complete(ctx, namespace, func(rows map[lists.ID][]*lists.Row) (missing postindex.Missing) {
		found, more, missing = p.index.BetweenAll(namespace, r, rows)
		return missing
	})
	return found, more, err
}

// Counts is postindex.Index.Counts with archived posts.
func (p *Reader) Counts(ctx context.Context, namespace string) (counts postindex.Counts, err error) {
	err = p.complete(ctx, namespace, func(map[lists.ID][]*lists.Row) (missing postindex.Missing) {
		counts, missing = p.index.CountsAll(namespace)
		return missing
	})
	return counts, err
}

// complete makes an answer, and reads of the archive what it lacks until it lacks nothing.
func (p *Reader) complete(ctx context.Context, namespace string, try func(rows map[lists.ID][]*lists.Row) postindex.Missing) error {
	if err := p.refresh(ctx, namespace); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	rows := map[lists.ID][]*lists.Row{}
	for range rounds {
		missing := try(rows)
		if missing.View == nil {
			return nil
		}
		if err := p.read(ctx, namespace, missing, rows); err != nil {
			// A segment that is gone was replaced: the index in memory is an old one.
			p.spoil(namespace)
			return fmt.Errorf("%w: %w", bridge.ErrArchiveAway, err)
		}
	}
	return fmt.Errorf("%w: it changes faster than it can be read", bridge.ErrArchiveAway)
}

// read reads what an answer lacks.
func (p *Reader) read(ctx context.Context, namespace string, missing postindex.Missing, rows map[lists.ID][]*lists.Row) error {
	for _, id := range missing.Segments {
		part, err := missing.View.Rows(ctx, id)
		if err != nil {
			return err //nolint:wrapcheck // it says what it read
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
			return err //nolint:wrapcheck // it says what it read
		}
		if sealed != nil {
			found[name] = sealed
		}
	}
	p.index.SetSealed(namespace, missing.View, found)
	return nil
}

// refresh reads a team's index if it may not be what there is any more. Without one, lists of
// a team that has nothing archived, as its Team says, are those of the cluster.
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

// isFresh reports whether what is known of a team's archive needs no look.
func (p *Reader) isFresh(known *team, owner *v1alpha1.Team) bool {
	age := p.clock.Since(known.readAt)
	switch {
	case known.view == nil || age >= maxAge:
		return false
	case age < leastAge:
		return true
	default:
		newer := owner.Status.Archive != nil && owner.Status.Archive.Revision > known.view.Revision()
		return !newer && !p.index.HasRetained(known.namespace)
	}
}

// open reads a team's index and tells the lists of it.
func (p *Reader) open(ctx context.Context, known *team) error {
	at, left := p.clock.Now(), p.index.RetainedSeq()
	view, err := p.reader.Open(ctx, known.of, known.view)
	if err != nil {
		if !errors.Is(err, archive.ErrNone) {
			p.log.WarnContext(ctx, "Cannot read the lists of archived posts", "namespace", known.namespace, "team", known.of.Name, "error", err)
		}
		p.store(&team{namespace: known.namespace, of: known.of, view: known.view, readAt: known.readAt, failedAt: at, bytes: known.bytes})
		return err //nolint:wrapcheck // it says what it read
	}
	p.index.SetArchive(known.namespace, view, left)
	p.store(&team{namespace: known.namespace, of: known.of, view: view, readAt: at, bytes: view.Bytes()})
	return nil
}

// lookup returns a copy of what is known of a team's archive.
func (p *Reader) lookup(namespace string, of lists.Team) team {
	p.mu.Lock()
	defer p.mu.Unlock()
	if element := p.teams[namespace]; element != nil {
		p.order.MoveToFront(element)
		if t := element.Value.(*team); t.of == of { //nolint:forcetypeassert // the list holds nothing else
			return *t
		}
		// Another team has the namespace now. What the archive has of it is none of its.
		p.drop(namespace)
		p.index.SetArchive(namespace, nil, 0)
	}
	return team{namespace: namespace, of: of}
}

// store remembers a team, and forgets those that were asked for longest ago, beyond what there
// is room for.
func (p *Reader) store(t *team) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(t.namespace)
	p.teams[t.namespace] = p.order.PushFront(t)
	p.bytes += t.bytes
	for p.bytes > viewBytes && p.order.Len() > 1 {
		oldest := p.order.Back().Value.(*team) //nolint:forcetypeassert // the list holds nothing else
		p.drop(oldest.namespace)
		p.index.SetArchive(oldest.namespace, nil, 0)
	}
}

// drop removes a team from what is remembered. The caller holds the lock.
func (p *Reader) drop(namespace string) {
	if element := p.teams[namespace]; element != nil {
		p.bytes -= p.order.Remove(element).(*team).bytes //nolint:forcetypeassert // the list holds nothing else
		delete(p.teams, namespace)
	}
}

// forget forgets a namespace that no team owns.
func (p *Reader) forget(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.teams[namespace] != nil {
		p.drop(namespace)
		p.index.SetArchive(namespace, nil, 0)
	}
}

// spoil has the index of a namespace read anew for the next list.
func (p *Reader) spoil(namespace string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if element := p.teams[namespace]; element != nil {
		element.Value.(*team).readAt = time.Time{} //nolint:forcetypeassert // the list holds nothing else
	}
}

// Post returns a finished post that is not in the cluster any more, as it was; nil if the
// archive has none of that name, or its time there is over.
func (p *Reader) Post(ctx context.Context, namespace, name string) (*v1alpha1.Post, error) {
	post, err := p.PostIncludingDeleted(ctx, namespace, name)
	if post == nil || !post.Status.Finished {
		return nil, err
	}
	return post, nil
}

// PostIncludingDeleted is Post, also for a post that was deleted before it was finished, when a call may have
// been made for it.
func (p *Reader) PostIncludingDeleted(ctx context.Context, namespace, name string) (*v1alpha1.Post, error) {
	owner := p.owner(namespace)
	if owner == nil {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	data, err := p.bucket.Get(ctx, archive.Team{Namespace: namespace, Name: owner.Name}, name)
	switch {
	case errors.Is(err, archive.ErrNotFound), errors.Is(err, archive.ErrNone):
		return nil, nil //nolint:nilnil // absence is an answer here
	case err != nil:
		return nil, fmt.Errorf("%w: %w", bridge.ErrArchiveAway, err)
	}
	kept, err := record.Decode(data)
	if err != nil {
		return nil, fmt.Errorf("read the record of post %s/%s: %w", namespace, name, err)
	}
	over := kept.FinishedAt != nil && p.isOver(owner, kept)
	if kept.Namespace != namespace || kept.Team != owner.Name || kept.Name != name || over {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	return kept.Post(), nil
}

// usualInCluster is how long posts stay in the cluster where a team does not say it.
const usualInCluster = 7 * 24 * time.Hour

// isOver reports whether the time of a post in the archive is over, though it is still there, if
// its team says how long that is. Where the installation says it, and for posts that were
// applied, whose time depends on when they left the cluster, the sweep alone does.
func (p *Reader) isOver(owner *v1alpha1.Team, kept *record.Record) bool {
	unsaid := owner.Spec.Retention.Archived == nil && owner.Spec.TTLAfterFinished == nil
	if unsaid || kept.Labels[v1alpha1.OriginLabel] == "" {
		return false
	}
	until := kept.FinishedAt.Add(retention.Policy{InCluster: usualInCluster}.Of(owner).Archived)
	if key := kept.CreatedAt.Add(v1alpha1.KeyLifetime); kept.Annotations[v1alpha1.RequestAnnotation] != "" && key.After(until) {
		until = key
	}
	return !p.clock.Now().Before(until)
}
