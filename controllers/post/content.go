// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Files gives access to the bytes of media files; see store.Store.
type Files interface {
	// Open reads a part of the file under a key whose etag is this one.
	Open(ctx context.Context, key, etag string, offset, length int64) (io.ReadCloser, error)
	// Verified returns a key under which the file of this etag lies and stays: the
	// same one, or that of a copy where somebody may still overwrite the file.
	Verified(ctx context.Context, key, etag string, overwritable bool) (string, error)
	// PresignGet returns an address from which the file can be read for so long.
	PresignGet(ctx context.Context, key string, valid time.Duration) (string, error)
}

// stored is where the bytes of one file are.
type stored struct {
	files     Files
	key, etag string
	// overwritable says that its client may still overwrite it.
	overwritable bool
}

// Open implements platforms.Bytes.
func (s stored) Open(ctx context.Context, offset, length int64) (io.ReadCloser, error) {
	body, err := s.files.Open(ctx, s.key, s.etag, offset, length)
	return body, unlessChanged(err)
}

// Address implements platforms.Bytes. Whoever fetches the file later gets what was
// verified.
func (s stored) Address(ctx context.Context, valid time.Duration) (string, error) {
	key, err := s.verified(ctx)
	if err != nil {
		return "", err
	}
	return s.files.PresignGet(ctx, key, valid)
}

// verified is where the file lies that was verified, and stays.
func (s stored) verified(ctx context.Context) (key string, err error) {
	key, err = s.files.Verified(ctx, s.key, s.etag, s.overwritable)
	return key, unlessChanged(err)
}

// unlessChanged tells publishers of a file that is not the one that was verified.
func unlessChanged(err error) error {
	if errors.Is(err, store.ErrChanged) || errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", platforms.ErrFileChanged, err)
	}
	return err
}

// job is what is published next for target i of a post, or looked for.
func (s *scope) job(post *v1alpha1.Post, i int, conn *v1alpha1.Connection, token platforms.Token) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: conn.Spec.AccountID, Username: conn.Status.Username, Token: token},
		Content: s.content(post, i),
	}
}

// content is what is published next for target i. Of a tree that is the first
// card that is not recorded, which hangs from the one before.
func (s *scope) content(post *v1alpha1.Post, i int) platforms.Content {
	spec := &post.Spec
	target := &spec.Targets[i]
	c := platforms.Content{Category: spec.Category, Text: words(post, i)}
	if target.YouTube != nil {
		c.Title = target.YouTube.Title
	}
	if target.TikTok != nil {
		c.TikTok = *target.TikTok
	}
	c.Media = s.files(nextFiles(post, i))
	if spec.Video != nil && spec.Video.ThumbnailOffsetMillis != nil {
		c.ThumbnailAt = new(time.Duration(*spec.Video.ThumbnailOffsetMillis) * time.Millisecond)
	}
	t := posting.Target(post, i)
	card := int(attempt.NextCard(t))
	if spec.Tree == nil || card >= len(spec.Tree.Cards) {
		return c
	}
	if card > 0 {
		c.InReplyTo = t.Cards[card-1].ExternalID
	}
	return c
}

// files are what the names stand for. One that does not exist has its name only:
// it cannot be sent, and what was published of it can still be looked for.
func (s *scope) files(refs []v1alpha1.LocalReference) []platforms.File {
	var out []platforms.File
	for _, ref := range refs {
		m := s.media[ref.Name]
		if m == nil {
			out = append(out, platforms.File{Name: ref.Name, Bytes: stored{files: s.Files}})
			continue
		}
		out = append(out, platforms.File{
			Name: m.Spec.FileName, MIMEType: m.Spec.MimeType, Size: m.Status.SizeBytes,
			Width: int(m.Status.Width), Height: int(m.Status.Height),
			Duration: time.Duration(m.Status.DurationMillis) * time.Millisecond, ETag: m.Status.ETag,
			Bytes: stored{files: s.Files, key: store.Key(m), etag: m.Status.ETag, overwritable: store.Overwritable(m, s.Clock.Now())},
		})
	}
	return out
}

// contentHash identifies what is published next for target i, and by whom.
func (s *scope) contentHash(post *v1alpha1.Post, i int, conn *v1alpha1.Connection) string {
	c := s.content(post, i)
	parts := []string{c.Text}
	if posting.Cards(&s.post.Spec) > 0 {
		parts = append(parts, c.InReplyTo)
	}
	if len(c.Media) > 0 {
		parts = append(parts, string(c.Category), c.Title, fmt.Sprintf("%+v", options(&c.TikTok)))
		if c.ThumbnailAt != nil {
			parts = append(parts, c.ThumbnailAt.String())
		}
		for _, file := range c.Media {
			parts = append(parts, file.Name, string(file.MIMEType), strconv.FormatInt(file.Size, 10), file.ETag)
		}
	}
	return attempt.ContentHash(string(conn.UID), conn.Spec.AccountID, parts...)
}

// options writes TikTok's options out, what they leave open included.
func options(o *v1alpha1.TikTokOptions) []string {
	flag := func(b *bool) string {
		if b == nil {
			return ""
		}
		return strconv.FormatBool(*b)
	}
	return []string{
		string(o.PrivacyLevel), flag(o.AllowComment), flag(o.AllowDuet), flag(o.AllowStitch),
		strconv.FormatBool(o.Draft), strconv.FormatBool(o.AutoAddMusic), strconv.FormatBool(o.IsAIGenerated),
	}
}

// fileProblem says why the files of target i cannot be sent now, or "".
func (s *scope) fileProblem(i int) string {
	for _, ref := range nextFiles(s.post, i) {
		m := s.media[ref.Name]
		switch {
		case m == nil:
			return fmt.Sprintf("media file %q does not exist; the post goes on when it does", ref.Name)
		case m.Status.Phase != v1alpha1.MediaUploaded:
			return fmt.Sprintf("media file %q is not there to be sent (phase %s)", ref.Name, m.Status.Phase)
		}
	}
	return ""
}

// nextFiles names the files of what is published next for target i.
func nextFiles(post *v1alpha1.Post, i int) []v1alpha1.LocalReference {
	spec := &post.Spec
	switch {
	case spec.Image != nil:
		return spec.Image.MediaRefs
	case spec.Video != nil:
		return []v1alpha1.LocalReference{spec.Video.MediaRef}
	case spec.Tree != nil:
		if card := int(attempt.NextCard(posting.Target(post, i))); card < len(spec.Tree.Cards) {
			return spec.Tree.Cards[card].MediaRefs
		}
	}
	return nil
}
