// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"math"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/controllers/post/internal/prepare"
	"github.com/herald-social/herald/controllers/post/internal/publish"
	"github.com/herald-social/herald/posting/delivery"
)

type postState struct {
	uid     types.UID
	publish publish.WriteCache
	prepare prepare.Preparations
	// earlier is the archive's response about an earlier post with the same name, or nil before the lookup.
	earlier *delivery.Earlier
	// rollbackSeenAt is the detection time of the last rollback before the archive lookup, or zero if there was none.
	rollbackSeenAt  time.Time
	recordRequested bool
	quotaBackoff    *wait.Backoff
	// warnAt is the time of the delayed warning that the post has no Team, or zero if there is none.
	warnAt time.Time
}

// postStates holds the state of each post, and the posts that wait for each input. A change to a connection or a file
// wakes only the posts that wait for it.
type postStates struct {
	mu      sync.Mutex
	byPost  map[types.NamespacedName]*postState
	waiting map[input]map[types.NamespacedName]struct{}
	inputs  map[types.NamespacedName]map[input]struct{}
}

type input struct {
	kind string
	types.NamespacedName
}

const (
	kindConnection = "Connection"
	kindMedia      = "Media"
	kindApp        = "App"
)

func appInput(platform v1alpha1.Platform) input {
	return input{kindApp, types.NamespacedName{Name: string(platform)}}
}

// kindSuspension is the input that a suspended team's posts wait for: the end of the suspension.
const kindSuspension = "Suspension"

func suspensionInput(namespace string) input {
	return input{kindSuspension, types.NamespacedName{Namespace: namespace}}
}

func newPostStates() *postStates {
	return &postStates{
		byPost:  map[types.NamespacedName]*postState{},
		waiting: map[input]map[types.NamespacedName]struct{}{},
		inputs:  map[types.NamespacedName]map[input]struct{}{},
	}
}

// get returns the state of a post. A new post of the same name gets a new state.
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

func (m *postStates) subscribe(post types.NamespacedName, in input) {
	m.mu.Lock()
	defer m.mu.Unlock()
	insert(m.waiting, in, post)
	insert(m.inputs, post, in)
}

// drain returns the posts that wait for an input, and removes their subscriptions to it.
func (m *postStates) drain(in input) []types.NamespacedName { return m.drainUpTo(in, math.MaxInt) }

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

// prune ends a reconciliation: it removes the subscriptions of a post that does not wait for any input, and drops an
// empty state.
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
