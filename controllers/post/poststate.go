// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/posting/delivery"
)

// postState is what the process remembers of one post between two passes.
type postState struct {
	uid types.UID
	// publish holds our last write, and what could not be recorded.
	publish publish.WriteCache
	// prepare holds what was prepared for the targets.
	prepare prepare.Preparations
	// earlier is what the archive has answered about an earlier post of the name; nil before.
	earlier *delivery.Earlier
	// rollbackSeenAt is when it was noticed last that the cluster was put back, before the archive was
	// asked; zero if it never was.
	rollbackSeenAt time.Time
	// recordRequested is set once a record of the post, which is not finished, is to be kept as it stands.
	recordRequested bool
	// quotaBackoff holds the pauses after which it is tried again to count what a plan
	// limits; nil while that can be counted.
	quotaBackoff *wait.Backoff
	// warnAt is when the warning is emitted that the post has no Team, if it has none by then;
	// zero if nothing is held back.
	warnAt time.Time
}

// postStates holds the memory of each post, and which posts wait for which of their
// inputs: a change of a connection or a file wakes those and no others.
type postStates struct {
	mu      sync.Mutex
	byPost  map[types.NamespacedName]*postState
	waiting map[input]map[types.NamespacedName]struct{}
	inputs  map[types.NamespacedName]map[input]struct{}
}

// input names what a post refers to.
type input struct {
	kind string
	types.NamespacedName
}

const (
	kindConnection = "Connection"
	kindMedia      = "Media"
	kindApp        = "App"
)

// appInput is the app on a platform, for whose limit posts wait.
func appInput(platform v1alpha1.Platform) input {
	return input{kindApp, types.NamespacedName{Name: string(platform)}}
}

func newPostStates() *postStates {
	return &postStates{
		byPost:  map[types.NamespacedName]*postState{},
		waiting: map[input]map[types.NamespacedName]struct{}{},
		inputs:  map[types.NamespacedName]map[input]struct{}{},
	}
}

// get returns the memory of a post. Another post of the same name begins anew.
func (m *postStates) get(post types.NamespacedName, uid types.UID) *postState {
	m.mu.Lock()
	defer m.mu.Unlock()
	if known := m.byPost[post]; known != nil && known.uid == uid {
		return known
	}
	m.drop(post)
	m.byPost[post] = &postState{uid: uid}
	return m.byPost[post]
}

// forget drops what is remembered of a post that has left the cache.
func (m *postStates) forget(post types.NamespacedName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(post)
	m.unsubscribe(post)
}

func (m *postStates) drop(post types.NamespacedName) {
	if known := m.byPost[post]; known != nil {
		known.prepare.DropAll()
	}
	delete(m.byPost, post)
}

// subscribe has a post woken by the next change of an input.
func (m *postStates) subscribe(post types.NamespacedName, in input) {
	m.mu.Lock()
	defer m.mu.Unlock()
	insert(m.waiting, in, post)
	insert(m.inputs, post, in)
}

// drain returns the posts that wait for an input, which they do no longer.
func (m *postStates) drain(in input) []types.NamespacedName { return m.drainUpTo(in, wakeAll) }

// drainUpTo does that for so many at most, in no order.
func (m *postStates) drainUpTo(in input, most int) []types.NamespacedName {
	m.mu.Lock()
	defer m.mu.Unlock()
	var posts []types.NamespacedName
	for post := range m.waiting[in] {
		if len(posts) == most {
			break
		}
		posts = append(posts, post)
	}
	for _, post := range posts {
		remove(m.inputs, post, in)
		remove(m.waiting, in, post)
	}
	return posts
}

// drainKind returns the posts that wait for any input of a kind, which they do no longer.
func (m *postStates) drainKind(kind string) (posts []types.NamespacedName) {
	m.mu.Lock()
	var all []input
	for in := range m.waiting {
		if in.kind == kind {
			all = append(all, in)
		}
	}
	m.mu.Unlock()
	for _, in := range all {
		posts = append(posts, m.drain(in)...)
	}
	return posts
}

// prune is called at the end of a pass: a post that waits for no input is not woken
// by one, and an empty memory takes no room.
func (m *postStates) prune(post types.NamespacedName, waits bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !waits {
		m.unsubscribe(post)
	}
	if known := m.byPost[post]; known != nil && known.publish.Empty() && known.prepare.Empty() && known.quotaBackoff == nil && known.warnAt.IsZero() {
		delete(m.byPost, post)
	}
}

func (m *postStates) unsubscribe(post types.NamespacedName) {
	for in := range m.inputs[post] {
		remove(m.waiting, in, post)
	}
	delete(m.inputs, post)
}

func insert[K, V comparable](m map[K]map[V]struct{}, key K, value V) {
	if m[key] == nil {
		m[key] = map[V]struct{}{}
	}
	m[key][value] = struct{}{}
}

func remove[K, V comparable](m map[K]map[V]struct{}, key K, value V) {
	delete(m[key], value)
	if len(m[key]) == 0 {
		delete(m, key)
	}
}
