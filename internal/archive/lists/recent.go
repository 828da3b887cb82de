// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lists

import (
	"container/list"
	"sync"
)

// recent is an LRU cache limited by size in bytes.
type recent[T any] struct {
	mu    sync.Mutex
	room  int
	order *list.List
	at    map[ID]*list.Element
}

type recentEntry[T any] struct {
	id    ID
	value T
	bytes int
}

func newRecent[T any](bytes int) *recent[T] {
	return &recent[T]{room: bytes, order: list.New(), at: map[ID]*list.Element{}}
}

func (r *recent[T]) get(id ID) (value T, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	element := r.at[id]
	if element == nil {
		return value, false
	}
	r.order.MoveToFront(element)
	return element.Value.(*recentEntry[T]).value, true //nolint:forcetypeassert // the list has no other type
}

func (r *recent[T]) add(id ID, value T, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at[id] != nil {
		return
	}
	r.at[id] = r.order.PushFront(&recentEntry[T]{id, value, bytes})
	r.room -= bytes
	for r.room < 0 && r.order.Len() > 0 {
		oldest := r.order.Remove(r.order.Back()).(*recentEntry[T]) //nolint:forcetypeassert // the list has no other type
		delete(r.at, oldest.id)
		r.room += oldest.bytes
	}
}
