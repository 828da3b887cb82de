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

// Cache keeps renditions in the store, beside their sources, and has them made, some at
// a time and each team's in its turn. It may be used by many goroutines at once.
type Cache struct {
	store FileStore
	// recent holds the renditions that were asked for last, by key.
	recent *lru.Cache
	// finished holds the keys whose work ended, but whose mark could not be taken away.
	finished *lru.Cache
	// slots are had while one is made.
	slots Slots
}

// Output is a rendition that was just made; the sides of the picture are in pixels.
type Output struct {
	// Data is what was made; Body has it instead, as so many bytes, where it is too large
	// for memory, and is closed when it was read.
	Data          []byte
	Body          io.ReadCloser
	Size          int64
	MIMEType      string
	Width, Height int
	// Blank is Rendition.Blank.
	Blank bool
}

// tags are what the store keeps beside what was made.
func (m *Output) tags() map[string]string {
	tags := map[string]string{widthTag: strconv.Itoa(m.Width), heightTag: strconv.Itoa(m.Height)}
	if m.Blank {
		tags[blankTag] = strconv.FormatBool(true)
	}
	return tags
}

// body returns what was made, and its length in bytes.
func (m *Output) body() (io.ReadCloser, int64) {
	if m.Body != nil {
		return m.Body, m.Size
	}
	return io.NopCloser(bytes.NewReader(m.Data)), int64(len(m.Data))
}

// ErrBusy is returned when others were being made until the context ended.
var ErrBusy = errors.New("other images are being converted")

// remembered is how many renditions a process knows without asking the store.
const remembered = 4096

// The tags that a rendition is stored with.
const widthTag, heightTag, blankTag = "width", "height", "blank"

// NewCache returns a Shelf whose work has these turns.
func NewCache(store FileStore, turns Slots) *Cache {
	return &Cache{store: store, recent: lru.New(remembered), finished: lru.New(remembered), slots: turns}
}

// Find returns the rendition under a key, from memory or else from the store.
// The error is store.ErrNotFound if there is none.
func (s *Cache) Find(ctx context.Context, key string) (Rendition, error) {
	if known, ok := s.recent.Get(key); ok {
		if r, ok := known.(Rendition); ok {
			return r, nil
		}
	}
	return s.stat(ctx, key)
}

// stat is Find, but always asks the store.
func (s *Cache) stat(ctx context.Context, key string) (Rendition, error) {
	object, err := s.store.Stat(ctx, key)
	if err != nil {
		s.recent.Remove(key)
		return Rendition{}, err
	}
	return s.remember(object), nil
}

// Forget makes Find ask the store again.
func (s *Cache) Forget(r Rendition) { s.recent.Remove(r.Key) }

// GetOrCreate returns the rendition under a key, and makes it if the store has none. The
// error is ErrBusy if its turn did not come, and an *Exhausted if create returned that,
// now or at any time before, or was begun too often without an end; any other is that
// of create, or the store's.
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
	// Another call may have made it meanwhile.
	if r, err := s.stat(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return r, err
	}
	m, err := s.recordStart(ctx, key)
	if err != nil {
		return Rendition{}, err
	}
	made, err := create()
	if err != nil {
		s.recordEnd(ctx, key, m, err)
		return Rendition{}, err
	}
	body, size := made.body()
	object, err := s.store.PutTagged(ctx, key, made.MIMEType, size, body, made.tags())
	_ = body.Close() // What was read was read.
	s.recordEnd(ctx, key, m, err)
	if err != nil {
		return Rendition{}, err
	}
	return s.remember(object), nil
}

// attemptMarker is what the store knows of work that was begun: it is put beside the rendition
// before, and taken away after. Only what ends the process leaves it behind.
type attemptMarker struct {
	// Attempts is how often work was begun without an end.
	Attempts int `json:"begun"`
	// Exhausted says why it is not begun again; "" while it may be.
	Exhausted Resource `json:"exhausted,omitempty"`
}

const (
	markType = "application/json"
	// longestMark bounds what is read of a mark.
	longestMark = 1 << 10
	// markWithin is how long a mark may take to be put or taken away after the
	// work, even if its context has ended.
	markWithin = 5 * time.Second
)

// markerKey returns the key of the mark of a rendition.
func markerKey(key string) string { return key + "begun" }

// recordStart notes that work is begun. The error is an *Exhausted if it must not be.
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
	if m.Attempts >= mostTries {
		return m, &ExhaustedError{Of: ResourceTries}
	}
	m.Attempts++
	err = s.writeMarker(ctx, key, m)
	if err == nil {
		s.finished.Remove(key)
	}
	return m, err
}

// readMarker reads the mark of a rendition.
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
		return m, fmt.Errorf("cannot read what the store knows of the conversion: %w", err)
	}
	if ours := json.Unmarshal(data, &m) == nil; !ours {
		m = attemptMarker{} // It is replaced.
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

// recordEnd notes how work ended.
func (s *Cache) recordEnd(ctx context.Context, key string, m attemptMarker, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), markWithin)
	defer cancel()
	exhausted, ok := errors.AsType[*ExhaustedError](err)
	switch {
	case ok:
		m.Exhausted = exhausted.Of
		_ = s.writeMarker(ctx, key, m) // Else it is tried once more.
	case errors.Is(err, ErrSlow), errors.Is(err, ErrKilled):
		// It may be the file's fault as well: the try counts.
	default:
		if s.store.Delete(ctx, markerKey(key)) != nil {
			s.finished.Add(key, true)
		}
	}
}

// remember remembers a file of the store.
func (s *Cache) remember(object store.Object) Rendition {
	r := Rendition{Key: object.Key, ETag: object.ETag, MIMEType: object.ContentType, Size: object.Size}
	r.Width, _ = strconv.Atoi(object.Tags[widthTag])
	r.Height, _ = strconv.Atoi(object.Tags[heightTag])
	r.Blank, _ = strconv.ParseBool(object.Tags[blankTag])
	s.recent.Add(r.Key, r)
	return r
}
