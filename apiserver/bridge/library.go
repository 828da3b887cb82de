// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bridge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/internal/media/store"
)

// maxLibrary limits how many of a team's files a search reads, at about 2 KiB each.
const maxLibrary = 5000

// FileSearch selects the team's files that posts can use.
type FileSearch struct {
	// Words is a part of the file name, in any case; empty for all files.
	Words string
	// Types are the accepted MIME types; empty for all.
	Types []v1alpha1.MimeType
	// Offset and Limit select a page.
	Offset, Limit int
}

// LibraryFile is one of the team's files.
type LibraryFile struct {
	ID       string
	FileName string
	// AltText is the file's own alt text, which applies if a post has none for the file.
	AltText   string
	MimeType  v1alpha1.MimeType
	SizeBytes int64
	// Width, Height and Duration are zero if unknown; pictures have no duration.
	Width, Height int32
	Duration      time.Duration
	UploadedAt    time.Time
	// Thumbnail is the address of a small picture; empty if there is none. It grants access and must not be logged.
	Thumbnail string
}

// Library is a page of the team's files, newest first.
type Library struct {
	Files []LibraryFile
	// Found is the number of files that the search selects.
	Found int
	// Partial is true if the team has more files than a search reads.
	Partial bool
}

// FindFiles returns a page of the team's uploaded files.
func (s *Service) FindFiles(ctx context.Context, caller Caller, q FileSearch) (Library, error) {
	all, more, err := s.Uploaded(ctx, caller.Namespace, maxLibrary)
	if err != nil {
		return Library{}, fmt.Errorf("list the media files: %w", err)
	}
	limits.MeterFrom(ctx).Parts(1 + len(all)/100)
	words := strings.ToLower(strings.TrimSpace(q.Words))
	found := slices.DeleteFunc(all, func(m v1alpha1.Media) bool {
		return m.Status.Phase != v1alpha1.MediaUploaded || !m.DeletionTimestamp.IsZero() ||
			len(q.Types) > 0 && !slices.Contains(q.Types, m.Spec.MimeType) || !strings.Contains(strings.ToLower(m.Spec.FileName), words)
	})
	slices.SortFunc(found, func(a, b v1alpha1.Media) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	library := Library{Found: len(found), Partial: more}
	first := min(max(q.Offset, 0), len(found))
	page := found[first:min(first+q.Limit, len(found))]
	library.Files = make([]LibraryFile, len(page))
	var group errgroup.Group
	group.SetLimit(thumbnailReads)
	for i := range page {
		m := &page[i]
		library.Files[i] = LibraryFile{
			ID: m.Name, FileName: m.Spec.FileName, AltText: m.Spec.AltText, MimeType: m.Spec.MimeType, SizeBytes: m.Status.SizeBytes, Width: m.Status.Width, Height: m.Status.Height,
			Duration: time.Duration(m.Status.DurationMillis) * time.Millisecond, UploadedAt: m.CreationTimestamp.Time,
		}
		group.Go(func() error {
			library.Files[i].Thumbnail = s.thumbnailOf(ctx, m)
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return library, nil
}

// thumbnailOf returns the address of a file's small picture or, failing that, of the file itself if it is not large, or
// "".
func (s *Service) thumbnailOf(ctx context.Context, m *v1alpha1.Media) string {
	if s.Files == nil || !isPicture(m.Spec.MimeType) {
		return ""
	}
	key, err := s.smallOf(ctx, m)
	if key == "" && cmp.Or(m.Status.SizeBytes, m.Spec.SizeBytes) <= maxThumbnail {
		key = store.Key(m)
	}
	if key == "" {
		return ""
	}
	address, signErr := s.addresses.of(ctx, s.Files, key)
	if err = errors.Join(err, signErr); err != nil {
		s.Log.InfoContext(ctx, "Cannot show the thumbnail of a media file", "namespace", m.Namespace, "media", m.Name, "error", err)
	}
	return address
}

// smallOf returns the storage key of a file's small picture for lists, or "".
func (s *Service) smallOf(ctx context.Context, m *v1alpha1.Media) (string, error) {
	if s.Small == nil {
		return "", nil
	}
	key, err := s.Small(ctx, m)
	if errors.Is(err, store.ErrNotFound) {
		err = nil // it was uploaded before small pictures were made, or cannot be converted
	}
	return key, err
}

func isPicture(mimeType v1alpha1.MimeType) bool { return strings.HasPrefix(string(mimeType), "image/") }
