// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// Publish makes the prepared container visible with one call to media_publish.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	return p.hostOf(job.Account.Token).Publish(ctx, job)
}

// Lookup reads the state of the job's container and searches the account's posts for the job's post.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	return p.hostOf(job.Account.Token).Lookup(ctx, job, meta.Listing{
		Edge: "media", Fields: "id,caption,timestamp,permalink,media_type,media_product_type",
		Same: func(post *meta.Post) bool {
			return sameKind(job.Content.Media, post) && meta.SameCaption(job.Content.Text, post.Caption)
		},
	})
}

// sameKind reports whether a listed post's type fits these files. Reels are listed as videos.
func sameKind(media []platforms.File, post *meta.Post) bool {
	want := "IMAGE"
	switch {
	case len(media) > 1:
		want = "CAROUSEL_ALBUM"
	case len(media) == 1 && media[0].IsVideo():
		want = "VIDEO"
	}
	listed := post.MediaType.String()
	return (listed == "" || listed == want) && post.ProductType != "STORY"
}
