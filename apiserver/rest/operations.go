// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/url"
	"slices"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/openapi"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/wire"
)

func (h *Handler) listConnections(_ context.Context, c *call, out *answer) error {
	platform := c.platform(h)
	if err := c.refused(); err != nil {
		return err
	}
	out.body = wire.AppendConnections(out.body, h.service.ListConnections(c.caller, platform))
	return nil
}

func (h *Handler) listPosts(ctx context.Context, c *call, out *answer) error {
	q := c.listQuery(h)
	q.Into = out.page
	if err := c.refused(); err != nil {
		return err
	}
	page, err := h.service.ListPosts(ctx, c.caller, q)
	if err != nil {
		return err
	}
	if len(page.Posts) > 0 {
		out.page = page.Posts
	}
	out.body = wire.AppendPostPage(out.body, &page)
	return nil
}

func (c *call) listQuery(h *Handler) postindex.Query {
	return postindex.Query{
		Page: c.whole(paramPage, 1), Limit: c.whole(paramLimit, bridge.DefaultLimit), Status: c.listStatus(), Platform: c.platform(h),
	}
}

func (c *call) listStatus() v1alpha1.PostPhase {
	return oneOf(c, paramStatus, v1alpha1.PhasePosted, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing, v1alpha1.PhaseFailed, v1alpha1.PhaseDraft)
}

func (c *call) platform(h *Handler) v1alpha1.Platform {
	known := []v1alpha1.Platform{
		v1alpha1.PlatformYouTube, v1alpha1.PlatformTikTok, v1alpha1.PlatformInstagram,
		v1alpha1.PlatformThreads, v1alpha1.PlatformX, v1alpha1.PlatformFacebook,
	}
	if h.version.laterPlatforms {
		known = append(known, openapi.LaterPlatforms(h.service.Capabilities)...)
	}
	return oneOf(c, paramPlatform, known...)
}

func (h *Handler) createPost(ctx context.Context, c *call, out *answer) error {
	in, err := h.version.readPost(c.body)
	c.ignoredInBody()
	if unread, more := c.body.Problems(); err != nil || len(c.wrong) > 0 {
		return h.service.RefusePost(ctx, c.caller, in, slices.Concat(c.wrong, unread), more)
	}
	in.IdempotencyKey = c.key
	post, err := h.service.CreatePost(ctx, c.caller, in)
	if err != nil {
		return err
	}
	out.created = h.createdAt(&post)
	h.version.post(out, &post)
	return nil
}

func (h *Handler) createdAt(post *bridge.PostDetail) created {
	return created{location: h.version.prefix + "/posts/" + url.PathEscape(post.ID), replayed: post.Replayed, waits: post.Waits}
}

func (h *Handler) createMediaUpload(ctx context.Context, c *call, out *answer) error {
	in, err := h.version.readUpload(c.body)
	c.ignoredInBody()
	if unread, more := c.body.Problems(); err != nil || len(c.wrong) > 0 {
		return bridge.RefuseUpload(&in.Spec, slices.Concat(c.wrong, unread), more)
	}
	in.IdempotencyKey = c.key
	upload, err := h.service.CreateMediaUpload(ctx, c.caller, in)
	if err != nil {
		return err
	}
	out.created.replayed = upload.Replayed
	out.body = h.version.upload(out.body, &upload)
	return nil
}

func (h *Handler) getPost(ctx context.Context, c *call, out *answer) error {
	post, err := h.service.GetPost(ctx, c.caller, c.id)
	if err != nil {
		return err
	}
	h.version.post(out, &post)
	return nil
}

func (h *Handler) cancelPost(ctx context.Context, c *call, out *answer) error {
	if err := h.service.CancelPost(ctx, c.caller, c.id); err != nil {
		return err
	}
	out.body = wire.AppendCancelled(out.body, c.id)
	return nil
}
