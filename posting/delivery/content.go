// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

// Content returns what to publish next for a target; in a tree, the first unrecorded card, as a reply to the previous
// card. Files have no Bytes. A missing file has only its name, enough for a lookup but not for sending.
func Content(post *v1alpha1.Post, target int, media map[string]*v1alpha1.Media) platforms.Content {
	spec := &post.Spec
	to := &spec.Targets[target]
	c := platforms.Content{Category: spec.Category, Text: Text(post, target), Language: to.Language}
	if to.YouTube != nil {
		c.Title = to.YouTube.Title
	}
	if to.TikTok != nil {
		c.TikTok = *to.TikTok
	}
	if to.Mastodon != nil {
		c.Mastodon = *to.Mastodon
	}
	for _, ref := range Files(post, target) {
		c.Media = append(c.Media, file(ref, media[ref.Name]))
	}
	c.Text = posting.TextToSend(c.Text, len(c.Media) > 0)
	if spec.Video != nil && spec.Video.ThumbnailOffsetMillis != nil {
		c.ThumbnailAt = new(time.Duration(*spec.Video.ThumbnailOffsetMillis) * time.Millisecond)
	}
	t := posting.Of(post).Target(target)
	if card := int(attempt.NextCard(t)); spec.Tree != nil && card > 0 && card < len(spec.Tree.Cards) {
		c.InReplyTo = t.Cards[card-1].ExternalID
	}
	return c
}

// Key returns the key of what to publish next for a target. It depends only on what never changes: the post's UID and
// creation, the target, and the number of published cards.
func Key(post *v1alpha1.Post, target int) platforms.Key {
	card := attempt.NextCard(posting.Of(post).Target(target))
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", post.UID, target, card))
	return platforms.Key{CreatedAt: post.CreationTimestamp.UTC(), Sum: [16]byte(sum[:16])}
}

// file returns a reference's file, with the reference's alt text or, failing that, the Media's. As in captions of
// files, white space counts as empty.
func file(ref v1alpha1.MediaReference, m *v1alpha1.Media) platforms.File {
	f := platforms.File{Name: ref.Name}
	if m != nil {
		f = platforms.FileOf(m)
	}
	f.AltText = posting.TextToSend(cmp.Or(ref.AltText, f.AltText), true)
	f.FocalPoint = ref.FocalPoint
	return f
}

// Text returns the text to publish next for a target. In a tree, that is the next card's caption.
func Text(post *v1alpha1.Post, target int) string {
	if target >= len(post.Spec.Targets) {
		return ""
	}
	if tree := post.Spec.Tree; tree != nil {
		if card := int(attempt.NextCard(posting.Of(post).Target(target))); card < len(tree.Cards) {
			return tree.Cards[card].Caption
		}
	}
	return post.Spec.Targets[target].Caption
}

// Files returns references to the files to publish next for a target.
func Files(post *v1alpha1.Post, target int) []v1alpha1.MediaReference {
	if files := posting.OwnMedia(&post.Spec); len(files) > 0 {
		return files
	}
	if tree := post.Spec.Tree; tree != nil {
		if card := int(attempt.NextCard(posting.Of(post).Target(target))); card < len(tree.Cards) {
			return tree.Cards[card].MediaRefs
		}
	}
	return nil
}

// FileProblem returns the problem that prevents a target's files from being sent at the moment, or "".
func FileProblem(post *v1alpha1.Post, target int, media map[string]*v1alpha1.Media) string {
	for _, ref := range Files(post, target) {
		m := media[ref.Name]
		switch {
		case m == nil:
			return fmt.Sprintf("media file %q does not exist; the post proceeds when it does", ref.Name)
		case m.Status.Phase != v1alpha1.MediaUploaded:
			return fmt.Sprintf("media file %q cannot be sent (phase %s)", ref.Name, m.Status.Phase)
		}
	}
	return ""
}

// ContentHash identifies what to publish next for a target, and the account that publishes it.
func ContentHash(post *v1alpha1.Post, target int, conn *v1alpha1.Connection, media map[string]*v1alpha1.Media) string {
	c := Content(post, target, media)
	parts := []string{c.Text}
	if posting.Of(post).Cards() > 0 {
		parts = append(parts, c.InReplyTo)
	}
	if len(c.Media) > 0 {
		parts = append(parts, string(c.Category), c.Title, fmt.Sprintf("%+v", options(&c.TikTok)))
		if c.ThumbnailAt != nil {
			parts = append(parts, c.ThumbnailAt.String())
		}
		for i := range c.Media {
			f := &c.Media[i]
			parts = append(parts, f.Name, string(f.MIMEType), strconv.FormatInt(f.Size, 10), f.ETag)
		}
		parts = append(parts, altTexts(c.Media)...)
		parts = append(parts, focalPoints(c.Media)...)
	}
	if c.Mastodon != (v1alpha1.MastodonOptions{}) {
		parts = append(parts, fmt.Sprintf("mastodon: %+v", c.Mastodon))
	}
	if c.Language != "" {
		parts = append(parts, "language: "+c.Language)
	}
	return attempt.ContentHash(string(conn.UID), conn.Spec.AccountID, parts...)
}

// altTexts lists the files' alt texts as one string, or returns nil if there are none, so the hashes of earlier
// versions of Herald remain valid.
func altTexts(files []platforms.File) []string {
	texts, found := make([]string, len(files)), false
	for i := range files {
		texts[i] = files[i].AltText
		found = found || texts[i] != ""
	}
	if !found {
		return nil
	}
	return []string{fmt.Sprintf("alt texts: %q", texts)}
}

// focalPoints lists the files' focal points as one string, or returns nil if there are none, like altTexts.
func focalPoints(files []platforms.File) []string {
	points, found := make([]v1alpha1.FocalPoint, len(files)), false
	for i := range files {
		if point := files[i].FocalPoint; point != nil {
			points[i], found = *point, true
		}
	}
	if !found {
		return nil
	}
	return []string{fmt.Sprintf("focal points: %v", points)}
}

// options lists TikTok's options as strings, including unset ones.
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
