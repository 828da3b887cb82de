// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

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
	"github.com/herald-social/herald/internal/kubeclient"
)

const (
	// recordSkew is the amount by which a record may appear to be older than its post, since the clocks of the store and
	// the Kubernetes API differ. Writing an existing record again does not change it.
	recordSkew = time.Minute
	// backfillBacklog is the queue length that pauses the backfill: six seconds of work for the archiver. backfillPause
	// is the interval between checks of the queue.
	backfillBacklog = 1000
	backfillPause   = time.Second
)

// backfill finds finished posts without a record: posts finished by a version without records, just before the previous
// manager was killed, or while no Team owned their namespace. For each team it compares the bucket with the posts'
// metadata, and retries after errors: first for all teams, then for each team that becomes the owner of its namespace.
func (a *Archiver) backfill(ctx context.Context) {
	a.backfillAll(ctx)
	for a.backfillNext(ctx) {
	}
}

func (a *Archiver) backfillAll(ctx context.Context) {
	o := a.o
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

func (a *Archiver) backfillNext(ctx context.Context) bool {
	name, stopped := a.teamQueue.Get()
	if stopped {
		return false
	}
	defer a.teamQueue.Done(name)
	var team v1alpha1.Team
	err := a.o.Client.Get(ctx, types.NamespacedName{Name: name}, &team)
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
	ctrl.Log.WithName("records").Info("cannot look for finished posts without a record; retrying", "error", err.Error())
}

// Backfill enqueues a Team when it becomes the owner of its namespace: posts that were finished there earlier have
// neither a record nor the finalizer, and no cache holds them. A Team that loses its namespace was backfilled when it
// became the owner. The handler does not trigger a reconciliation.
func (a *Archiver) Backfill() handler.EventHandler {
	catchUp := func(obj client.Object) {
		team, ok := obj.(*v1alpha1.Team)
		if ok && a.records.archived() && conditions.IsReady(team.Status.Conditions) {
			a.teamQueue.Add(team.Name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ workqueue) { catchUp(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue) { catchUp(e.ObjectNew) },
	}
}

// backfillTeam enqueues a team's finished posts without a record, except in another installation's namespaces.
func (a *Archiver) backfillTeam(ctx context.Context, team *v1alpha1.Team) error {
	if !a.o.Namespaces.Include(team.Spec.Namespace) {
		return nil
	}
	of, kept, err := a.records.readableTeam(ctx, team.Spec.Namespace)
	if err != nil || !kept || of.Name != team.Name {
		return err
	}
	c := compareWith(a.o.Records.Archive.Entries(ctx, of), func(post string) {
		a.queue.Add(types.NamespacedName{Namespace: of.Namespace, Name: post})
	})
	defer c.stop()
	posts := a.metadata.Resource(v1alpha1.GroupVersion.WithResource("posts")).Namespace(of.Namespace)
	err = kubeclient.EachPage(ctx, func(ctx context.Context, page kubeclient.Page) (string, error) {
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

func (a *Archiver) waitForBacklog(ctx context.Context) error {
	for a.queue.Len() >= backfillBacklog || a.records.breaker.openFor() > 0 {
		select {
		case <-a.o.Clock.After(backfillPause):
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the process ends
		}
	}
	return nil
}

type finishedPost struct {
	name string
	// recordSince is the earliest time of a valid record. It is endOfTime for a post without the finalizer, which the
	// archiver must process in any case.
	recordSince time.Time
}

var endOfTime = time.Unix(1<<40, 0)

func finishedOf(m *metav1.PartialObjectMetadata) finishedPost {
	wants := m.CreationTimestamp.Add(recordSkew)
	if !controllerutil.ContainsFinalizer(m, v1alpha1.DeliveryFinalizer) {
		wants = endOfTime
	}
	return finishedPost{m.Name, wants}
}

// comparison compares posts with records while it reads both, so it never holds either list. Posts arrive in the order
// of their names, records in the order of their keys. If that order is violated, a post may be reported although it has
// a record, which costs another write of the record.
type comparison struct {
	next func() (archive.Entry, error, bool)
	stop func()
	// entry is the last record that was read, if more is set.
	entry   archive.Entry
	more    bool
	started bool
	// pending is a stack of posts whose keys may follow later keys. Each name is a prefix of the next, so it is short.
	pending   []finishedPost
	onMissing func(post string)
}

func compareWith(entries iter.Seq2[archive.Entry, error], lacks func(post string)) *comparison {
	c := &comparison{onMissing: lacks}
	c.next, c.stop = iter.Pull2(entries)
	return c
}

func (c *comparison) add(post finishedPost) error {
	for n := len(c.pending); n > 0 && archive.CompareKeys(c.pending[n-1].name, post.name) < 0; n = len(c.pending) {
		if err := c.settle(); err != nil {
			return err
		}
	}
	c.pending = append(c.pending, post)
	return nil
}

func (c *comparison) finish() error {
	for len(c.pending) > 0 {
		if err := c.settle(); err != nil {
			return err
		}
	}
	return nil
}

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
