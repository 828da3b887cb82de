// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	msgUnprepared = "the video is not uploaded yet"
	msgIncomplete = "YouTube has not received all parts of the video"
	msgGone       = "YouTube no longer has the upload"
	msgNotPublic  = "YouTube made the video %s instead of public; check the settings of the channel in YouTube Studio"
)

// Publish sends the video's last part, which makes the video visible once YouTube has processed it.
func (p *Platform) Publish(ctx context.Context, job platforms.Job) platforms.Result {
	file, failure := videoOf(&job)
	if failure != nil {
		return unsent(failure)
	}
	s, ok := p.sessionOf(&job)
	if !ok || s.last >= file.Size || file.Size-s.last > unit {
		return unsent(platforms.Errorf(platforms.ClassTransient, msgUnprepared))
	}
	// The part is read into memory first, so a store error cannot leave the call's outcome unknown.
	part, failure := readPart(ctx, file, s.last)
	if failure != nil {
		return unsent(failure)
	}
	resp, err := p.put(ctx, s, client.Call{
		Action: "publish", Header: span(s.last, int64(len(part)), file.Size), Timeout: publishTimeout,
		Body: client.Body{Content: bytes.NewReader(part), Length: int64(len(part)), Type: string(file.MIMEType)},
	})
	if err != nil {
		return p.API.UploadInDoubt(err)
	}
	created, result := p.publishResult(resp, s, file.Size)
	switch {
	case created != nil:
		return p.resolvePublished(ctx, &job, created)
	case result.Outcome == platforms.Refused && result.Err.Class == platforms.ClassPermanent:
		p.doubleCheck(ctx, s, file.Size, &result)
	}
	return result
}

// unsent returns the result of a call that was not made because an earlier step is missing or because the call can
// never succeed.
func unsent(failure *platforms.Error) platforms.Result {
	return platforms.Result{Outcome: platforms.Refused, Unpublished: true, Err: failure}
}

func refusal(failure *platforms.Error) platforms.Result {
	return platforms.Result{Outcome: platforms.Refused, Err: failure}
}

func readPart(ctx context.Context, file *platforms.File, offset int64) ([]byte, *platforms.Error) {
	content, err := file.Bytes.Open(ctx, offset, file.Size-offset)
	if err != nil {
		return nil, file.Unreadable(err)
	}
	defer content.Close()
	part := make([]byte, file.Size-offset)
	if _, err := io.ReadFull(content, part); err != nil {
		return nil, file.Unreadable(err)
	}
	return part, nil
}

// publishResult returns the video that the last part completed or, if there is none, the result that follows from the
// response.
func (p *Platform) publishResult(resp *transport.Response, s session, size int64) (*video, platforms.Result) {
	switch resp.Status {
	case http.StatusOK, http.StatusCreated:
		created, _ := jsondoc.Decode[video](resp.Body)
		if !validID(created.ID.String()) {
			return nil, p.API.UploadInDoubt(errNoVideo)
		}
		return &created, platforms.Result{}
	case http.StatusPermanentRedirect:
		if n, ok := stored(resp.Header, s, size); ok && n < size {
			return nil, refusal(platforms.Errorf(platforms.ClassTransient, msgIncomplete))
		}
		return nil, p.API.UploadInDoubt(errOdd)
	}
	failure, reason := p.classifyVideo(resp)
	switch {
	case !documented(resp.Status, reason):
		result := p.API.UploadInDoubt(failure.Err)
		result.Err.RetryAt, result.Err.AppWide = failure.RetryAt, failure.AppWide
		result.Err.Code, result.Err.Unlisted = failure.Code, failure.Unlisted
		return nil, result
	case resp.Status == http.StatusNotFound || resp.Status == http.StatusGone:
		failure = platforms.Errorf(platforms.ClassTransient, msgGone).Because(failure.Err)
	}
	return nil, refusal(failure)
}

// documented reports whether a response is a documented refusal in Google's format. Any other response may come from a
// proxy, which may or may not have forwarded the call.
func documented(status int, reason string) bool {
	return reason != "" && reason != codeBackend && slices.Contains([]int{
		http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusGone, http.StatusTooManyRequests,
	}, status)
}

func (p *Platform) posted(created *video) platforms.Result {
	id := created.ID.String()
	result := platforms.Result{Outcome: platforms.Posted, ExternalID: id, ExternalURL: p.videoURL(id), PostedAt: created.Snippet.PublishedAt.Time()}
	if privacy := created.Status.Privacy; privacy == "private" || privacy == "unlisted" {
		result.Note = fmt.Sprintf(msgNotPublic, privacy)
	}
	return result
}

func (p *Platform) videoURL(id string) string {
	return p.WebURL + "/watch?v=" + url.QueryEscape(id)
}

// doubleCheck reads the session's state to verify a permanent refusal. If YouTube has received different parts of the
// video than Herald assumed, the upload continues.
func (p *Platform) doubleCheck(ctx context.Context, s session, size int64, result *platforms.Result) {
	at, failure := p.querySession(ctx, s, size)
	switch {
	case failure != nil:
	case at.state == done, at.state == open && at.stored == size:
		result.Outcome = platforms.Unknown
	case at.state == gone, at.stored != s.last:
		result.Err = platforms.Errorf(platforms.ClassTransient, msgIncomplete).Because(result.Err.Err)
	}
}
