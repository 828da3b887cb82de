// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"context"
	"fmt"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/internal/media/store"
)

const (
	// previewLasts is how long a preview URL is valid: long enough for a video that the page loads late.
	previewLasts = 15 * time.Minute
	// urlCacheTTL is how long pages receive the same URL, which lets a browser use its cache.
	urlCacheTTL = 10 * time.Minute
	// maxAddresses limits the cached URLs, at about 700 bytes each.
	maxAddresses = 4096
)

// urlCache caches files' signed URLs by storage key, which is unique to each file.
type urlCache struct{ entries *cache.LRUExpireCache }

func newURLCache(clk clock.PassiveClock) *urlCache {
	return &urlCache{cache.NewLRUExpireCacheWithClock(maxAddresses, clk)}
}

func (a *urlCache) of(ctx context.Context, files Files, key string) (string, error) {
	if kept, found := a.entries.Get(key); found {
		address, _ := kept.(string)
		return address, nil
	}
	address, err := files.PresignGet(ctx, key, previewLasts)
	if err != nil {
		return "", fmt.Errorf("sign the address of a preview: %w", err)
	}
	a.entries.Add(key, address, urlCacheTTL)
	return address, nil
}

// MediaPreview is a file for display.
type MediaPreview struct {
	// URL serves the file for a few minutes. It grants access and must not be logged. It is empty if there is no file
	// to show.
	URL      string
	FileName string
	// AltText is the file's own alt text, which applies if a post has none for the file.
	AltText  string
	MimeType v1alpha1.MimeType
	// SizeBytes is the declared size.
	SizeBytes int64
	// Width and Height are zero while unknown.
	Width, Height int32
	// Duration is a video's playing time; zero while unknown.
	Duration time.Duration
	Phase    v1alpha1.MediaPhase
}

// Previews are the caller's team's files for display during one request, which reads each file at most once. They are
// safe for concurrent use.
type Previews struct {
	service *Service
	caller  Caller

	mu    sync.Mutex
	reads map[string]func() (*v1alpha1.Media, error)
}

// Previews returns the previews for one of the caller's requests, without reading any file.
func (s *Service) Previews(caller Caller) *Previews {
	return &Previews{service: s, caller: caller, reads: map[string]func() (*v1alpha1.Media, error){}}
}

// media returns one of the team's files, or nil. Callers must not modify it.
func (p *Previews) media(ctx context.Context, name string) (*v1alpha1.Media, error) {
	p.mu.Lock()
	read := p.reads[name]
	if read == nil {
		read = sync.OnceValues(func() (*v1alpha1.Media, error) { return p.service.readMedia(ctx, p.caller, name) })
		p.reads[name] = read
	}
	p.mu.Unlock()
	return read()
}

// Of returns a file's preview. Its URL never accepts an upload.
func (p *Previews) Of(ctx context.Context, name string) (MediaPreview, error) {
	media, err := p.media(ctx, name)
	switch {
	case err != nil:
		return MediaPreview{}, fmt.Errorf("read a media file: %w", err)
	case media == nil:
		return MediaPreview{}, errorf(CodeNotFound, "this team has no media file %q", name)
	}
	preview := MediaPreview{
		FileName: media.Spec.FileName, AltText: media.Spec.AltText, MimeType: media.Spec.MimeType, SizeBytes: media.Spec.SizeBytes, Phase: media.Status.Phase,
		Width: media.Status.Width, Height: media.Status.Height, Duration: time.Duration(media.Status.DurationMillis) * time.Millisecond,
	}
	// A new upload has not been checked yet: the browser shows it if it can.
	if p.service.Files == nil || media.DeletionTimestamp != nil || media.Status.Phase == v1alpha1.MediaRejected || media.Status.Phase == v1alpha1.MediaExpired {
		return preview, nil
	}
	if preview.URL, err = p.service.addresses.of(ctx, p.service.Files, store.Key(media)); err != nil {
		return MediaPreview{}, err
	}
	return preview, nil
}

func (s *Service) readMedia(ctx context.Context, caller Caller, name string) (*v1alpha1.Media, error) {
	if !validName(name) {
		return nil, nil //nolint:nilnil // nil means not found
	}
	limits.MeterFrom(ctx).Parts(1)
	media, err := s.Media.Get(ctx, caller.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // nil means not found
	}
	return media, err
}
