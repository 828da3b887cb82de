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

// The states of a container.
const (
	InProgress = "IN_PROGRESS"
	Finished   = "FINISHED"
	Published  = "PUBLISHED"
	Failed     = "ERROR"
	Expired    = "EXPIRED"
)

const (
	// ContainerLife is after how long a container that was not published expires.
	ContainerLife = 24 * time.Hour
	// VideoProcessing is how long a video takes to be ready, unless the control API says otherwise. On the platforms it is
	// rather a minute.
	VideoProcessing = 2 * time.Second
)

// StatusOf is the state of a container. Awaited says that its bytes are still to be uploaded.
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

// Container returns a container of an account.
func (a *API) Container(account state.Account, id string) (state.Container, bool) {
	c, ok := a.Store.Container(a.Platform, id)
	return c, ok && c.AccountID == account.ID
}

// PublishContainer makes a post of containers. The error is gone for one that was published before.
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
	return nil, c.Broken("keep a post", err)
}

// Fetch gets the video of a container in the background and lets judge say how the work on it ends; "" when it ends well.
func (a *API) Fetch(c state.Container, limit int64, judge func(blobs.Blob, error) string) {
	a.Blobs.PullLater([]string{c.Source}, limit, blobs.Follow, func(files []blobs.Blob, err error) {
		var blob blobs.Blob
		if err == nil {
			blob = files[0]
		}
		failure := judge(blob, err)
		_, err = a.Store.ChangeContainer(a.Platform, c.ID, func(c *state.Container) { Arrive(c, blob, failure) })
		if err != nil && !errors.Is(err, state.ErrNoContainer) { // a reset forgets containers
			a.Logger.Error("a fetched file could not be noted down", "container", c.ID, "error", err)
		}
	})
}

// Arrive gives a container its video, or says how the work on it ends.
func Arrive(c *state.Container, video blobs.Blob, failure string) {
	c.Source, c.Failure = "", cmp.Or(failure, c.Failure)
	if failure == "" {
		c.Media = []state.Media{simulator.MediaOf(video)}
	}
}

// Resume calls fetch for the containers whose files a restart kept from being fetched.
func (a *API) Resume(fetch func(state.Container)) {
	for _, c := range a.Store.Unfetched(a.Platform) {
		if a.StatusOf(c, false) == InProgress {
			fetch(c)
		}
	}
}

// Quota answers how much of an account's posts of 24 hours is used. total is the platform's documented number: posts
// beyond it are refused only where the control API sets a quota.
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

// Reference is a node that shows nothing but its id.
func Reference(id string) Node {
	return Node{Type: "Node", Values: map[string]any{"id": id}, Known: []string{"id"}, Default: []string{"id"}}
}
