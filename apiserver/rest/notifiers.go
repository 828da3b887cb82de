// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/url"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/wire"
)

func (h *Handler) listNotifiers(ctx context.Context, c *call, out *answer) error {
	notifiers, err := h.service.ListNotifiers(ctx, c.caller)
	if err != nil {
		return err
	}
	out.body = wire.AppendNotifiers(out.body, notifiers)
	return nil
}

func (h *Handler) getNotifier(ctx context.Context, c *call, out *answer) error {
	return out.notifier(h.service.GetNotifier(ctx, c.caller, c.id))
}

func (h *Handler) createNotifier(ctx context.Context, c *call, out *answer) error {
	name, content, err := wire.CreateNotifier(c.body)
	if err := c.parsed(err); err != nil {
		return err
	}
	created, err := h.service.CreateNotifier(ctx, c.caller, name, &content)
	out.created.location, out.created.replayed = h.version.prefix+"/notifiers/"+url.PathEscape(name), created.Replayed
	return out.notifier(created, err)
}

// updateNotifier changes a notifier. The body has the fields to replace.
func (h *Handler) updateNotifier(ctx context.Context, c *call, out *answer) error {
	stored, err := h.service.GetNotifier(ctx, c.caller, c.id)
	if err != nil {
		return err
	}
	content, err := wire.UpdateNotifier(c.body, bridge.ContentOf(stored.Notifier))
	if err := c.parsed(err); err != nil {
		return err
	}
	if c.version == anyVersion {
		c.version = stored.Version
	}
	changed, err := h.service.UpdateNotifier(ctx, c.caller, c.id, c.version, &content)
	return out.notifier(changed, preconditionFailed(err))
}

// replaceSecret gives a notifier a new secret. It has no body.
func (h *Handler) replaceSecret(ctx context.Context, c *call, out *answer) error {
	return out.notifier(h.service.ReplaceSecret(ctx, c.caller, c.id))
}

func (h *Handler) listDeliveries(ctx context.Context, c *call, out *answer) error {
	found, err := h.service.GetNotifier(ctx, c.caller, c.id)
	if err != nil {
		return err
	}
	out.body = wire.AppendDeliveries(out.body, &found)
	return nil
}

func (h *Handler) resendDelivery(ctx context.Context, c *call, out *answer) error {
	id, err := wire.ResendDelivery(c.body)
	if err := c.parsed(err); err != nil {
		return err
	}
	notifier, delivery, err := h.service.Resend(ctx, c.caller, c.id, id)
	if err != nil {
		return err
	}
	out.body = wire.AppendDelivery(out.body, &notifier, delivery)
	return nil
}

func (h *Handler) deleteNotifier(ctx context.Context, c *call, out *answer) error {
	if err := h.service.DeleteNotifier(ctx, c.caller, c.id); err != nil {
		return err
	}
	out.body = wire.AppendDeleted(out.body, c.id)
	return nil
}

// notifier writes a notifier's response.
func (a *answer) notifier(notifier bridge.Notifier, err error) error {
	if err != nil {
		return err
	}
	a.etag = etag(notifier.Version)
	a.body = wire.AppendNotifier(a.body, &notifier)
	return nil
}
