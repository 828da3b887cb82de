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
	"github.com/herald-social/herald/apiserver/cost"
	"github.com/herald-social/herald/internal/media/store"
)

const (
	// previewLasts is how long the address of a preview is good: long enough for a page and
	// what is loaded from it late, such as a video that is played.
	previewLasts = 15 * time.Minute
	// urlCacheTTL is how long a page gets the same address again, so that a browser shows
	// what it has and loads nothing. What is left of previewLasts then is for the page.
	urlCacheTTL = 10 * time.Minute
	// maxAddresses bounds the addresses that are kept: some 700 bytes each.
	maxAddresses = 4096
)

// urlCache are the signed addresses of files, by the files' keys in the store. A file that
// is made again under the name of another one has a key of its own.
type urlCache struct{ entries *cache.LRUExpireCache }

func newAddresses(clk clock.PassiveClock) *urlCache {
	return &urlCache{cache.NewLRUExpireCacheWithClock(maxAddresses, clk)}
}

// of returns the address of a file, signed by files unless one is kept.
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

// MediaPreview is a file as pages show it.
type MediaPreview struct {
	// URL is where a browser finds the file for some minutes. It carries authority and
	// must not be logged. It is empty while there is no file to show.
	URL      string
	FileName string
	MimeType v1alpha1.MimeType
	// Width and Height are zero while they are not known.
	Width, Height int32
	Phase         v1alpha1.MediaPhase
}

// Previews are the files of a caller's team as pages show them. They are for one request:
// each file is read once, however often it is shown. They are safe for concurrent use.
type Previews struct {
	service *Service
	caller  Caller

	mu    sync.Mutex
	reads map[string]func() (*v1alpha1.Media, error)
}

// Previews returns those for one request of the caller. Nothing is read yet.
func (s *Service) Previews(caller Caller) *Previews {
	return &Previews{service: s, caller: caller, reads: map[string]func() (*v1alpha1.Media, error){}}
}

// media is a file of the team, nil if there is none. It must not be changed.
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

// Of returns how a file is shown. No address that it returns takes an upload.
func (p *Previews) Of(ctx context.Context, name string) (MediaPreview, error) {
	media, err := p.media(ctx, name)
	switch {
	case err != nil:
		return MediaPreview{}, fmt.Errorf("read a media file: %w", err)
	case media == nil:
		return MediaPreview{}, errorf(CodeNotFound, "this team has no media file %q", name)
	}
	preview := MediaPreview{
		FileName: media.Spec.FileName, MimeType: media.Spec.MimeType, Phase: media.Status.Phase,
		Width: media.Status.Width, Height: media.Status.Height,
	}
	// A file that was uploaded a moment ago is not examined yet: the browser shows it, if it is one.
	if p.service.Files == nil || media.DeletionTimestamp != nil || media.Status.Phase == v1alpha1.MediaRejected || media.Status.Phase == v1alpha1.MediaExpired {
		return preview, nil
	}
	if preview.URL, err = p.service.addresses.of(ctx, p.service.Files, store.Key(media)); err != nil {
		return MediaPreview{}, err
	}
	return preview, nil
}

// readMedia returns a media file of the caller's team, nil if there is none.
func (s *Service) readMedia(ctx context.Context, caller Caller, name string) (*v1alpha1.Media, error) {
	if !validName(name) {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	cost.From(ctx).Parts(1)
	media, err := s.Media.Get(ctx, caller.Namespace, name)
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absence is an answer here
	}
	return media, err
}
