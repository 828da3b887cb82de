// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// uploadTries is the maximum number of times that one preparation uploads a video.
	uploadTries = 2
	// uploadTimeout is the timeout of one upload, plus the time for the file at slowest bytes per second.
	uploadTimeout = time.Minute
	slowest       = 128 << 10
)

// fill uploads the job's video into a container. The upload is a single request, always from the first byte: Instagram
// does not report the progress of an interrupted upload. A failure that a new container may fix is marked as Retryable.
func (t *task) fill(ctx context.Context, id string) *meta.Failure {
	for try := 1; ; try++ {
		sent, bad := t.send(ctx, id)
		if bad == nil || bad.Class != platforms.ClassTransient || !sent || try == uploadTries || ctx.Err() != nil {
			return bad
		}
		// The file may have arrived, with only the response lost.
		found, _, unknown := t.State(ctx, &t.Job, id)
		if unknown != nil {
			return unknown
		}
		if found != meta.StateInProgress {
			return nil
		}
	}
}

// send uploads the video once. sent reports whether any of it may have arrived.
func (t *task) send(ctx context.Context, id string) (sent bool, bad *meta.Failure) {
	file := &t.Job.Content.Media[0]
	resp, sent, failure := t.platform.uploads.Upload(ctx, client.Upload{
		Call: client.Call{
			Action: "upload", Path: "/ig-api-upload/" + t.Version + "/" + url.PathEscape(id), Timeout: uploadTimeout + time.Duration(file.Size/slowest)*time.Second,
			Header: http.Header{
				"Authorization": {"OAuth " + t.Job.Account.Token.Access},
				// The upload host documents these header names in lower case; HTTP header names are
				// case-insensitive.
				"Offset":    {"0"},
				"File_size": {strconv.FormatInt(file.Size, 10)},
			},
			Body: client.Body{Type: "application/octet-stream"},
		},
		File: file, Length: file.Size,
	})
	if failure != nil {
		return sent, meta.NewFailure(failure)
	}
	return true, t.host.classifyUpload(resp, meta.TheFile(file))
}

// The graph's codes for errors that the upload host reports as an HTTP status.
const (
	codeToken      = 190
	codePermission = 10
)

// classifyUpload classifies the response to an upload. It returns nil if the file was accepted. The upload host uses
// its own error format in addition to the graph's.
func (h *host) classifyUpload(resp *transport.Response, about string) *meta.Failure {
	answer, _ := jsondoc.Decode[struct {
		Success jsondoc.Flag `json:"success"`
		Said    struct {
			Type jsondoc.Text `json:"type"`
			// Retriable is the host's own flag for errors where the same upload may succeed later.
			Retriable jsondoc.Flag `json:"retriable"`
		} `json:"debug_info"`
	}](resp.Body)
	said := answer.Said
	switch {
	case resp.Status == http.StatusOK && bool(answer.Success):
		return nil
	case h.Errors.Parse(resp).Code != 0, resp.Status == http.StatusTooManyRequests:
		// The host has no error format of its own for rate limits.
		return h.Classify(resp, about)
	}
	var bad *meta.Failure
	switch {
	case bool(said.Retriable), resp.Status >= http.StatusInternalServerError:
		bad = h.Render(meta.Classification{Error: notTaken}, new(meta.Error), about)
	case said.Type == "":
		bad = meta.NewFailure(h.Nonsense(resp.Status, nil))
	case resp.Status == http.StatusUnauthorized:
		bad = h.Explain(&meta.Error{Code: codeToken}, about)
	case resp.Status == http.StatusForbidden:
		bad = h.Explain(&meta.Error{Code: codePermission}, about)
	default:
		name := said.Type.String()
		if !text.Consists(name, 1, 64, text.Letters) {
			name = "unknown"
		}
		bad = meta.NewFailure(platforms.Errorf(platforms.ClassPermanent, "Instagram refused the upload of %s with %q, which does not identify the cause", about, name).
			Advise("try it again later, or change the video"))
		bad.Retryable, bad.Code, bad.Unlisted = true, name, true
	}
	bad.Err = fmt.Errorf("HTTP status %d of the host of uploads, type %.64q", resp.Status, said.Type)
	return bad
}
