// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bare

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	toolswatch "k8s.io/client-go/tools/watch"

	"github.com/herald-social/herald/api/v1alpha1"
)

const postsResource = "posts"

// create is the first half of the bare pair.
type create struct {
	config Config
	client rest.Interface
}

func newCreate(config Config) (*create, error) {
	client, err := postsClient(config.Kubeconfig)
	return &create{config: config, client: client}, err
}

func (c *create) warm(ctx context.Context) error {
	return each(ctx, c.config.InFlight, c.config.Warm, c.createOne)
}

func (c *create) run(ctx context.Context) error {
	return each(ctx, c.config.InFlight, c.config.Count, c.createOne)
}

// createOne sets a name as long as those that the apiserver generates.
func (c *create) createOne(ctx context.Context, _ int) error {
	post := *c.config.Post
	post.Name = "p" + strings.ToLower(rand.Text()[:25])
	var created v1alpha1.Post
	return c.client.Post().Namespace(post.Namespace).Resource(postsResource).Body(&post).Do(ctx).Into(&created)
}

// answer is the second half of the bare pair: a controller without logic.
type answer struct {
	config Config
	client rest.Interface
	posts  chan *v1alpha1.Post
	source *cache.ListWatch
	// version is the watch's initial resource version.
	version string
}

func newAnswer(config Config) (*answer, error) {
	if len(config.Statuses) != 1 {
		return nil, errors.New("answer writes one status")
	}
	client, err := postsClient(config.Kubeconfig)
	if err != nil {
		return nil, err
	}
	source := cache.NewListWatchFromClient(client, postsResource, metav1.NamespaceAll, fields.Everything())
	return &answer{config: config, client: client, source: source, posts: make(chan *v1alpha1.Post, config.Count)}, nil
}

// warm records the version at which the watch starts, so posts created before the measurement get a status as well.
func (a *answer) warm(ctx context.Context) error {
	list, err := a.source.ListWithContext(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return err
	}
	posts, ok := list.(*v1alpha1.PostList)
	if !ok {
		return fmt.Errorf("a list of posts returned a %T", list)
	}
	a.version = posts.ResourceVersion
	return nil
}

func (a *answer) run(ctx context.Context) error {
	// The API server ends a watch now and then; this watcher resumes it.
	w, err := toolswatch.NewRetryWatcherWithContext(ctx, a.version, a.source)
	if err != nil {
		return err
	}
	defer w.Stop()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.follow(ctx, w.ResultChan()) })
	group.Go(func() error { return each(ctx, a.config.InFlight, a.config.Count, a.answerOne) })
	return group.Wait()
}

// follow passes on the posts that are created.
func (a *answer) follow(ctx context.Context, events <-chan watch.Event) error {
	for seen := 0; seen < a.config.Count; {
		select {
		case event, ok := <-events:
			if !ok || event.Type == watch.Error {
				return fmt.Errorf("the watch of posts ended: %w", apierrors.FromObject(event.Object))
			}
			post, ok := event.Object.(*v1alpha1.Post)
			if !ok {
				return fmt.Errorf("a watch of posts returned a %T", event.Object)
			}
			if event.Type == watch.Added {
				seen++
				a.posts <- post
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func (a *answer) answerOne(ctx context.Context, _ int) error {
	select {
	case post := <-a.posts:
		post.Status = a.config.Statuses[0]
		return writeStatus(ctx, a.client, post)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// writeStatus updates a post's status and copies the response into the post.
func writeStatus(ctx context.Context, client rest.Interface, post *v1alpha1.Post) error {
	var written v1alpha1.Post
	err := client.Put().Namespace(post.Namespace).Resource(postsResource).Name(post.Name).SubResource("status").Body(post).Do(ctx).Into(&written)
	if err != nil {
		return err
	}
	*post = written
	return nil
}
