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

// addressable reports whether a string can be a file's address.
func addressable(text string) bool {
	return simulator.IsAddress(text) && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isOwn reports whether an error is a local file error and not a download error.
func isOwn(err error) bool {
	_, own := errors.AsType[*fs.PathError](err)
	return own
}

// pullPicture fetches an image while the client waits. It continues after the client disconnects.
func (l *login) pullPicture(c *graph.Call, address string) (blobs.Blob, *graph.Error) {
	if !addressable(address) {
		return blobs.Blob{}, unfetchable()
	}
	blob, err := l.Blobs.Pull(context.WithoutCancel(c.Context()), address, maxImage, blobs.Follow)
	switch {
	case err == nil:
		return blob, nil
	case isOwn(err):
		return blob, c.InternalError("keep a picture", err)
	case errors.Is(err, blobs.ErrTooLarge):
		return blob, imageTooLarge()
	case errors.Is(err, context.DeadlineExceeded):
		return blob, tooSlow()
	default:
		return blob, unfetchable()
	}
}

// fetch downloads and checks a container's video while it is in progress.
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
