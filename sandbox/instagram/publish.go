// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// The states of a container.
const (
	inProgress = "IN_PROGRESS"
	finished   = "FINISHED"
	published  = "PUBLISHED"
	failed     = "ERROR"
	expired    = "EXPIRED"
)

func statusOf(c state.Container, now time.Time) string {
	switch {
	case c.PostID != "":
		return published
	case !now.Before(c.CreatedAt().Add(containerLife)):
		return expired
	case c.Source != "", detailOf(c.Detail).Awaited, now.Before(c.ReadyAt):
		return inProgress
	case c.Failure != "":
		return failed
	default:
		return finished
	}
}

// statusTexts say to people what a state means. That of a failure ends with its subcode.
var statusTexts = map[string]string{
	inProgress: "In Progress: Media is still being processed.",
	finished:   "Finished: Media has been uploaded and it is ready to be published.",
	published:  "Published: Media has been published.",
	expired:    "Expired: Media was not published within 24 hours.",
	failed:     "Error: Media upload has failed with error code ",
}

// status is GET /{id} for a container.
func (l *login) status(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(l.read...)
	if bad != nil {
		return nil, bad
	}
	container, ok := l.Store.Container(Name, c.PathValue("id"))
	if !ok || container.AccountID != account.ID {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	code := statusOf(container, l.Clock.Now())
	text := statusTexts[code]
	if code == failed {
		text += container.Failure
	}
	return result(graph.Node{
		Type:    "IGMediaContainer",
		Values:  map[string]any{"id": container.ID, "status_code": code, "status": text},
		Known:   []string{"id", "status", "status_code", "copyright_check_status"},
		Default: []string{"id"},
	}.Select(fields))
}

// publish is POST /{id}/media_publish.
func (l *login) publish(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.write)
	if bad != nil {
		return nil, bad
	}
	id := c.Params.Required("creation_id")
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	container, ok := l.Store.Container(Name, id)
	if !ok || container.AccountID != account.ID {
		return nil, mediaNotFound(id)
	}
	kept := detailOf(container.Detail)
	switch status := statusOf(container, l.Clock.Now()); {
	case status == published:
		return nil, creationNotFound(id)
	case status == expired:
		return nil, mediaExpired(id)
	case status != finished:
		return nil, notReady(id)
	case kept.Item:
		return nil, graph.BadParam("Container %s is an item of a carousel and cannot be published by itself.", id)
	}
	return l.publishContainer(c, account, container, kept)
}

// publishContainer makes the post.
func (l *login) publishContainer(c *graph.Call, account state.Account, from state.Container, kept detail) (any, *graph.Error) {
	draft := state.Draft{Text: from.Text, Media: from.Media, Container: from.ID, NewID: graph.NewID}
	for _, id := range kept.Children {
		child, _ := l.Store.Container(Name, id)
		kept.Parts = append(kept.Parts, detailOf(child.Detail))
		draft.Media = append(draft.Media, child.Media...)
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return nil, c.Broken("encode a post", err)
	}
	draft.Detail = content
	post, err := l.Store.Publish(account.Key, draft)
	if err == nil {
		return map[string]string{"id": post.ID}, nil
	}
	if _, used := errors.AsType[*state.PublishedError](err); used || errors.Is(err, state.ErrNoContainer) {
		return nil, creationNotFound(from.ID)
	}
	if _, full := errors.AsType[*state.QuotaError](err); full {
		return nil, quotaUsed()
	}
	return nil, c.Broken("keep a post", err)
}

// postQuota is the documented quota of an account in any 24 hours; the platform's pages disagree, and this is what its
// reference says. Posts beyond it are refused only where the control API sets a quota.
const postQuota = 50

// limit is GET /{id}/content_publishing_limit.
func (l *login) limit(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.write)
	if bad != nil {
		return nil, bad
	}
	fields, since := c.Params.Fields(), c.Params.Time("since")
	now := l.Clock.Now()
	if !since.IsZero() && (since.After(now) || since.Before(now.Add(-state.QuotaWindow))) {
		c.Params.Rejectf("Param since must be within the last 24 hours.")
	}
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	used, _ := l.Store.QuotaUsed(account.Key)
	if !since.IsZero() {
		used = 0
		for _, post := range l.Store.Posts(Name, account.ID) {
			if !post.CreatedAt().Before(since) {
				used++
			}
		}
	}
	total := postQuota
	if account.Settings.Quota != nil {
		total = *account.Settings.Quota
	}
	body, bad := graph.Node{
		Type: "IGContentPublishingLimit",
		Values: map[string]any{
			"quota_usage": used,
			"config":      map[string]int{"quota_total": total, "quota_duration": int(state.QuotaWindow.Seconds())},
		},
		Known: []string{"quota_usage", "config"}, Default: []string{"quota_usage"},
	}.Select(fields)
	if bad != nil {
		return nil, bad
	}
	return map[string]any{"data": []any{body}}, nil
}
