// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// waiting remembers which posts wait for which connection, so that a change of
// a connection wakes those and no others.
type waiting struct {
	mu     sync.Mutex
	byConn map[types.NamespacedName]map[types.NamespacedName]struct{}
	byPost map[types.NamespacedName]map[types.NamespacedName]struct{}
}

func newWaiting() *waiting {
	return &waiting{
		byConn: map[types.NamespacedName]map[types.NamespacedName]struct{}{},
		byPost: map[types.NamespacedName]map[types.NamespacedName]struct{}{},
	}
}

func (w *waiting) add(conn, post types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	insert(w.byConn, conn, post)
	insert(w.byPost, post, conn)
}

// take returns, and forgets, the posts that wait for a connection.
func (w *waiting) take(conn types.NamespacedName) []types.NamespacedName {
	w.mu.Lock()
	defer w.mu.Unlock()
	var posts []types.NamespacedName
	for post := range w.byConn[conn] {
		posts = append(posts, post)
		remove(w.byPost, post, conn)
	}
	delete(w.byConn, conn)
	return posts
}

// forget drops a post that does not exist any more.
func (w *waiting) forget(post types.NamespacedName) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.byPost[post] {
		remove(w.byConn, conn, post)
	}
	delete(w.byPost, post)
}

func insert(m map[types.NamespacedName]map[types.NamespacedName]struct{}, a, b types.NamespacedName) {
	if m[a] == nil {
		m[a] = map[types.NamespacedName]struct{}{}
	}
	m[a][b] = struct{}{}
}

func remove(m map[types.NamespacedName]map[types.NamespacedName]struct{}, a, b types.NamespacedName) {
	delete(m[a], b)
	if len(m[a]) == 0 {
		delete(m, a)
	}
}
