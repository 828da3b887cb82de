// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
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
	case now.Before(c.ReadyAt), c.Source != "":
		return inProgress
	case c.Failure != "":
		return failed
	default:
		return finished
	}
}

// status is GET /{id} for a container.
func (p *Platform) status(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	container, ok := p.Store.Container(Name, c.PathValue("id"))
	if !ok || container.AccountID != account.ID {
		return nil, graph.NoObject("get", c.PathValue("id"))
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	node := graph.Node{
		Type:   "ThreadsMediaContainer",
		Values: map[string]any{"id": container.ID, "status": statusOf(container, p.Clock.Now())},
		Known:  []string{"id", "status", "error_message"}, Default: []string{"id"},
	}
	if node.Values["status"] == failed {
		node.Values["error_message"] = container.Failure
	}
	return result(node.Select(fields))
}

// publish is POST /{id}/threads_publish.
func (p *Platform) publish(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic, scopePublish)
	if bad != nil {
		return nil, bad
	}
	id := c.Params.Required("creation_id")
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	container, ok := p.Store.Container(Name, id)
	// A container that is not ready, not this account's, or a post already, is not there for the platform.
	if !ok || container.AccountID != account.ID || statusOf(container, p.Clock.Now()) != finished {
		return nil, noContainer(id)
	}
	if detailOf(container.Detail).Item {
		return nil, graph.BadParam("Param creation_id must not be the id of a carousel item.")
	}
	return p.publishContainer(c, account, container)
}

// noContainer is the answer to the id of nothing that can be published now.
func noContainer(id string) *graph.Error {
	return graph.Refusal(24, "The requested resource does not exist").Because(4279009, "Media Not Found",
		"The media with id "+id+" cannot be found.")
}

// publishContainer makes the post.
func (p *Platform) publishContainer(c *graph.Call, account state.Account, from state.Container) (any, *graph.Error) {
	post, err := p.Store.Publish(account.Key, state.Draft{
		Text: from.Text, Link: from.Link, Media: from.Media, InReplyTo: from.InReplyTo, Root: from.Root, Detail: from.Detail,
		Container: from.ID, Free: from.InReplyTo != "", NewID: graph.NewID,
	})
	if err == nil {
		return map[string]string{"id": post.ID}, nil
	}
	if _, used := errors.AsType[*state.PublishedError](err); used || errors.Is(err, state.ErrNoContainer) {
		return nil, noContainer(from.ID)
	}
	if _, full := errors.AsType[*state.QuotaError](err); full {
		return nil, graph.Refusal(9, "(#9) Application request limit reached").Because(2207042, "Publishing limit reached",
			"You have reached the maximum number of posts that may be published in 24 hours.")
	}
	return nil, c.Broken("keep a post", err)
}
