// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tiktok

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// minChunk is the minimum size of a chunk that is not a whole file: 5 MB, decimal or binary (Content Posting API,
	// "Media Transfer Guide").
	minChunk = 5 << 20
	// maxChunks is the maximum number of chunks per file.
	maxChunks = 1000
	// addressLife is how long an upload URL is valid.
	addressLife = time.Hour
	// minLeft is how much of a URL's lifetime must remain to resume its upload.
	minLeft = 5 * time.Minute
	// uploadTimeout bounds a chunk other than the last one, which is at most eight megabytes, at 128 KiB per
	// second.
	uploadTimeout = time.Minute
	// chunkTries is the maximum number of consecutive attempts to send a chunk without making progress.
	chunkTries = 3
	// maxUploads is the maximum number of uploads that one preparation starts if URLs expire while it runs.
	maxUploads = 2
)

const (
	msgNoTicket    = "TikTok started the upload of the file %q without returning its address"
	msgPartRefused = "TikTok did not accept a part of the file %q"
	msgEnded       = "TikTok's upload URL for the file %q has expired"
	msgVisible     = "TikTok already has the whole video, sent by a call whose response was lost"
)

// parts divides a file into chunks of equal size; the last one also contains the remainder.
type parts struct{ size, chunk, count int64 }

// cut creates as many chunks as TikTok allows. This keeps the last chunk, which makes the post visible, small and fast
// to send: it is at most twice as large as minChunk.
func cut(size int64) parts {
	count := min(max(size/minChunk, 1), maxChunks)
	return parts{size: size, chunk: max(size/count, 1), count: count}
}

func (c parts) last() int64 { return (c.count - 1) * c.chunk }

// start returns the start of the chunk that contains an offset. TikTok does not document whether a request may start
// within a chunk ("Media Transfer Guide": chunks of at least 5 MB, in sequence; status 416 if the Content-Range does
// not match the progress), so after a refusal the chunk is sent from its start.
func (c parts) start(offset int64) int64 { return min(offset/c.chunk, c.count-1) * c.chunk }

// end returns the end of the chunk that contains an offset.
func (c parts) end(offset int64) int64 {
	if i := offset / c.chunk; i < c.count-1 {
		return (i + 1) * c.chunk
	}
	return c.size
}

type upload struct {
	ticket string
	session
	parts
	// sent is the number of bytes that TikTok has received.
	sent int64
	// blind is set if TikTok does not return that number, so it may have received all bytes.
	blind bool
}

// session is the secret part of an upload: the URL is all it takes to complete the post.
type session struct {
	Address string    `json:"address"`
	Ends    time.Time `json:"ends"`
	Chunk   int64     `json:"chunk"`
	// From is the offset at which the last call starts, if that is within the last chunk and not at its start.
	From int64 `json:"from,omitempty"`
}

// readSession parses a secret. It returns false if the secret is malformed, does not fit the file, or has a URL that
// may not be called.
func (p *Platform) readSession(secret string, size int64) (session, parts, bool) {
	var s session
	if err := json.Unmarshal([]byte(secret), &s); err != nil || p.API.Addresses.Check(s.Address) != nil || s.Chunk <= 0 || s.Chunk > size {
		return session{}, parts{}, false
	}
	return s, parts{size: size, chunk: s.Chunk, count: size / s.Chunk}, true
}

func (u *upload) saveCheckpoint(ctx context.Context, job *platforms.Job) *platforms.Error {
	secret, err := json.Marshal(u.session)
	if err != nil {
		return platforms.Errorf(platforms.ClassTransient, msgNoTicket, job.Content.Media[0].Name).Because(err)
	}
	return job.SaveCheckpoint(ctx, u.ticket, string(secret))
}

// createUpload creates a ticket for a video, with a URL for its bytes.
func (p *Platform) createUpload(ctx context.Context, job platforms.Job, who creatorInfo) (*upload, *platforms.Error) {
	file := &job.Content.Media[0]
	u := &upload{parts: cut(file.Size)}
	u.Chunk, u.Ends = u.chunk, p.Clock.Now().Add(addressLife).UTC()
	path, body := "/v2/post/publish/video/init/", videoInit{Source: videoSource{"FILE_UPLOAD", u.size, u.chunk, u.count}}
	if job.Content.TikTok.Draft {
		path = "/v2/post/publish/inbox/video/init/"
	} else {
		body.Post = newVideoPost(&job.Content, who)
	}
	data, bad := callAPI[struct {
		PublishID jsondoc.Text `json:"publish_id"`
		UploadURL jsondoc.Text `json:"upload_url"`
	}](ctx, p, "create", path, job.Account.Token, body)
	if bad != nil {
		return nil, bad.Error
	}
	u.ticket, u.Address = data.PublishID.String(), data.UploadURL.String()
	if err := p.API.Addresses.Check(u.Address); err != nil || !validTicket(u.ticket) {
		return nil, platforms.Errorf(platforms.ClassUnknown, msgNoTicket, file.Name).Because(err)
	}
	if err := u.saveCheckpoint(ctx, &job); err != nil {
		return nil, err
	}
	return u, nil
}

