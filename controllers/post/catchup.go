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
	"github.com/herald-social/herald/internal/pages"
)

const (
	// keptBefore is how much older than a post a record may be that is its own: the clocks of
	// the store and of the Kubernetes API differ. One that is written again is the same.
	keptBefore = time.Minute
	// catchUpAhead is how many posts may wait for the archiver before more are looked for:
	// six seconds' work. catchUpPause is when it is looked again how many do.
	catchUpAhead = 1000
	catchUpPause = time.Second
)

// catchUp finds the finished posts of which no record was kept: by a version that kept
// none, because the manager before this one was killed, or since no Team owned their namespace.
// It compares what the bucket has with the metadata of the posts, team by team, and tries again
// where that fails: first for all teams, and then for each that comes to own its namespace.
func (a *archiver) catchUp(ctx context.Context) {
	a.catchUpAll(ctx)
	for a.catchUpNext(ctx) {
	}
}

// catchUpAll has all teams caught up.
func (a *archiver) catchUpAll(ctx context.Context) {
	o := a.records.o
	var teams v1alpha1.TeamList
	for pause := time.Second; ; pause = min(2*pause, keepPauseMost) {
		err := o.Client.List(ctx, &teams)
		for i := 0; err == nil && i < len(teams.Items); i++ {
			a.owning.Add(teams.Items[i].Name)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		logBehind(err)
		select {
		case <-o.Clock.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// catchUpNext catches up one team. It reports false when the archiver ends.
func (a *archiver) catchUpNext(ctx context.Context) bool {
	name, stopped := a.owning.Get()
	if stopped {
		return false
	}
	defer a.owning.Done(name)
	var team v1alpha1.Team
	err := a.records.o.Client.Get(ctx, types.NamespacedName{Name: name}, &team)
	if err == nil {
		err = a.catchUpTeam(ctx, &team)
	}
	switch {
	case client.IgnoreNotFound(err) == nil:
		a.owning.Forget(name)
	case ctx.Err() == nil:
		logBehind(err)
		a.owning.AddRateLimited(name)
	}
	return true
}

func logBehind(err error) {
	ctrl.Log.WithName("records").Info("cannot look for finished posts without a record; trying again", "error", err.Error())
}

// catchesUp has a Team caught up that comes to own its namespace: what was finished there before
// has neither a record nor the finalizer, and no cache has it. For one that loses its namespace
// nothing is left to find: it was caught up when it came. It asks for no pass.
func (rs *records) catchesUp() handler.EventHandler {
	catchUp := func(obj client.Object) {
		team, ok := obj.(*v1alpha1.Team)
		if ok && rs.archiver != nil && conditions.IsReady(team.Status.Conditions) {
			rs.archiver.owning.Add(team.Name)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ workqueue) { catchUp(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue) { catchUp(e.ObjectNew) },
	}
}

// catchUpTeam looks for the finished posts of a team that have no record. Those of a namespace that
// is not served are another installation's.
func (a *archiver) catchUpTeam(ctx context.Context, team *v1alpha1.Team) error {
	if !a.records.o.Namespaces.Include(team.Spec.Namespace) {
		return nil
	}
	of, kept, err := a.records.team(ctx, team.Spec.Namespace)
	if err != nil || !kept || of.Name != team.Name {
		return err
	}
	c := compareWith(a.records.o.Records.Archive.Entries(ctx, of), func(post string) {
		a.queue.Add(types.NamespacedName{Namespace: of.Namespace, Name: post})
	})
	defer c.stop()
	posts := a.metadata.Resource(v1alpha1.GroupVersion.WithResource("posts")).Namespace(of.Namespace)
	err = pages.Each(ctx, func(ctx context.Context, page pages.Page) (string, error) {
		if err := a.waitForRoom(ctx); err != nil {
			return "", err
		}
		list, err := posts.List(ctx, metav1.ListOptions{FieldSelector: finishedPosts, Limit: page.Limit, Continue: page.Continue})
		if err != nil {
			return "", fmt.Errorf("cannot list finished posts: %w", err)
		}
		for i := range list.Items {
			if err := c.see(finishedOf(&list.Items[i])); err != nil {
				return "", err
			}
		}
		return list.Continue, nil
	})
	if err != nil {
		return err
	}
	return c.end()
}

// waitForRoom waits while as many posts as are held in memory wait for their records.
func (a *archiver) waitForRoom(ctx context.Context) error {
	for a.queue.Len() >= catchUpAhead || a.records.outage.lasts() > 0 {
		select {
		case <-a.records.o.Clock.After(catchUpPause):
		case <-ctx.Done():
			return ctx.Err() //nolint:wrapcheck // the process ends
		}
	}
	return nil
}

// finishedPost is what is compared of a finished post.
type finishedPost struct {
	name string
	// wants is since when its record must have been written; the end of time if the
	// archiver has to see it in any case, since it lacks its finalizer.
	wants time.Time
}

// endOfTime is later than any record.
var endOfTime = time.Unix(1<<40, 0)

func finishedOf(m *metav1.PartialObjectMetadata) finishedPost {
	wants := m.CreationTimestamp.Add(keptBefore)
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
	entry archive.Entry
	more  bool
	begun bool
	// held are posts whose keys come after those of names that begin as theirs do. Each name
	// begins with the one before it, so that they are a few.
	held []finishedPost
	// lacks is told of each post without a record.
	lacks func(post string)
}

func compareWith(entries iter.Seq2[archive.Entry, error], lacks func(post string)) *comparison {
	c := &comparison{lacks: lacks}
	c.next, c.stop = iter.Pull2(entries)
	return c
}

// see takes the next post.
func (c *comparison) see(post finishedPost) error {
	for n := len(c.held); n > 0 && archive.CompareKeys(c.held[n-1].name, post.name) < 0; n = len(c.held) {
		if err := c.settle(); err != nil {
			return err
		}
	}
	c.held = append(c.held, post)
	return nil
}

// end says that there are no more posts.
func (c *comparison) end() error {
	for len(c.held) > 0 {
		if err := c.settle(); err != nil {
			return err
		}
	}
	return nil
}

// settle compares the post that was held last with its record.
func (c *comparison) settle() error {
	post := c.held[len(c.held)-1]
	c.held = c.held[:len(c.held)-1]
	for !c.begun || c.more && archive.CompareKeys(c.entry.Post, post.name) < 0 {
		var err error
		if c.entry, err, c.more = c.next(); err != nil {
			return fmt.Errorf("cannot see which posts have a record: %w", err)
		}
		c.begun = true
	}
	if !c.more || c.entry.Post != post.name || c.entry.At.Before(post.wants) {
		c.lacks(post.name)
	}
	return nil
}
