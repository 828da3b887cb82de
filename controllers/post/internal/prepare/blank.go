// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"

	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
)

// Blank returns the names of a target's images that would look blank: they are white on a transparent background, and
// their renditions for the platform have a white background.
func (p *Preparer) Blank(ctx context.Context, t *Target) (names []string) {
	to, ok := p.o.Platforms[t.Conn.Spec.Platform].(platforms.Publisher)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, thumbnailLookupTimeout)
	defer cancel()
	images := to.Capabilities().Of(&t.Conn.Status).Images
	for _, name := range posting.Of(t.Post).MediaNames() {
		m := t.Media[name]
		if m == nil {
			continue
		}
		file := platforms.FileOf(m)
		if images.Accepts(&file) {
			continue
		}
		source := rendition.Source{Key: store.Key(m), ETag: file.ETag, MIMEType: string(file.MIMEType), Size: file.Size}
		if r, err := p.o.Renditions.Find(ctx, source, renditionTarget(images.For(&file))); err == nil && r.Blank {
			names = append(names, file.Name)
		}
	}
	return names
}