// sendAllButLast sends all chunks before the publishing call. ended reports whether the URL expired while they were
// sent.
func (p *Platform) sendAllButLast(ctx context.Context, job platforms.Job, u *upload) (ended bool, failure *platforms.Error) {
	file := &job.Content.Media[0]
	for tries, furthest := 0, u.sent; u.sent < u.last(); {
		before, end := u.sent, u.end(u.sent)
		resp, sent, failure := p.put(ctx, file, u.Address, u.sent, end, client.Call{Action: "upload", Timeout: uploadTimeout})
		switch {
		case failure != nil && (!sent || failure.Class == platforms.ClassPermanent):
			return false, failure
		case failure != nil, resp.Status >= http.StatusInternalServerError, resp.Status == http.StatusRequestedRangeNotSatisfiable:
			// Part of the chunk may have arrived.
			if err := p.syncProgress(ctx, job, u); err != nil {
				return false, err
			}
			if failure == nil && u.sent == before {
				u.sent = u.start(u.sent)
			}
		case resp.Status == http.StatusPartialContent:
			u.sent = end
		case resp.Status == http.StatusBadRequest && before > u.start(before):
			u.sent = u.start(before)
		case addressEnded(resp.Status):
			return true, nil
		case resp.Status == http.StatusBadRequest && !u.blind:
			p.lost.Add(u.ticket, true)
			return false, p.uploadRefused(file, resp.Status)
		default:
			return false, p.uploadRefused(file, resp.Status)
		}
		tries++
		if u.sent > furthest {
			tries, furthest = 0, u.sent
		}
		if tries >= chunkTries || ctx.Err() != nil {
			if failure == nil {
				failure = p.API.Unconfirmed(platforms.ClassTransient, statusOfUpload(resp.Status))
			}
			return false, failure
		}
	}
	return false, nil
}

// addressEnded reports whether a status from the upload host means that the URL is invalid or has expired.
func addressEnded(status int) bool {
	return status == http.StatusForbidden || status == http.StatusNotFound
}

func (p *Platform) syncProgress(ctx context.Context, job platforms.Job, u *upload) *platforms.Error {
	found, bad := p.fetchStatus(ctx, job.Account.Token, u.ticket)
	switch {
	case bad != nil:
		return bad.Error
	case found.partial(u.size):
		u.sent = found.uploaded
	case found.state == stateFailed:
		return failedOf(found.reason)
	case found.final(), found.uploaded >= u.size:
		return platforms.Errorf(platforms.ClassDuplicate, msgVisible)
	}
	return nil
}

// put sends part of a file to an upload's URL. The URL grants access by itself, so no token is sent. sent is false if
// nothing can have arrived.
func (p *Platform) put(
	ctx context.Context, file *platforms.File, address string, from, end int64, call client.Call,
) (resp *transport.Response, sent bool, failure *platforms.Error) {
	call.Method, call.URL = http.MethodPut, address
	call.Header = http.Header{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", from, end-1, file.Size)}}
	return p.API.Upload(ctx, client.Upload{Call: call, File: file, Offset: from, Length: end - from})
}

// uploadRefused classifies an error from the upload host, which reports only HTTP statuses. Two of them have a specific
// message, because they require a reaction: 400 means that a part was refused, so the upload is restarted, and 429 is a
// rate limit. All others share one message. TikTok reports problems with the file itself in the post's status ("Media
// Transfer Guide", "Get Post Status").
func (p *Platform) uploadRefused(file *platforms.File, status int) *platforms.Error {
	cause := statusOfUpload(status)
	switch {
	case status == http.StatusBadRequest:
		return platforms.Errorf(platforms.ClassTransient, msgPartRefused, file.Name).Because(cause)
	case status == http.StatusTooManyRequests:
		return p.rateLimited(cause)
	case slices.Contains([]int{http.StatusForbidden, http.StatusNotFound, http.StatusRequestedRangeNotSatisfiable}, status), status >= http.StatusInternalServerError:
		return p.API.Unconfirmed(platforms.ClassTransient, cause)
	default:
		return p.API.Unconfirmed(platforms.ClassUnknown, cause)
	}
}

// statusOfUpload returns the upload host's status as an error, for logs.
func statusOfUpload(status int) error { return fmt.Errorf("HTTP status %d of an upload", status) }
