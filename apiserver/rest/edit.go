// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/wire"
)

// anyVersion is the If-Match value of a client that accepts every version (RFC 9110, section 13.1.1).
const anyVersion = "*"

// maxVersion limits the length of a version, in bytes: a UID and a generation.
const maxVersion = 128

// parseIfMatch stores the version in If-Match. A weak tag counts as its strong form: proxies that compress responses
// weaken tags, and a version identifies content rather than bytes.
func (c *call) parseIfMatch(r *http.Request, of *operation) error {
	const name = "If-Match"
	values := r.Header.Values(name)
	if len(values) == 0 {
		return &bridge.Error{Code: bridge.CodePreconditionRequired, Message: "read the " + of.noun() + ", and send its ETag as If-Match, so that no other change is overwritten"}
	}
	tag := strings.TrimSpace(values[0])
	if c.version = tag; len(values) == 1 && tag == anyVersion {
		return nil
	}
	inner, opened := strings.CutPrefix(strings.TrimPrefix(tag, "W/"), `"`)
	version, closed := strings.CutSuffix(inner, `"`)
	if len(values) > 1 || !opened || !closed || version == "" || len(version) > maxVersion || strings.Contains(version, `"`) {
		c.refuse(name, `must be one ETag of the `+of.noun()+`, in double quotes, or *`)
	}
	c.version = version
	return nil
}

// updatePost changes a post. The body has the fields to replace.
func (h *Handler) updatePost(ctx context.Context, c *call, out *answer) error {
	stored, err := h.service.ReadPost(ctx, c.caller, c.id)
	if err != nil {
		return err
	}
	in := wire.UpdatePost(c.body, &stored.Spec)
	c.ignoredInBody()
	unread, more := c.body.Problems()
	in.Unread, in.More = slices.Concat(c.wrong, unread), more
	if in.Version = c.version; c.version == anyVersion {
		in.Version = bridge.Version(stored)
	}
	post, err := h.service.EditPost(ctx, c.caller, stored, &in)
	if err != nil {
		return preconditionFailed(err)
	}
	h.version.post(out, &post)
	return nil
}

// preconditionFailed replaces the error for an object that has changed since the client read it.
func preconditionFailed(err error) error {
	if known, ok := errors.AsType[*bridge.Error](err); ok && known.Stale {
		return &bridge.Error{Code: bridge.CodePreconditionFailed, Message: known.Message}
	}
	return err
}

// retryPost creates a post that retries a failed one. It has no body.
func (h *Handler) retryPost(ctx context.Context, c *call, out *answer) error {
	post, err := h.service.RetryPost(ctx, c.caller, bridge.RetryPost{ID: c.id, IdempotencyKey: c.key})
	if err != nil {
		return err
	}
	out.created = h.createdAt(&post)
	h.version.post(out, &post)
	return nil
}

// validatePost is createPost without a write.
func (h *Handler) validatePost(ctx context.Context, c *call, out *answer) error {
	in, _ := h.version.readPost(c.body) // the problems of the body are findings
	c.ignoredInBody()
	unread, more := c.body.Problems()
	found, err := h.service.ValidatePost(ctx, c.caller, in, slices.Concat(c.wrong, unread), more)
	if err != nil {
		return err
	}
	out.body = wire.AppendValidation(out.body, &found)
	return nil
}
