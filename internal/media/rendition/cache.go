// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/media/store"
)

// FileStore reads and writes files; *store.Store implements it.
type FileStore interface {
	Stat(ctx context.Context, key string) (store.Object, error)
	ReaderAt(ctx context.Context, key, etag string, size int64) io.ReaderAt
	Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error)
	Put(ctx context.Context, key, mimeType string, size int64, body io.Reader) (store.Object, error)
	PutTagged(ctx context.Context, key, mimeType string, size int64, body io.Reader, tags map[string]string) (store.Object, error)
	Delete(ctx context.Context, key string) error
}

// Cache stores renditions in the store, next to their sources, and limits their concurrent creation, with teams
// taking turns. It is safe for concurrent use.
type Cache struct {
	store FileStore
	// recent caches the most recently requested renditions, by key.
	recent *lru.Cache
	// finished holds the keys of finished work whose marker could not be deleted.
	finished *lru.Cache
	// slots limits concurrent work.
	slots Slots
}

// Output is a new rendition. Width and height are in pixels.
type Output struct {
	// Data is the content. If it is too large for memory, Body has it, with Size bytes, and is closed after reading.
	Data          []byte
	Body          io.ReadCloser
	Size          int64
	MIMEType      string
	Width, Height int
	// Blank is Rendition.Blank.
	Blank bool
}

// tags returns the tags that the rendition is stored with.
func (m *Output) tags() map[string]string {
	tags := map[string]string{widthTag: strconv.Itoa(m.Width), heightTag: strconv.Itoa(m.Height)}
	if m.Blank {
		tags[blankTag] = strconv.FormatBool(true)
	}
	return tags
}

// body returns the content and its length in bytes.
func (m *Output) body() (io.ReadCloser, int64) {
	if m.Body != nil {
		return m.Body, m.Size
	}
	return io.NopCloser(bytes.NewReader(m.Data)), int64(len(m.Data))
}

// ErrBusy is returned if other files were being converted until the context was done.
var ErrBusy = errors.New("other images are being converted")

const remembered = 4096

// The tags that a rendition is stored with.
const widthTag, heightTag, blankTag = "width", "height", "blank"

// NewCache returns a Cache whose work takes the given slots.
func NewCache(store FileStore, turns Slots) *Cache {
	return &Cache{store: store, recent: lru.New(remembered), finished: lru.New(remembered), slots: turns}
}

// Find returns the rendition under a key, from memory or else from the store. The error is store.ErrNotFound if
// missing.
func (s *Cache) Find(ctx context.Context, key string) (Rendition, error) {
	if known, ok := s.recent.Get(key); ok {
		if r, ok := known.(Rendition); ok {
			return r, nil
		}
	}
	return s.stat(ctx, key)
}

// stat is like Find, but does not look in memory.
func (s *Cache) stat(ctx context.Context, key string) (Rendition, error) {
	object, err := s.store.Stat(ctx, key)
	if err != nil {
		s.recent.Remove(key)
		return Rendition{}, err
	}
	return s.remember(object), nil
}

// Forget makes Find read from the store again.
func (s *Cache) Forget(r Rendition) { s.recent.Remove(r.Key) }

