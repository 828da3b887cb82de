// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
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
		found, unknown := t.State(ctx, id)
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
	content, err := file.Bytes.Open(ctx, 0, file.Size)
	if err != nil {
		return false, meta.Failed(file.Unreadable(err))
	}
	defer content.Close()
	resp, err := meta.Send(ctx, &t.platform.uploads, meta.Stream{
		Action: "upload", Path: "/ig-api-upload/" + t.Version + "/" + url.PathEscape(id), Token: t.Job.Account.Token.Access,
		Size: file.Size, Content: content, Timeout: uploadTimeout + time.Duration(file.Size/slowest)*time.Second,
	})
	if err != nil {
		return !client.NotSent(err), meta.Failed(t.UploadUnanswered(file, err))
	}
	return true, t.host.judgeUpload(resp, meta.TheFile(file))
}

// The codes of the graphs for what the host of uploads says by its status.
const (
	codeToken      = 190
	codePermission = 10
)

// typeName is the form of the names that the host of uploads gives its errors.
var typeName = regexp.MustCompile(`^[A-Za-z]+$`)

// judgeUpload says what the answer to an upload asks for; nil if the file was
// taken.
func (h *host) judgeUpload(resp *transport.Response, about string) *meta.Failure {
	said := meta.ParseUpload(resp)
	if said == nil {
		return nil
	}
	if meta.ParseError(resp).Code != 0 || resp.Status == http.StatusTooManyRequests {
		// It has no words of its own for limits.
		return h.Classify(resp, about)
	}
	var bad *meta.Failure
	switch {
	case said.Retriable, said.Status >= http.StatusInternalServerError:
		bad = h.Mean(meta.Meaning{Error: notTaken}, new(meta.Error), about)
	case said.Type == "":
		bad = meta.Failed(h.Nonsense(said.Status, nil))
	case said.Status == http.StatusUnauthorized:
		bad = h.Explain(&meta.Error{Code: codeToken}, about)
	case said.Status == http.StatusForbidden:
		bad = h.Explain(&meta.Error{Code: codePermission}, about)
	default:
		name := said.Type
		if !typeName.MatchString(name) {
			name = "unknown"
		}
		bad = meta.Failed(platforms.Errorf(platforms.ClassPermanent, "Instagram refused the upload of %s (%s)", about, name).Advise("change the video, or try again later"))
		bad.Again = true
	}
	bad.Err = said
	return bad
}
