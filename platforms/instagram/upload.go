// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/meta"
)

const (
	// uploadTries is how often the bytes of a video are sent in one
	// preparation.
	uploadTries = 2
	// uploadTimeout bounds one upload, beside a second for each slowest bytes.
	uploadTimeout = time.Minute
	slowest       = 128 << 10
)

// fill uploads the video of the job into a container. The bytes go in one
// request, always from the first: Instagram does not say how far an upload that
// was cut off has come. A failure that another container may mend says so.
func (t *task) fill(ctx context.Context, id string) *meta.Failure {
	for try := 1; ; try++ {
		sent, bad := t.send(ctx, id)
		if bad == nil || bad.Class != platforms.ClassTransient || !sent || try == uploadTries || ctx.Err() != nil {
			return bad
		}
		// The answer may be what was lost, and not the file.
		found, _, unknown := t.State(ctx, &t.Job, id)
		if unknown != nil {
			return unknown
		}
		if found != meta.StateInProgress {
			return nil
		}
	}
}

// send uploads the video once. sent says that some of it may have arrived.
func (t *task) send(ctx context.Context, id string) (sent bool, bad *meta.Failure) {
	file := &t.Job.Content.Media[0]
	resp, sent, failure := t.platform.uploads.Upload(ctx, client.Upload{
		Call: client.Call{
			Action: "upload", Path: "/ig-api-upload/" + t.Version + "/" + url.PathEscape(id), Timeout: uploadTimeout + time.Duration(file.Size/slowest)*time.Second,
			Header: http.Header{
				"Authorization": {"OAuth " + t.Job.Account.Token.Access},
				// The host documents these names in small letters; HTTP makes no
				// difference.
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

// The codes of the graphs for what the host of uploads says by its status.
const (
	codeToken      = 190
	codePermission = 10
)

// typeName is the form of the names that the host of uploads gives its errors.
var typeName = regexp.MustCompile(`^[A-Za-z]{1,64}$`)

// classifyUpload says what the answer to an upload asks for; nil if the file was
// taken. The host of uploads words its errors in another way than the graphs,
// beside theirs.
func (h *host) classifyUpload(resp *transport.Response, about string) *meta.Failure {
	answer, _ := jsondoc.Decode[struct {
		Success jsondoc.Flag `json:"success"`
		Said    struct {
			Type jsondoc.Text `json:"type"`
			// Retriable is what the host says itself: the same upload may succeed
			// later.
			Retriable jsondoc.Flag `json:"retriable"`
		} `json:"debug_info"`
	}](resp.Body)
	said := answer.Said
	switch {
	case resp.Status == http.StatusOK && bool(answer.Success):
		return nil
	case h.Errors.Parse(resp).Code != 0, resp.Status == http.StatusTooManyRequests:
		// It has no words of its own for limits.
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
		if !typeName.MatchString(name) {
			name = "unknown"
		}
		bad = meta.NewFailure(platforms.Errorf(platforms.ClassPermanent, "Instagram refused the upload of %s with %q, which does not say what is at fault", about, name).
			Advise("try it again later, or change the video"))
		bad.Retryable, bad.Code, bad.Unlisted = true, name, true
	}
	bad.Err = fmt.Errorf("HTTP status %d of the host of uploads, type %.64q", resp.Status, said.Type)
	return bad
}
