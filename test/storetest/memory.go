// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/herald-social/herald/internal/media/store"
)

// ErrCut is the error of a link that was cut; see Memory.Cut.
var ErrCut = errors.New("the link was cut")

// Memory is an in-memory store of documents whose operations can fail.
type Memory struct {
	// Files are the documents, by key.
	Files map[string][]byte
	// Reads counts the documents read.
	Reads int

	mu       sync.Mutex
	modified map[string]time.Time
	now      func() time.Time
	// left is the number of operations that succeed before the link is cut; if it is negative, all succeed. applied
	// lets the first failed operation take effect.
	left    int
	applied bool
}

// NewMemory returns an empty store. now is the clock for the times of documents.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{Files: map[string][]byte{}, modified: map[string]time.Time{}, now: now, left: -1}
}

// Cut lets left operations succeed. The next one fails, but takes effect if applied is true. All later ones fail and
// have no effect.
func (m *Memory) Cut(left int, applied bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left, m.applied = left, applied
}

// Mend lets all operations succeed.
func (m *Memory) Mend() { m.Cut(-1, false) }

// begin reports whether an operation takes effect, and returns its error.
func (m *Memory) begin() (effect bool, err error) {
	if m.left < 0 {
		return true, nil
	}
	if m.left > 0 {
		m.left--
		return true, nil
	}
	effect, m.applied = m.applied, false
	return effect, ErrCut
}

func etagOf(data []byte) string { return fmt.Sprintf("%x", md5.Sum(data)) }

// ReadDocument reads a document, as store.Store does.
func (m *Memory) ReadDocument(_ context.Context, key, known string, _ int64) (data []byte, etag string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, err := m.begin(); err != nil {
		return nil, "", err
	}
	m.Reads++
	data, ok := m.Files[key]
	if !ok {
		return nil, "", store.ErrNotFound
	}
	if known == etagOf(data) {
		return nil, known, store.ErrSame
	}
	return slices.Clone(data), etagOf(data), nil
}

// PutDocument stores a document conditionally, as store.Store does.
func (m *Memory) PutDocument(_ context.Context, key, _ string, data []byte, etag string) (string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	effect, err := m.begin()
	old, ok := m.Files[key]
	switch {
	case etag == store.Any:
	case ok != (etag != ""), ok && etagOf(old) != etag:
		return "", errors.Join(err, store.ErrChanged)
	}
	if effect {
		m.Files[key], m.modified[key] = slices.Clone(data), m.now()
	}
	return etagOf(data), err
}

// Delete removes a document.
func (m *Memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	effect, err := m.begin()
	if effect {
		delete(m.Files, key)
	}
	return err
}

// List lists documents in order.
func (m *Memory) List(_ context.Context, prefix string) iter.Seq2[store.Object, error] {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err := m.begin()
	var objects []store.Object
	for _, key := range slices.Sorted(maps.Keys(m.Files)) {
		if strings.HasPrefix(key, prefix) {
			objects = append(objects, store.Object{Key: key, ModifiedAt: m.modified[key]})
		}
	}
	return func(yield func(store.Object, error) bool) {
		if err != nil {
			yield(store.Object{}, err)
			return
		}
		for _, o := range objects {
			if !yield(o, nil) {
				return
			}
		}
	}
}
