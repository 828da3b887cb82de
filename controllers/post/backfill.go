// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"iter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/conditions"
	"github.com/herald-social/herald/internal/pager"
)

const (
	// recordSkew is how much older than a post a record may be that is its own: the clocks of
	// the store and of the Kubernetes API differ. One that is written again is the same.
	recordSkew = time.Minute
	// backfillBacklog is how many posts may wait for the archiver before more are looked for:
	// six seconds' work. backfillPause is when it is looked again how many do.
	backfillBacklog = 1000
	backfillPause   = time.Second
)

// backfill finds the finished posts of which no record was kept: by a version that kept
// none, because the manager before this one was killed, or since no Team owned their namespace.
// It compares what the bucket has with the metadata of the posts, team by team, and tries again
// where that fails: first for all teams, and then for each that comes to own its namespace.
func (a *archiver) backfill(ctx context.Context) {
	a.backfillAll(ctx)
	for a.backfillNext(ctx) {
	}
}

// backfillAll has all teams caught up.
func (a *archiver) backfillAll(ctx context.Context) {
	o := a.records.o
	var teams v1alpha1.TeamList
	for pause := time.Second; ; pause = min(2*pause, maxRetryPause) {
		err := o.Client.List(ctx, &teams)
		for i := 0; err == nil && i < len(teams.Items); i++ {
			a.teamQueue.Add(teams.Items[i].Name)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		logBackfillError(err)
		select {
		case <-o.Clock.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// backfillNext catches up one team. It reports false when the archiver ends.
func (a *archiver) backfillNext(ctx context.Context) bool {
	name, stopped := a.teamQueue.Get()
	if stopped {
		return false
	}
	defer a.teamQueue.Done(name)
	var team v1alpha1.Team
	err := a.records.o.Client.Get(ctx, types.NamespacedName{Name: name}, &team)
	if err == nil {
		err = a.backfillTeam(ctx, &team)
	}
	switch {
	case client.IgnoreNotFound(err) == nil:
		a.teamQueue.Forget(name)
	case ctx.Err() == nil:
		logBackfillError(err)
		a.teamQueue.AddRateLimited(name)
	}
	return true
}

func logBackfillError(err error) {
	ctrl.Log.WithName("records").Info("cannot look for finished posts without a record; trying again", "error", err.Error())
}

// enqueueBackfill has a Team caught up that comes to own its namespace: what was finished there before
// has neither a record nor the finalizer, and no cache has it. For one that loses its namespace
// nothing is left to find: it was caught up when it came. It asks for no pass.
func (rs *records) enqueueBackfill() handler.EventHandler {
	catchUp := func(obj client.Object) {
		team, ok := obj.(*v1alpha1.Team)
		if ok && rs.archiver != nil && conditions.IsReady(team.Status.Conditions) {
			rs.archiver.teamQueue.Add(team.Name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ workqueue) { catchUp(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue) { catchUp(e.ObjectNew) },
	}
}

// backfillTeam looks for the finished posts of a team that have no record. Those of a namespace that
// is not served are another installation's.
func (a *archiver) backfillTeam(ctx context.Context, team *v1alpha1.Team) error {
	if !a.records.o.Namespaces.Include(team.Spec.Namespace) {
		return nil
	}
	of, kept, err := a.records.readableTeam(ctx, team.Spec.Namespace)
	if err != nil || !kept || of.Name != team.Name {
		return err
	}
	c := compareWith(a.records.o.Records.Archive.Entries(ctx, of), func(post string) {
		a.queue.Add(types.NamespacedName{Namespace: of.Namespace, Name: post})
	})
	defer c.stop()
	posts := a.metadata.Resource(v1alpha1.GroupVersion.WithResource("posts")).Namespace(of.Namespace)
	err = pager.EachPage(ctx, func(ctx context.Context, page pager.Page) (string, error) {
		if err := a.waitForBacklog(ctx); err != nil {
			return "", err
		}
		list, err := posts.List(ctx, metav1.ListOptions{FieldSelector: finishedPosts, Limit: page.Limit, Continue: page.Continue})
		if err != nil {
			return "", fmt.Errorf("cannot list finished posts: %w", err)
		}
		for i := range list.Items {
			if err := c.add(finishedOf(&list.Items[i])); err != nil {
				return "", err
			}
		}
		return list.Continue, nil
	})
	if err != nil {
		return err
	}
	return c.finish()
}

// waitForBacklog waits while as many posts as are held in memory wait for their records.
func (a *archiver) waitForBacklog(ctx context.Context) error {
	for a.queue.Len() >= backfillBacklog || a.records.breaker.openFor() > 0 {
		select {
		case <-a.records.o.Clock.After(backfillPause):
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the process ends
		}
	}
	return nil
}

// finishedPost is what is compared of a finished post.
type finishedPost struct {
	name string
	// recordSince is since when its record must have been written; the end of time if the
	// archiver has to see it in any case, since it lacks its finalizer.
	recordSince time.Time
}

// endOfTime is later than any record.
var endOfTime = time.Unix(1<<40, 0)

func finishedOf(m *metav1.PartialObjectMetadata) finishedPost {
	wants := m.CreationTimestamp.Add(recordSkew)
	if !controllerutil.ContainsFinalizer(m, v1alpha1.DeliveryFinalizer) {
		wants = endOfTime
	}
	return finishedPost{m.Name, wants}
}

// comparison compares posts with records as both are read, so that it holds neither list:
// posts come in the order of their names, records in that of their keys. Were one not in its
// order, posts would be taken for lacking a record that has one, which costs a write of it.
type comparison struct {
	next func() (archive.Entry, error, bool)
	stop func()
	// entry is the record that was read last, if there is one.
	entry   archive.Entry
	more    bool
	started bool
	// pending are posts whose keys come after those of names that begin as theirs do. Each name
	// begins with the one before it, so that they are a few.
	pending []finishedPost
	// onMissing is told of each post without a record.
	onMissing func(post string)
}

func compareWith(entries iter.Seq2[archive.Entry, error], lacks func(post string)) *comparison {
	c := &comparison{onMissing: lacks}
	c.next, c.stop = iter.Pull2(entries)
	return c
}

// add takes the next post.
func (c *comparison) add(post finishedPost) error {
	for n := len(c.pending); n > 0 && archive.CompareKeys(c.pending[n-1].name, post.name) < 0; n = len(c.pending) {
		if err := c.settle(); err != nil {
			return err
		}
	}
	c.pending = append(c.pending, post)
	return nil
}

// finish says that there are no more posts.
func (c *comparison) finish() error {
	for len(c.pending) > 0 {
		if err := c.settle(); err != nil {
			return err
		}
	}
	return nil
}

// settle compares the post that was held last with its record.
func (c *comparison) settle() error {
	post := c.pending[len(c.pending)-1]
	c.pending = c.pending[:len(c.pending)-1]
	for !c.started || c.more && archive.CompareKeys(c.entry.Post, post.name) < 0 {
		var err error
		if c.entry, err, c.more = c.next(); err != nil {
			return fmt.Errorf("cannot see which posts have a record: %w", err)
		}
		c.started = true
	}
	if !c.more || c.entry.Post != post.name || c.entry.At.Before(post.recordSince) {
		c.onMissing(post.name)
	}
	return nil
}
