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
	"github.com/herald-social/herald/internal/pager"
)

// PostFeed feeds the index of posts from a watch. It keeps no post: each one is
// summed up as it passes by, and a list of all of them comes in by pages.
type PostFeed struct {
	client      rest.Interface
	index       *postindex.Index
	summarise   func(*v1alpha1.Post) postindex.Summary
	reflectors  reflectors
	subscribers *subscribers
}

// NewPostFeed returns a feed for index of the posts in the namespaces that are served.
func NewPostFeed(client rest.Interface, served configv1alpha1.Namespaces, index *postindex.Index,
	summarise func(*v1alpha1.Post) postindex.Summary,
) *PostFeed {
	f := &PostFeed{client: client, index: index, summarise: summarise, subscribers: newSubscribers()}
	f.reflectors = newReflectors(served, func(namespace string, listed func()) *cache.Reflector {
		store := &feedStore{feed: f, namespace: namespace, watch: index.Watch(namespace), listed: listed}
		source := cache.NewListWatchFromClient(client, postsResource, namespace, fields.Everything())
		source.ListWithContextFunc = store.list
		return cache.NewReflectorWithOptions(
			cache.ToListWatcherWithWatchListSemantics(source, noWatchList{}), &v1alpha1.Post{}, store, cache.ReflectorOptions{Name: postsResource})
	})
	return f
}

// Run watches until the context ends. A watch that breaks off goes on where it
// was; one that the Kubernetes API cannot take up again begins with a list.
func (f *PostFeed) Run(ctx context.Context) { f.reflectors.run(ctx) }

// Synced is closed once the index holds all posts that there were at the start.
func (f *PostFeed) Synced() <-chan struct{} { return f.reflectors.synced }

// Subscribe returns a channel that receives after the watch reported a change of a post: once
// for several changes that nobody has received yet. stop ends it. ok is false if
// maxSubscribers follow already.
func (f *PostFeed) Subscribe(namespace, name string) (changes <-chan struct{}, stop func(), ok bool) {
	return f.subscribers.subscribe(postKey{namespace, name})
}

// noWatchList has the reflector call List. A list that comes by the watch would be
// put together by the reflector as well.
type noWatchList struct{}

// IsWatchListSemanticsUnSupported is what the reflector asks.
func (noWatchList) IsWatchListSemanticsUnSupported() bool { return true }

// feedStore takes what the reflector of a namespace reads, or that of all.
type feedStore struct {
	feed      *PostFeed
	namespace string
	watch     *postindex.Watch
	// listed is called once all posts are in the index.
	listed func()
}

var (
	_ cache.ReflectorStore         = &feedStore{}
	_ cache.ReflectorBookmarkStore = &feedStore{}
)

// list takes all posts of the namespace as they are at one moment into the index, page by page. It
// answers with an empty list as of that moment: the reflector would put all posts
// together first. What it asks for is not heeded. Only a list without a
// resourceVersion comes in pages.
func (s *feedStore) list(ctx context.Context, _ metav1.ListOptions) (runtime.Object, error) {
	var relist *postindex.Relist
	all := &v1alpha1.PostList{}
	err := pager.EachPage(ctx, func(ctx context.Context, of pager.Page) (string, error) {
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

// addPage takes the posts of a page into the index.
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

// Add adds a post that the watch reported as new.
func (s *feedStore) Add(obj any) error { return s.Update(obj) }

// Update updates a post that the watch reported.
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

// Delete removes a post that the watch reported as deleted.
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

// Replace comes after a list, which the index has already taken in. What changed while
// nothing was watched is not known, so that every post may have.
func (s *feedStore) Replace([]any, string) error {
	s.feed.subscribers.allChanged()
	s.listed()
	return nil
}

// Bookmark records how far the watch has come.
func (s *feedStore) Bookmark(resourceVersion string) error {
	version, err := postindex.ParseVersion(resourceVersion)
	if err != nil {
		return err
	}
	s.watch.Progress(version)
	return nil
}

// Resync has nothing to do: the index is what there is.
func (*feedStore) Resync() error { return nil }

func reported(obj any) (*v1alpha1.Post, uint64, error) {
	post, ok := obj.(*v1alpha1.Post)
	if !ok {
		return nil, 0, fmt.Errorf("%T is not a Post", obj)
	}
	version, err := postindex.ParseVersion(post.ResourceVersion)
	return post, version, err
}
