// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
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

const msgUploadRefused = "Instagram refused the upload of %s (%s); change the video, or try again later"

// fill uploads the video of the job into a container. The bytes go in one
// request, always from the first: Instagram does not say how far an upload that
// was cut off has come. A failure that another container may mend says so.
func (t *task) fill(ctx context.Context, id string) *failure {
	for try := 1; ; try++ {
		sent, bad := t.send(ctx, id)
		if bad == nil || bad.Class != platforms.ClassTransient || !sent || try == uploadTries || ctx.Err() != nil {
			return bad
		}
		// The answer may be what was lost, and not the file.
		found, _, unknown := t.state(ctx, id)
		if unknown != nil {
			return unknown
		}
		if found != meta.StateInProgress {
			return nil
		}
	}
}

// send uploads the video once. sent says that some of it may have arrived.
func (t *task) send(ctx context.Context, id string) (sent bool, bad *failure) {
	file := &t.job.Content.Media[0]
	content, err := file.Bytes.Open(ctx, 0, file.Size)
	if err != nil {
		return false, failed(file.Unreadable(err))
	}
	defer content.Close()
	resp, err := t.uploads.Send(ctx, meta.Stream{
		Action: "upload", Path: "/ig-api-upload/" + t.config.Version + "/" + url.PathEscape(id), Token: t.job.Account.Token.Access,
		Size: file.Size, Content: content, Timeout: uploadTimeout + time.Duration(file.Size/slowest)*time.Second,
	})
	switch {
	case errors.Is(err, platforms.ErrFileChanged):
		return true, failed(file.Unreadable(err))
	case err != nil:
		return !notSent(err), failed(unanswered(err))
	}
	return true, t.host.judgeUpload(resp, theFile(file))
}

// typeName is the form of the names that the host of uploads gives its errors.
var typeName = regexp.MustCompile(`^[A-Za-z]+$`)

// judgeUpload says what the answer to an upload asks for; nil if the file was
// taken.
func (h *host) judgeUpload(resp *transport.Response, about string) *failure {
	said := meta.ParseUpload(resp)
	if said == nil {
		return nil
	}
	if meta.ParseError(resp).Code != 0 || resp.Status == http.StatusTooManyRequests {
		// It has no words of its own for limits.
		return h.classify(resp, about)
	}
	out := failed(&platforms.Error{Err: said})
	switch {
	case said.Retriable, said.Status >= http.StatusInternalServerError:
		out.Class, out.Problem = platforms.ClassTransient, fmt.Sprintf(msgNotTaken, about)
	case said.Type == "":
		out.Class, out.Problem = platforms.ClassUnknown, fmt.Sprintf(msgNonsense, said.Status)
	case said.Status == http.StatusUnauthorized:
		out.Class, out.Problem = platforms.ClassReconnect, msgToken
	case said.Status == http.StatusForbidden:
		out.Class, out.Problem = platforms.ClassReconnect, msgPermission
	default:
		name := said.Type
		if !typeName.MatchString(name) {
			name = "unknown"
		}
		out.Class, out.Problem, out.again = platforms.ClassPermanent, fmt.Sprintf(msgUploadRefused, about, name), true
	}
	return out
}
