// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// addressable says whether a file can be at an address at all.
func addressable(text string) bool {
	return simulator.IsAddress(text) && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
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
	blob, err := l.Blobs.Pull(context.WithoutCancel(c.Context()), address, maxImage, blobs.Follow)
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
	l.Fetch(c, maxVideo, func(blob blobs.Blob, err error) string {
		switch {
		case err == nil:
			return validateVideo(blob, detailOf(c.Detail))
		case isOwn(err):
			l.Logger.Error("a video could not be kept", "container", c.ID, "error", err)
			return serverFailed
		case errors.Is(err, blobs.ErrTooLarge):
			return videoUnsupported
		case errors.Is(err, context.DeadlineExceeded):
			return downloadTooSlow
		default:
			return downloadFailed
		}
	})
}
