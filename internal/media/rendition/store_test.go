// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"io"
	"maps"
	"os"
	"sync"
	"testing"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

// memory is a store that counts its requests, and fails on request.
type memory struct {
	mu      sync.Mutex
	files   map[string]kept
	looks   int
	puts    int
	openErr error
	cutAt   int64
}

type kept struct {
	object store.Object
	data   []byte
}

func newMemory() *memory { return &memory{files: map[string]kept{}} }

func (m *memory) PutTagged(_ context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (store.Object, error) {
	data, err := io.ReadAll(body)
	if err != nil || int64(len(data)) != size {
		return store.Object{}, errors.Join(err, errors.New("short"))
	}
	sum := md5.Sum(data)
	object := store.Object{Key: key, Size: size, ETag: hex.EncodeToString(sum[:]), ContentType: mimeType, Tags: maps.Clone(tags)}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[key] = kept{object, data}
	m.puts++
	return object, nil
}

// Put stores the cache's markers. It is not counted.
func (m *memory) Put(ctx context.Context, key, mimeType string, size int64, body io.Reader) (store.Object, error) {
	object, err := m.PutTagged(ctx, key, mimeType, size, body, nil)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.puts--
	return object, err
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.files, key)
	return nil
}

func (m *memory) Stat(_ context.Context, key string) (store.Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.looks++
	file, ok := m.files[key]
	if !ok {
		return store.Object{}, store.ErrNotFound
	}
	return file.object, nil
}

func (m *memory) read(key, etag string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	file, ok := m.files[key]
	switch {
	case !ok:
		return nil, store.ErrNotFound
	case file.object.ETag != etag:
		return nil, store.ErrChanged
	}
	return file.data, nil
}

func (m *memory) Open(_ context.Context, key, etag string, offset, length int64) (io.ReadCloser, error) {
	data, err := m.read(key, etag)
	if err != nil {
		return nil, err
	}
	part := io.Reader(bytes.NewReader(data[offset:][:length]))
	if m.openErr != nil {
		part = io.MultiReader(io.LimitReader(part, m.cutAt), failing{m.openErr})
	}
	return io.NopCloser(part), nil
}

func (m *memory) ReaderAt(_ context.Context, key, etag string, _ int64) io.ReaderAt {
	return readerAt(func(p []byte, off int64) (int, error) {
		data, err := m.read(key, etag)
		if err != nil {
			return 0, err
		}
		return bytes.NewReader(data).ReadAt(p, off)
	})
}

type readerAt func(p []byte, off int64) (int, error)

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return r(p, off) }

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// source puts a file into the store, as if it had been uploaded.
func (m *memory) source(t *testing.T, data []byte, mimeType string) rendition.Source {
	t.Helper()
	const key = "team/3d4b2c1a-0000-4000-8000-000000000001"
	object, err := m.PutTagged(t.Context(), key, mimeType, int64(len(data)), bytes.NewReader(data), nil)
	must.Succeed(t, err)
	m.puts = 0
	return rendition.Source{Key: key, ETag: object.ETag, MIMEType: mimeType, Size: object.Size}
}

// stopping blocks the read of the first image until it may continue.
type stopping struct {
	*memory

	begun, goOn chan struct{}
}

func (s stopping) Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error) {
	select {
	case <-s.goOn:
	default:
		close(s.begun)
		<-s.goOn
	}
	return s.memory.Open(ctx, key, etag, offset, length)
}

// TestMain makes this program the separate process that it starts, and a process that is killed.
func TestMain(m *testing.M) {
	if rendition.IsChild(os.Args[1:]) {
		os.Exit(rendition.DecodeMain(os.Args[1:]))
	}
	if config := os.Getenv(aStore); config != "" {
		begin(config)
		os.Exit(0)
	}
	os.Exit(m.Run())
}
