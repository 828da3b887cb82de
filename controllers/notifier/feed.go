// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package notifier

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/posting/notify"
)

// feedPause is the pause before a watch is restarted after an error.
const feedPause = 5 * time.Second

// finished selects finished posts.
var finished = fields.OneTermEqualSelector("status.finished", "true")

// follow offers the events of cached objects to the workers: undecided posts, connections and media.
func (r *Reconciler) follow(ctx context.Context) error {
	for _, object := range []client.Object{&v1alpha1.Post{}, &v1alpha1.Connection{}, &v1alpha1.Media{}} {
		informer, err := r.Cache.GetInformer(ctx, object)
		if err != nil {
			return fmt.Errorf("cannot watch the objects that notifications are about: %w", err)
		}
		registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    r.observed,
			UpdateFunc: func(_, obj any) { r.observed(obj) },
		})
		if err != nil {
			return fmt.Errorf("cannot watch the objects that notifications are about: %w", err)
		}
		context.AfterFunc(ctx, func() { _ = informer.RemoveEventHandler(registration) }) // it fails only if the informer has ended
	}
	return nil
}

func (r *Reconciler) observed(obj any) {
	object, ok := obj.(client.Object)
	if !ok || !r.serves(object.GetNamespace()) {
		return
	}
	if events := eventsOf(object, r.Clock.Now()); len(events) > 0 {
		r.offer(object.GetNamespace(), events...)
	}
}

// eventsOf returns the events of an object's current state.
func eventsOf(object client.Object, now time.Time) []notify.Event {
	one := func(e notify.Event, ok bool) []notify.Event {
		if !ok {
			return nil
		}
		return []notify.Event{e}
	}
	switch object := object.(type) {
	case *v1alpha1.Post:
		return one(notify.OfPost(object))
	case *v1alpha1.Connection:
		return notify.OfConnection(object, now)
	case *v1alpha1.Media:
		return one(notify.OfMedia(object))
	default:
		return nil
	}
}

// feed watches the finished posts of a namespace. It does not store them.
type feed struct {
	reconciler *Reconciler
	namespace  string
	stop       context.CancelFunc

	mu sync.Mutex
	// seen is the time up to which all events of the watch have been offered, or zero before the watch.
	seen time.Time
}

func newFeed(r *Reconciler, namespace string) *feed {
	return &feed{reconciler: r, namespace: namespace}
}

func (f *feed) current() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen
}

func (f *feed) sawUntil(t time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = t
}

// run watches until ctx is done. After a gap, the workers read the posts again.
func (f *feed) run(ctx context.Context) {
	log, clk := ctrl.Log.WithName("notifier").WithValues("namespace", f.namespace), f.reconciler.Clock
	for {
		err := f.watch(ctx)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			log.Error(err, "cannot watch the finished posts; retrying")
		}
		select {
		case <-ctx.Done():
			return
		case <-clk.After(feedPause):
		}
	}
}

// watch watches from the current version on, until an error.
func (f *feed) watch(ctx context.Context) error {
	begun := f.reconciler.Clock.Now()
	var list v1alpha1.PostList
	if err := f.reconciler.APIReader.List(ctx, &list, client.InNamespace(f.namespace), client.MatchingFieldsSelector{Selector: finished}, client.Limit(1)); err != nil {
		return fmt.Errorf("cannot list the finished posts: %w", err)
	}
	version := list.ResourceVersion
	opened := false
	for ctx.Err() == nil {
		w, err := f.reconciler.Watcher.Watch(ctx, &v1alpha1.PostList{}, &client.ListOptions{
			Namespace: f.namespace, FieldSelector: finished, Raw: &metav1.ListOptions{ResourceVersion: version, AllowWatchBookmarks: true},
		})
		if err != nil {
			return fmt.Errorf("cannot watch the finished posts: %w", err)
		}
		if !opened {
			// The watch reports everything after the version. The workers read earlier posts.
			f.sawUntil(begun)
			f.reread()
			opened = true
		}
		next, err := f.drain(ctx, w, version)
		if err != nil {
			return err
		}
		if next == version {
			return nil // an empty watch ended immediately: pause
		}
		version = next
	}
	return nil
}

func (f *feed) reread() {
	f.reconciler.mu.RLock()
	defer f.reconciler.mu.RUnlock()
	for _, w := range f.reconciler.in(f.namespace) {
		w.reread()
	}
}

// drain offers the events of one watch. It returns the version to continue from.
func (f *feed) drain(ctx context.Context, w watch.Interface, version string) (string, error) {
	defer w.Stop()
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, ok := <-w.ResultChan():
			if !ok {
				return version, nil
			}
			if event.Type == watch.Error {
				return version, fmt.Errorf("the watch of finished posts ended: %w", apierrors.FromObject(event.Object))
			}
			if object, err := meta.Accessor(event.Object); err == nil {
				version = object.GetResourceVersion()
			}
			if post, isPost := event.Object.(*v1alpha1.Post); isPost && (event.Type == watch.Added || event.Type == watch.Modified) {
				if e, ok := notify.OfPost(post); ok {
					f.reconciler.offer(f.namespace, e)
				}
			}
			f.sawUntil(f.reconciler.Clock.Now())
		}
	}
}

// read offers a worker all events since the queue's Through. They come from the cache and, day by day, from finished
// posts.
func (w *worker) read(ctx context.Context) error {
	r, now := w.reconciler, w.reconciler.Clock.Now()
	if err := w.readCache(ctx, &v1alpha1.PostList{}, &v1alpha1.ConnectionList{}, &v1alpha1.MediaList{}); err != nil {
		return err
	}
	from := w.through()
	if oldest := now.Add(-notify.MaxAge); from.Before(oldest) {
		from = oldest
	}
	// A fast clock may have recorded tomorrow's date.
	for day := from.UTC().Truncate(24 * time.Hour); !day.After(now.Add(24 * time.Hour)); day = day.Add(24 * time.Hour) {
		on := fields.AndSelectors(finished, fields.OneTermEqualSelector("status.finishedOn", day.Format(time.DateOnly)))
		err := kubeclient.EachPage(ctx, func(ctx context.Context, page kubeclient.Page) (string, error) {
			var posts v1alpha1.PostList
			err := r.APIReader.List(ctx, &posts, client.InNamespace(w.key.Namespace), client.MatchingFieldsSelector{Selector: on},
				client.Limit(page.Limit), client.Continue(page.Continue))
			if err != nil {
				return "", fmt.Errorf("cannot list the finished posts: %w", err)
			}
			for i := range posts.Items {
				w.offer(eventsOf(&posts.Items[i], now)...)
			}
			return posts.Continue, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readCache offers the events of objects in the cache.
func (w *worker) readCache(ctx context.Context, lists ...client.ObjectList) error {
	now := w.reconciler.Clock.Now()
	for _, list := range lists {
		if err := w.reconciler.Client.List(ctx, list, client.InNamespace(w.key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("cannot list the objects of the namespace: %w", err)
		}
		err := meta.EachListItem(list, func(item runtime.Object) error {
			if object, ok := item.(client.Object); ok {
				w.offer(eventsOf(object, now)...)
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("cannot read the objects of the namespace: %w", err)
		}
	}
	return nil
}
