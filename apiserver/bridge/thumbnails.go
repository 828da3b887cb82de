// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// maxThumbnail is the size of the largest original that a list shows, in bytes, if there is no smaller version of it.
	maxThumbnail = 1 << 20
	// maxThumbnails limits the cached previews, at about 1 KB each, and thumbnailReads the files that one list reads at the
	// same time.
	maxThumbnails  = 2048
	thumbnailReads = 8
)

// Thumbnails returns previews of the named files, for a list, with the address of a small picture. It omits files that
// are not pictures, cannot be read, or are larger than maxThumbnail and have no small picture: a list is complete
// without them. The preview of an uploaded file is cached for ten minutes, so that of a recently deleted file may not
// load.
func (s *Service) Thumbnails(ctx context.Context, caller Caller, names []string) map[string]MediaPreview {
	found := map[string]MediaPreview{}
	files := s.Previews(caller)
	var (
		mu    sync.Mutex
		group errgroup.Group
	)
	group.SetLimit(thumbnailReads)
	for _, name := range names {
		key := types.NamespacedName{Namespace: caller.Namespace, Name: name}
		if kept, ok := s.thumbnails.Get(key); ok {
			mu.Lock()
			found[name], _ = kept.(MediaPreview)
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			preview, err := files.Of(ctx, name)
			if err != nil {
				s.Log.InfoContext(ctx, "Cannot read a media file for a list", "namespace", caller.Namespace, "media", name, "error", err)
				return nil
			}
			preview.URL = s.addressInList(ctx, files, name, &preview)
			if preview.Phase == v1alpha1.MediaUploaded {
				s.thumbnails.Add(key, preview, urlCacheTTL)
			}
			mu.Lock()
			defer mu.Unlock()
			found[name] = preview
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	for name, preview := range found {
		if preview.URL == "" {
			delete(found, name)
		}
	}
	return found
}

// addressInList returns the address of a file's small picture, or "" if there is none to show.
func (s *Service) addressInList(ctx context.Context, files *Previews, name string, preview *MediaPreview) string {
	media, err := files.media(ctx, name)
	if preview.URL == "" || err != nil || media == nil {
		return ""
	}
	return s.thumbnailOf(ctx, media)
}

func newThumbnails(config *Config) *cache.LRUExpireCache {
	return cache.NewLRUExpireCacheWithClock(maxThumbnails, config.Clock)
}
