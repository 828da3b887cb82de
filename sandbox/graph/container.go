// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"cmp"
	"errors"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Container states.
const (
	InProgress = "IN_PROGRESS"
	Finished   = "FINISHED"
	Published  = "PUBLISHED"
	Failed     = "ERROR"
	Expired    = "EXPIRED"
)

const (
	// ContainerLife is an unpublished container's lifetime.
	ContainerLife = 24 * time.Hour
	// VideoProcessing is the default video processing time. The platforms need about a minute.
	VideoProcessing = 2 * time.Second
)

// StatusOf returns a container's state. awaited means that its upload is still pending.
func (a *API) StatusOf(c state.Container, awaited bool) string {
	now := a.Clock.Now()
	switch {
	case c.PostID != "":
		return Published
	case !now.Before(c.CreatedAt().Add(ContainerLife)):
		return Expired
	case awaited, c.Source != "", now.Before(c.ReadyAt):
		return InProgress
	case c.Failure != "":
		return Failed
	default:
		return Finished
	}
}

// Container returns an account's container.
func (a *API) Container(account state.Account, id string) (state.Container, bool) {
	c, ok := a.Store.Container(a.Platform, id)
	return c, ok && c.AccountID == account.ID
}

// PublishContainer publishes a post from containers. It returns gone for a container that does not exist or was already published.
func (c *Call) PublishContainer(account state.Account, draft state.Draft, gone *Error) (any, *Error) {
	draft.NewID = NewID
	post, err := c.api.Store.Publish(account.Key, draft)
	if err == nil {
		return map[string]string{"id": post.ID}, nil
	}
	if _, used := errors.AsType[*state.PublishedError](err); used || errors.Is(err, state.ErrNoContainer) {
		return nil, gone
	}
	if _, full := errors.AsType[*state.QuotaError](err); full {
		return nil, Refusal(9, "(#9) Application request limit reached").Because(2207042, "Publishing limit reached",
			"You have reached the maximum number of posts that may be published in 24 hours.")
	}
	return nil, c.InternalError("keep a post", err)
}

// Fetch downloads a container's video in the background. judge returns the processing failure; "" for success.
func (a *API) Fetch(c state.Container, limit int64, judge func(blobs.Blob, error) string) {
	a.Blobs.PullLater([]string{c.Source}, limit, blobs.Follow, func(files []blobs.Blob, err error) {
		var blob blobs.Blob
		if err == nil {
			blob = files[0]
		}
		failure := judge(blob, err)
		_, err = a.Store.ChangeContainer(a.Platform, c.ID, func(c *state.Container) { Arrive(c, blob, failure) })
		if err != nil && !errors.Is(err, state.ErrNoContainer) { // a reset removes containers
			a.Logger.Error("a fetched file could not be noted down", "container", c.ID, "error", err)
		}
	})
}

// Arrive stores a container's video, or its processing failure.
func Arrive(c *state.Container, video blobs.Blob, failure string) {
	c.Source, c.Failure = "", cmp.Or(failure, c.Failure)
	if failure == "" {
		c.Media = []state.Media{simulator.MediaOf(video).Described(c.AltText)}
	}
}

// Resume calls fetch for containers whose download was interrupted by a restart.
func (a *API) Resume(fetch func(state.Container)) {
	for _, c := range a.Store.Unfetched(a.Platform) {
		if a.StatusOf(c, false) == InProgress {
			fetch(c)
		}
	}
}

// Quota returns an account's usage of its 24-hour quota. total is the platform's documented quota, which is enforced only if the control
// API sets a quota.
func (c *Call) Quota(kind string, account state.Account, total int) (any, *Error) {
	if account.Settings.Quota != nil {
		total = *account.Settings.Quota
	}
	return c.ShowListed(Node{
		Type: kind,
		Values: map[string]any{
			"quota_usage": c.api.Store.QuotaUsed(account.Key),
			"config":      map[string]int{"quota_total": total, "quota_duration": int(state.QuotaWindow.Seconds())},
		},
		Known: []string{"quota_usage", "config"}, Default: []string{"quota_usage"},
	})
}

// Reference returns a node with only an ID.
func Reference(id string) Node {
	return Node{Type: "Node", Values: map[string]any{"id": id}, Known: []string{"id"}, Default: []string{"id"}}
}
