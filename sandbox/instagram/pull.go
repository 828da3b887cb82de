// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/url"
	"strings"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// mediaOf is a file as posts keep it.
func mediaOf(b blobs.Blob) state.Media {
	return state.Media{SHA256: b.SHA256, Bytes: b.Bytes, MIMEType: b.MIMEType}
}

// addressable says whether a file can be at an address at all.
func addressable(text string) bool {
	address, err := url.Parse(text)
	if err != nil || address.Host == "" || address.Scheme != "http" && address.Scheme != "https" {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isOwn says that a file was lost here and not on its way.
func isOwn(err error) bool {
	_, own := errors.AsType[*fs.PathError](err)
	return own
}

// pullPicture fetches a picture while the client waits. It goes on when the client has gone.
func (l *login) pullPicture(c *graph.Call, address string) (blobs.Blob, *graph.Error) {
	if !addressable(address) {
		return blobs.Blob{}, unfetchable()
	}
	blob, err := l.Blobs.Pull(context.WithoutCancel(c.Context()), address, maxImage)
	switch {
	case err == nil:
		return blob, nil
	case isOwn(err):
		return blob, c.Broken("keep a picture", err)
	case errors.Is(err, blobs.ErrTooLarge):
		return blob, imageTooLarge()
	case errors.Is(err, context.DeadlineExceeded):
		return blob, tooSlow()
	default:
		return blob, unfetchable()
	}
}

// fetch gets the video of a container and judges it, while the container is in progress.
func (l *login) fetch(c state.Container) {
	l.Blobs.PullLater(c.Source, maxVideo, func(blob blobs.Blob, err error) {
		failure := ""
		switch {
		case err == nil:
			failure = judgeVideo(blob, detailOf(c.Detail))
		case isOwn(err):
			l.Logger.Error("a video could not be kept", "container", c.ID, "error", err)
			failure = serverFailed
		case errors.Is(err, blobs.ErrTooLarge):
			failure = videoUnsupported
		case errors.Is(err, context.DeadlineExceeded):
			failure = downloadTooSlow
		default:
			failure = downloadFailed
		}
		_, err = l.Store.ChangeContainer(Name, c.ID, func(c *state.Container) { arrive(c, blob, failure) })
		if err != nil && !errors.Is(err, state.ErrNoContainer) { // a reset forgets containers
			l.Logger.Error("what was fetched could not be noted down", "container", c.ID, "error", err)
		}
	})
}

// arrive gives a container its video, or says how the work on it ends.
func arrive(c *state.Container, video blobs.Blob, failure string) {
	c.Source, c.Failure = "", cmp.Or(failure, c.Failure)
	if failure == "" {
		c.Media = []state.Media{mediaOf(video)}
	}
}

// resume fetches what a restart kept from being fetched.
func (l *login) resume() {
	for _, c := range l.Store.Unfetched(Name) {
		if statusOf(c, l.Clock.Now()) == inProgress {
			l.fetch(c)
		}
	}
}
