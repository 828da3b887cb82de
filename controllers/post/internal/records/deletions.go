// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package records

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	clientworkqueue "k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/internal/pacing"
)

// deletions releases finished posts that are deleted, and describes cancelled posts that are applied again. The
// manager's cache excludes finished posts, so deletions has its own watch, which keeps only the names of posts to
// write.
type deletions struct {
	o          *Options
	finalizers *Finalizers
	config     *rest.Config
	client     *http.Client

	queue workqueue

	mu sync.Mutex
	// waiting holds the posts that wait for the store, with their deletion times.
	waiting map[types.NamespacedName]time.Time
}

const (
	deletionsPause = time.Second
	// releasers is the number of posts that are released concurrently. Each takes a read and a write, so the hundred
	// thousand posts of a deleted team take minutes. The watch does not wait for them: the API server closes slow
	// watches.
	releasers = 16
)

type workqueue = clientworkqueue.TypedRateLimitingInterface[reconcile.Request]

// finishedPosts selects the posts that the manager's cache excludes.
const finishedPosts = "status.finished=true"

// SetupWithManager adds the watch for deleted finished posts to the manager.
func (f *Finalizers) SetupWithManager(mgr ctrl.Manager) error {
	return mgr.Add(&deletions{o: f.o, finalizers: f, config: mgr.GetConfig(), client: mgr.GetHTTPClient(), waiting: map[types.NamespacedName]time.Time{}})
}

// Start watches until the context is done. It runs only on the leader.
func (d *deletions) Start(ctx context.Context) error {
	meta, err := metadata.NewForConfigAndClient(d.config, d.client)
	if err != nil {
		return fmt.Errorf("cannot watch for deleted posts: %w", err)
	}
	d.queue = clientworkqueue.NewTypedRateLimitingQueue(pacing.NewRateLimiter())
	var running sync.WaitGroup
	for range releasers {
		running.Go(func() { d.releaseAll(ctx) })
	}
	posts := meta.Resource(v1alpha1.GroupVersion.WithResource("posts"))
	for _, namespace := range d.o.Namespaces.Scopes() {
		running.Go(func() { d.listAndWatch(ctx, posts.Namespace(namespace), namespace) })
	}
	<-ctx.Done()
	d.queue.ShutDown()
	running.Wait()
	return nil
}

// listAndWatch enqueues deleted finished posts until ctx is done. It lists all finished posts once, to find those that
// were deleted while no manager was watching, and then watches them. The API server ends each watch after half an hour;
// the next one resumes at the last version.
func (d *deletions) listAndWatch(ctx context.Context, posts metadata.ResourceInterface, namespace string) {
	log := ctrl.Log.WithName("deletions")
	version := ""
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		var err error
		if version == "" {
			version, err = d.list(ctx, posts)
			if err == nil {
				err = d.listReapplied(ctx, namespace)
			}
			if err != nil {
				version = "" // list all posts again
			}
		}
		if err == nil {
			version, err = d.watch(ctx, posts, version)
		}
		if err != nil && ctx.Err() == nil {
			log.V(1).Info("the watch for deleted posts ended; restarting it", "all", version == "", "error", err.Error())
		}
	}, deletionsPause)
}

func (d *deletions) list(ctx context.Context, posts metadata.ResourceInterface) (version string, err error) {
	err = kubeclient.EachPage(ctx, func(ctx context.Context, of kubeclient.Page) (string, error) {
		page, err := posts.List(ctx, metav1.ListOptions{FieldSelector: finishedPosts, Limit: of.Limit, Continue: of.Continue})
		if err != nil {
			return "", fmt.Errorf("cannot list finished posts: %w", err)
		}
		for i := range page.Items {
			d.observe(&page.Items[i])
		}
		version = page.ResourceVersion
		return page.Continue, nil
	})
	if err != nil {
		return "", err
	}
	return version, nil
}

// watch processes changes to finished posts, and returns the version to resume at, or "" if it has expired.
func (d *deletions) watch(ctx context.Context, posts metadata.ResourceInterface, version string) (string, error) {
	w, err := posts.Watch(ctx, metav1.ListOptions{FieldSelector: finishedPosts, ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return resumeVersion(version, err), fmt.Errorf("cannot watch finished posts: %w", err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		if ev.Type == watch.Error {
			err := apierrors.FromObject(ev.Object)
			return resumeVersion(version, err), fmt.Errorf("the watch failed: %w", err)
		}
		m, ok := ev.Object.(*metav1.PartialObjectMetadata)
		if !ok {
			continue
		}
		if m.ResourceVersion != "" {
			version = m.ResourceVersion
		}
		if ev.Type == watch.Added || ev.Type == watch.Modified {
			d.observe(m)
		}
		if ev.Type == watch.Modified && m.Generation > 1 { // a cancelled post was changed at least once
			d.enqueue(m)
		}
	}
	return version, errors.New("the watch ended")
}

func resumeVersion(version string, err error) string {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return ""
	}
	return version
}

func (d *deletions) observe(m *metav1.PartialObjectMetadata) {
	if !m.DeletionTimestamp.IsZero() && controllerutil.ContainsFinalizer(m, v1alpha1.DeliveryFinalizer) {
		d.enqueue(m)
	}
}

func (d *deletions) enqueue(post client.Object) {
	d.queue.Add(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(post)})
}

// releaseAll releases posts until the queue shuts down. A failed release is retried until the post is gone.
func (d *deletions) releaseAll(ctx context.Context) {
	log := ctrl.Log.WithName("deletions")
	for {
		request, over := d.queue.Get()
		if over {
			return
		}
		err, waits := d.release(ctx, request.NamespacedName), new(WaitError)
		switch {
		case err == nil:
			d.queue.Forget(request)
		case errors.As(err, &waits) && errors.Is(err, errYoung):
			d.queue.AddAfter(request, waits.Pause)
		case errors.As(err, &waits):
			d.queue.AddRateLimited(request) // The failure has already been logged.
		case ctx.Err() == nil:
			if apierrors.IsConflict(err) {
				log.V(1).Info("a finished post has changed; retrying", "namespace", request.Namespace, "name", request.Name)
			} else {
				log.Error(err, "cannot release a finished post; retrying", "namespace", request.Namespace, "name", request.Name)
			}
			d.queue.AddRateLimited(request)
		}
		d.queue.Done(request)
	}
}

// release removes the finalizer of a deleted finished post, and describes a cancelled post that was applied again.
// While the store is unavailable, posts that wait for it are not read again.
func (d *deletions) release(ctx context.Context, key types.NamespacedName) error {
	d.mu.Lock()
	since, waits := d.waiting[key]
	d.mu.Unlock()
	if waits && d.finalizers.mustWait(ctx, key.Namespace, since) {
		return &WaitError{why: errStoreUnavailable}
	}
	var post v1alpha1.Post
	err := d.o.APIReader.Get(ctx, key, &post)
	switch {
	case err != nil || !post.Status.Finished:
	case !post.DeletionTimestamp.IsZero():
		err = d.finalizers.Release(ctx, &post)
	case isReapplied(&post):
		err = d.describeReapplied(ctx, &post)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if errors.As(err, new(*WaitError)) && !errors.Is(err, errYoung) {
		d.waiting[key] = post.DeletionTimestamp.Time
	} else {
		delete(d.waiting, key)
	}
	return client.IgnoreNotFound(err)
}
