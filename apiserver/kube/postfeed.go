// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/internal/kubeclient"
)

// PostFeed feeds the post index from a watch. It caches no posts: each is reduced to its summary, and lists are read in
// pages.
type PostFeed struct {
	client      rest.Interface
	index       *postindex.Index
	summarise   func(*v1alpha1.Post) postindex.Summary
	reflectors  reflectors
	subscribers *subscribers
}

// NewPostFeed returns a feed of the posts in the served namespaces into index.
func NewPostFeed(client rest.Interface, served configv1alpha1.Namespaces, index *postindex.Index,
	summarise func(*v1alpha1.Post) postindex.Summary,
) *PostFeed {
	f := &PostFeed{client: client, index: index, summarise: summarise, subscribers: newSubscribers()}
	f.reflectors = newReflectors(served, func(namespace string, listed func()) *cache.Reflector {
		store := &feedStore{feed: f, namespace: namespace, watch: index.Watch(namespace), listed: listed}
		source := cache.NewListWatchFromClient(client, postsResource, namespace, fields.Everything())
		source.ListWithContextFunc = store.list
		return cache.NewReflectorWithOptions(
			cache.ToListWatcherWithWatchListSemantics(onForbidden(namespace, listed, source), noWatchList{}), &v1alpha1.Post{}, store, cache.ReflectorOptions{Name: postsResource})
	})
	return f
}

// Run watches until the context is done. An interrupted watch resumes; if the Kubernetes API cannot resume it, it
// starts over with a list.
func (f *PostFeed) Run(ctx context.Context) { f.reflectors.run(ctx) }

// Synced is closed once the index has the initial list of posts.
func (f *PostFeed) Synced() <-chan struct{} { return f.reflectors.synced }

// Subscribe returns a channel that receives a signal after the watch has reported a change to a post. Signals that are
// not received are merged into one. stop ends the subscription. ok is false if there are already maxSubscribers.
func (f *PostFeed) Subscribe(namespace, name string) (changes <-chan struct{}, stop func(), ok bool) {
	return f.subscribers.subscribe(postKey{namespace, name})
}

// noWatchList makes the reflector call List. Otherwise, it would collect a streamed list in memory.
type noWatchList struct{}

func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// feedStore receives a reflector's posts, from one namespace or from all.
type feedStore struct {
	feed      *PostFeed
	namespace string
	watch     *postindex.Watch
	// listed is called after each list, once the index has all posts.
	listed func()
}

var (
	_ cache.ReflectorStore         = &feedStore{}
	_ cache.ReflectorBookmarkStore = &feedStore{}
)

// list reads a consistent list of the namespace's posts into the index, page by page. It returns an empty list with
// that resourceVersion, so that the reflector does not collect all posts in memory. It ignores the options: only lists
// without a resourceVersion are paged.
func (s *feedStore) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	var relist *postindex.Relist
	all := &v1alpha1.PostList{}
	err := kubeclient.EachPage(ctx, func(ctx context.Context, of kubeclient.Page) (string, error) {
		var page v1alpha1.PostList
		options := metav1.ListOptions{Limit: of.Limit, Continue: of.Continue}
		err := s.feed.client.Get().Namespace(s.namespace).Resource(postsResource).VersionedParams(&options, metav1.ParameterCodec).Do(ctx).Into(&page)
		if err != nil {
			return "", err
		}
		if relist == nil {
			version, err := postindex.ParseVersion(page.ResourceVersion)
			if err != nil {
				return "", err
			}
			relist = s.watch.Relist(version)
		}
		all.ResourceVersion = page.ResourceVersion
		return page.Continue, s.feed.addPage(relist, page.Items)
	})
	if err != nil {
		return nil, err
	}
	relist.Done()
	return all, nil
}

func (f *PostFeed) addPage(relist *postindex.Relist, posts []v1alpha1.Post) error {
	for i := range posts {
		version, err := postindex.ParseVersion(posts[i].ResourceVersion)
		if err != nil {
			return err
		}
		relist.Add(posts[i].Namespace, f.summarise(&posts[i]), version)
	}
	return nil
}

func (s *feedStore) Add(obj any) error { return s.Update(obj) }

func (s *feedStore) Update(obj any) error {
	post, version, err := reported(obj)
	if err != nil {
		return err
	}
	s.feed.index.Upsert(post.Namespace, s.feed.summarise(post), version)
	s.watch.Progress(version)
	s.feed.subscribers.changed(postKey{post.Namespace, post.Name})
	return nil
}

func (s *feedStore) Delete(obj any) error {
	post, version, err := reported(obj)
	if err != nil {
		return err
	}
	s.feed.index.Delete(post.Namespace, post.Name, version)
	s.watch.Progress(version)
	s.feed.subscribers.changed(postKey{post.Namespace, post.Name})
	return nil
}

// Replace runs after a list, which the index already has. The changes during the gap in the watch are unknown, so all
// subscribers are signaled.
func (s *feedStore) Replace([]any, string) error {
	s.feed.subscribers.allChanged()
	s.listed()
	return nil
}

func (s *feedStore) Bookmark(resourceVersion string) error {
	version, err := postindex.ParseVersion(resourceVersion)
	if err != nil {
		return err
	}
	s.watch.Progress(version)
	return nil
}

// Resync does nothing: the index is the only copy.
func (*feedStore) Resync() error { return nil }

func reported(obj any) (*v1alpha1.Post, uint64, error) {
	post, ok := obj.(*v1alpha1.Post)
	if !ok {
		return nil, 0, fmt.Errorf("%T is not a Post", obj)
	}
	version, err := postindex.ParseVersion(post.ResourceVersion)
	return post, version, err
}