// GetOrCreate returns the rendition under the given key, and makes it if the store has none. The error is ErrBusy if it
// got no slot, and an *ExhaustedError if create returned one, now or earlier, or if the work was started too often
// without finishing; any other comes from create or the store.
func (s *Cache) GetOrCreate(ctx context.Context, key string, create func() (Output, error)) (Rendition, error) {
	if r, err := s.stat(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	team, _, _ := strings.Cut(key, "/")
	leave, err := s.slots.queue.acquire(ctx, team, key)
	if err != nil {
		return Rendition{}, fmt.Errorf("%w: %w", ErrBusy, err)
	}
	defer leave()
	// Another call may have made it in the meantime.
	if r, err := s.stat(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	m, err := s.recordStart(ctx, key)
	if err != nil {
		return Rendition{}, err
	}
	output, err := create()
	if err != nil {
		s.recordEnd(ctx, key, m, err)
		return Rendition{}, err
	}
	body, size := output.body()
	object, err := s.store.PutTagged(ctx, key, output.MIMEType, size, body, output.tags())
	_ = body.Close() // Close errors do not affect the data read.
	s.recordEnd(ctx, key, m, err)
	if err != nil {
		return Rendition{}, err
	}
	return s.remember(object), nil
}

// attemptMarker is a file in the store that records that work has started. It is stored next to the rendition before
// the work starts, and deleted afterwards. It remains only if the process dies.
type attemptMarker struct {
	// Attempts is how often the work was started without finishing.
	Attempts int `json:"begun"`
	// Exhausted is the reason not to start again, or "" if there is none.
	Exhausted Resource `json:"exhausted,omitempty"`
}

const (
	markType = "application/json"
	// longestMark is the maximum size of a marker that is read.
	longestMark = 1 << 10
	// markTimeout is the timeout for writing or deleting a marker after the work, even if its context is done.
	markTimeout = 5 * time.Second
)

func markerKey(key string) string { return key + "begun" }

// recordStart records that work starts. The error is an *ExhaustedError if the work must not start.
func (s *Cache) recordStart(ctx context.Context, key string) (attemptMarker, error) {
	m, err := s.readMarker(ctx, key)
	switch {
	case err != nil:
		return m, err
	case m.Exhausted != "":
		return m, &ExhaustedError{Of: m.Exhausted}
	}
	if _, settled := s.finished.Get(key); settled {
		m.Attempts = 0
	}
	if m.Attempts >= maxTries {
		return m, &ExhaustedError{Of: ResourceTries}
	}
	m.Attempts++
	err = s.writeMarker(ctx, key, m)
	if err == nil {
		s.finished.Remove(key)
	}
	return m, err
}

func (s *Cache) readMarker(ctx context.Context, key string) (m attemptMarker, err error) {
	object, err := s.store.Stat(ctx, markerKey(key))
	if errors.Is(err, store.ErrNotFound) {
		return m, nil
	} else if err != nil {
		return m, err
	}
	body, err := s.store.Open(ctx, object.Key, object.ETag, 0, min(object.Size, longestMark))
	if err != nil {
		return m, err
	}
	data, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return m, fmt.Errorf("cannot read the marker of the conversion: %w", err)
	}
	if ours := json.Unmarshal(data, &m) == nil; !ours {
		m = attemptMarker{} // an invalid marker is replaced
	}
	return m, nil
}

func (s *Cache) writeMarker(ctx context.Context, key string, m attemptMarker) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	_, err = s.store.Put(ctx, markerKey(key), markType, int64(len(data)), bytes.NewReader(data))
	return err
}

func (s *Cache) recordEnd(ctx context.Context, key string, m attemptMarker, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markTimeout)
	defer cancel()
	exhausted, ok := errors.AsType[*ExhaustedError](err)
	switch {
	case ok:
		m.Exhausted = exhausted.Of
		_ = s.writeMarker(ctx, key, m) // Without the marker, the work is tried again.
	case errors.Is(err, ErrSlow), errors.Is(err, ErrKilled):
		// The file may be at fault as well: the attempt counts.
	default:
		if s.store.Delete(ctx, markerKey(key)) != nil {
			s.finished.Add(key, true)
		}
	}
}

func (s *Cache) remember(object store.Object) Rendition {
	r := Rendition{Key: object.Key, ETag: object.ETag, MIMEType: object.ContentType, Size: object.Size}
	r.Width, _ = strconv.Atoi(object.Tags[widthTag])
	r.Height, _ = strconv.Atoi(object.Tags[heightTag])
	r.Blank, _ = strconv.ParseBool(object.Tags[blankTag])
	s.recent.Add(r.Key, r)
	return r
}
