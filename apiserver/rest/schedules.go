// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"context"
	"net/url"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/wire"
)

func (h *Handler) listSchedules(ctx context.Context, c *call, out *answer) error {
	schedules, err := h.service.ListSchedules(ctx, c.caller)
	if err != nil {
		return err
	}
	out.body = wire.AppendSchedules(out.body, schedules)
	return nil
}

func (h *Handler) getSchedule(ctx context.Context, c *call, out *answer) error {
	return out.schedule(h.service.GetSchedule(ctx, c.caller, c.id))
}

func (h *Handler) createSchedule(ctx context.Context, c *call, out *answer) error {
	name, spec, err := wire.CreateSchedule(c.body)
	if err := c.parsed(err); err != nil {
		return err
	}
	created, err := h.service.CreateSchedule(ctx, c.caller, name, spec)
	out.created.location, out.created.replayed = h.version.prefix+"/schedules/"+url.PathEscape(name), created.Replayed
	return out.schedule(created, err)
}

// updateSchedule changes a schedule. The body has the fields to replace.
func (h *Handler) updateSchedule(ctx context.Context, c *call, out *answer) error {
	stored, err := h.service.GetSchedule(ctx, c.caller, c.id)
	if err != nil {
		return err
	}
	spec, err := wire.UpdateSchedule(c.body, &stored.Spec)
	if err := c.parsed(err); err != nil {
		return err
	}
	if c.version == anyVersion {
		c.version = stored.Version
	}
	changed, err := h.service.UpdateSchedule(ctx, c.caller, c.id, c.version, spec)
	return out.schedule(changed, preconditionFailed(err))
}

func (h *Handler) deleteSchedule(ctx context.Context, c *call, out *answer) error {
	if err := h.service.DeleteSchedule(ctx, c.caller, c.id); err != nil {
		return err
	}
	out.body = wire.AppendDeleted(out.body, c.id)
	return nil
}

// schedule writes a schedule's response.
func (a *answer) schedule(schedule bridge.Schedule, err error) error {
	if err != nil {
		return err
	}
	a.etag = etag(schedule.Version)
	a.body = wire.AppendSchedule(a.body, &schedule)
	return nil
}
