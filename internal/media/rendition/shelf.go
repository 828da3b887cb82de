// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"bytes"
	"context"
	"strconv"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/media/store"
)

// Shelf keeps renditions in the store, beside their sources. It may be used by many
// goroutines at once.
type Shelf struct {
	store Store
	// known holds the renditions that were asked for last, by key.
	known *lru.Cache
}

// remembered is how many renditions a process knows without asking the store.
const remembered = 4096

// The tags that a rendition is stored with.
const widthTag, heightTag = "width", "height"

// NewShelf returns a Shelf.
func NewShelf(store Store) *Shelf { return &Shelf{store: store, known: lru.New(remembered)} }

// Find returns the rendition under a key, from memory or else from the store.
// The error is store.ErrNotFound if there is none.
func (s *Shelf) Find(ctx context.Context, key string) (Rendition, error) {
	if known, ok := s.known.Get(key); ok {
		if r, ok := known.(Rendition); ok {
			return r, nil
		}
	}
	return s.Look(ctx, key)
}

// Look is Find, but always asks the store.
func (s *Shelf) Look(ctx context.Context, key string) (Rendition, error) {
	object, err := s.store.Stat(ctx, key)
	if err != nil {
		s.known.Remove(key)
		return Rendition{}, err
	}
	r := rendered(object)
	r.Width, _ = strconv.Atoi(object.Tags[widthTag])
	r.Height, _ = strconv.Atoi(object.Tags[heightTag])
	s.known.Add(key, r)
	return r, nil
}

// Forget makes Find ask the store again.
func (s *Shelf) Forget(r Rendition) { s.known.Remove(r.Key) }

// Keep stores a rendition of this type, and size in pixels.
func (s *Shelf) Keep(ctx context.Context, key, mimeType string, data []byte, width, height int) (Rendition, error) {
	object, err := s.store.PutTagged(ctx, key, mimeType, int64(len(data)), bytes.NewReader(data),
		map[string]string{widthTag: strconv.Itoa(width), heightTag: strconv.Itoa(height)})
	if err != nil {
		return Rendition{}, err
	}
	r := rendered(object)
	r.Width, r.Height = width, height
	s.known.Add(key, r)
	return r, nil
}

func rendered(object store.Object) Rendition {
	return Rendition{Key: object.Key, ETag: object.ETag, MIMEType: object.ContentType, Size: object.Size}
}
