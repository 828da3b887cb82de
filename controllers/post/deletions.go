// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/pages"
)

// deletions lets finished posts go when they are deleted. The manager's
// cache does not hold finished posts, so their deletion is seen by a watch of
// its own, which keeps nothing: it takes the metadata of finished posts as it
// passes by.
type deletions struct {
	reconciler *Reconciler
	config     *rest.Config
	client     *http.Client
	// namespaces are those that this installation serves.
	namespaces configv1alpha1.Namespaces
}

// deletionsPause is the pause between two watches.
const deletionsPause = time.Second

// finishedPosts selects what the manager's cache leaves out.
const finishedPosts = "status.finished=true"

// Start watches until the context ends. It runs on the leader only.
func (d *deletions) Start(ctx context.Context) error {
	meta, err := metadata.NewForConfigAndClient(d.config, d.client)
	if err != nil {
		return fmt.Errorf("cannot watch for deleted posts: %w", err)
	}
	posts := meta.Resource(v1alpha1.GroupVersion.WithResource("posts"))
	namespaces := d.namespaces
	if len(namespaces) == 0 {
		namespaces = []string{metav1.NamespaceAll}
	}
	var watches sync.WaitGroup
	for _, namespace := range namespaces {
		watches.Go(func() { d.watch(ctx, posts.Namespace(namespace)) })
	}
	watches.Wait()
	return nil
}

// watch follows the finished posts until the context ends.
func (d *deletions) watch(ctx context.Context, posts metadata.ResourceInterface) {
	log := ctrl.Log.WithName("deletions")
	wait.UntilWithContext(ctx, func(ctx context.Context) {
		if err := d.follow(ctx, posts); err != nil && ctx.Err() == nil {
			log.V(1).Info("the watch for deleted posts ended; starting it again", "error", err.Error())
		}
	}, deletionsPause)
}

// follow reads the finished posts once, for those that were deleted while
// no manager watched, and then follows their changes.
func (d *deletions) follow(ctx context.Context, posts metadata.ResourceInterface) error {
	var version string
	err := pages.Each(ctx, func(ctx context.Context, of pages.Page) (string, error) {
		page, err := posts.List(ctx, metav1.ListOptions{FieldSelector: finishedPosts, Limit: of.Limit, Continue: of.Continue})
		if err != nil {
			return "", fmt.Errorf("cannot list finished posts: %w", err)
		}
		for i := range page.Items {
			d.see(ctx, &page.Items[i])
		}
		version = page.ResourceVersion
		return page.Continue, nil
	})
	if err != nil {
		return err
	}
	w, err := posts.Watch(ctx, metav1.ListOptions{FieldSelector: finishedPosts, ResourceVersion: version, AllowWatchBookmarks: true})
	if err != nil {
		return fmt.Errorf("cannot watch finished posts: %w", err)
	}
	defer w.Stop()
	for ev := range w.ResultChan() {
		if ev.Type == watch.Error {
			return fmt.Errorf("the watch broke off: %v", ev.Object)
		}
		if m, ok := ev.Object.(*metav1.PartialObjectMetadata); ok && ev.Type != watch.Deleted {
			d.see(ctx, m)
		}
	}
	return errors.New("the watch ended")
}

// see releases a finished post that is being deleted. One that cannot be
// released stays for the next time that the watch begins, some minutes later.
func (d *deletions) see(ctx context.Context, m *metav1.PartialObjectMetadata) {
	if m.DeletionTimestamp.IsZero() || !controllerutil.ContainsFinalizer(m, v1alpha1.DeliveryFinalizer) {
		return
	}
	c, live := d.reconciler.o.Client, d.reconciler.o.APIReader
	err := retry.OnError(retry.DefaultBackoff, func(error) bool { return ctx.Err() == nil }, func() error {
		var post v1alpha1.Post
		err := live.Get(ctx, client.ObjectKeyFromObject(m), &post)
		if err == nil && post.Status.Finished && !post.DeletionTimestamp.IsZero() {
			err = removeFinalizer(ctx, c, &post)
		}
		return client.IgnoreNotFound(err)
	})
	if err != nil && ctx.Err() == nil {
		ctrl.Log.WithName("deletions").Error(err, "cannot release a deleted post yet", "namespace", m.Namespace, "name", m.Name)
	}
}
