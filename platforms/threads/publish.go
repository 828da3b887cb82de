// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"slices"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/meta"
)

// Publish makes the prepared container visible with one call to threads_publish.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	return p.graph.Publish(ctx, job)
}

// Lookup reads the state of the job's container and searches the account's posts for the job's post.
func (p *Platform) Lookup(ctx context.Context, job platforms.Job) (platforms.LookupResult, error) {
	// Replies have a separate listing.
	edge := "threads"
	if job.Content.InReplyTo != "" {
		edge = "replies"
	}
	return p.graph.Lookup(ctx, job, meta.Listing{
		Edge: edge, Fields: "id,text,timestamp,permalink,media_type,is_reply,replied_to",
		Same: func(post *meta.Post) bool { return same(&job.Content, post) },
	})
}

// same reports whether a listed post has this content. With files, the text may be empty.
func same(content *platforms.Content, post *meta.Post) bool {
	sameText := meta.SameText
	if len(content.Media) > 0 {
		sameText = meta.SameCaption
	}
	return post.RepliedTo.ID.String() == content.InReplyTo && bool(post.IsReply) == (content.InReplyTo != "") &&
		sameKind(content.Media, post.MediaType.String()) && sameText(content.Text, post.Text)
}

// sameKind reports whether a listed post's type fits these files. Listed types differ from container types: TEXT is
// listed as TEXT_POST, and CAROUSEL as CAROUSEL_ALBUM.
func sameKind(media []platforms.File, listed string) bool {
	kinds := []string{"CAROUSEL", "CAROUSEL_ALBUM"}
	switch {
	case len(media) == 0:
		kinds = []string{"TEXT", "TEXT_POST"}
	case len(media) == 1 && media[0].IsVideo():
		kinds = []string{"VIDEO"}
	case len(media) == 1:
		kinds = []string{"IMAGE"}
	}
	return listed == "" || slices.Contains(kinds, listed)
}
