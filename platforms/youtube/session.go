// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// unit is the granularity of an upload: the size of every part except the last must be a multiple of it (Data
	// API, guide "Resumable Uploads").
	unit = 256 << 10
	// chunk is the number of bytes per part: a multiple of unit.
	chunk = 16 * unit
	// chunkTimeout bounds the upload of one part.
	chunkTimeout = 2 * time.Minute
)

const msgNoSession = "YouTube accepted the description of the video without returning the upload URL"

// Causes of unusable session responses, for the log.
var (
	errNoVideo = errors.New("a success without a readable id of the video")
	errNoRange = errors.New("status 308 without a readable range")
	errOdd     = errors.New("a response that does not show whether the video is online")
)

// session is an upload to YouTube. The URL is all it takes to continue the upload.
type session struct {
	address string
	// last is the offset of the last part, which makes the video visible.
	last int64
}

// checkpoint returns an id for the session that does not contain its URL.
func (s session) checkpoint() string {
	sum := sha256.Sum256([]byte(s.address))
	return base64.RawURLEncoding.EncodeToString(sum[:9])
}

// secret returns the secret part of the session, which is stored separately from the checkpoint.
func (s session) secret() string { return strconv.FormatInt(s.last, 10) + " " + s.address }

// sessionOf returns a job's session, if its secret still exists and its URL may be called.
func (p *Platform) sessionOf(job *platforms.Job) (session, bool) {
	offset, address, _ := strings.Cut(job.Secret, " ")
	last, err := strconv.ParseInt(offset, 10, 64)
	s := session{address: address, last: last}
	return s, err == nil && last >= 0 && s.checkpoint() == job.Checkpoint && p.API.Addresses.Check(address) == nil
}

// lastPart returns the offset of the last part, given the number of bytes already stored. The number of bytes between
// them is a multiple of unit, and at least one byte remains for the last part.
func lastPart(stored, size int64) int64 { return stored + max(0, size-stored-1)/unit*unit }

type description struct {
	Snippet struct {
		Title       string `json:"title"`
		Description string `json:"description"`
	} `json:"snippet"`
	Status struct {
		PrivacyStatus string `json:"privacyStatus"`
	} `json:"status"`
}

// video is the resource that an upload creates.
type video struct {
	ID      jsondoc.Text `json:"id"`
	Snippet struct {
		PublishedAt jsondoc.Text `json:"publishedAt"`
	} `json:"snippet"`
	Status struct {
		Privacy   jsondoc.Text `json:"privacyStatus"`
		Upload    jsondoc.Text `json:"uploadStatus"`
		Failure   jsondoc.Text `json:"failureReason"`
		Rejection jsondoc.Text `json:"rejectionReason"`
	} `json:"status"`
	Processing struct {
		Status  jsondoc.Text `json:"processingStatus"`
		Failure jsondoc.Text `json:"processingFailureReason"`
	} `json:"processingDetails"`
}

// privacyPublic is the videos' privacy status. It is always sent: YouTube's default for uploads has changed over the
// years.
const privacyPublic = "public"

// startSession sends the video's description and returns the session for its bytes. Nothing is visible yet.
func (p *Platform) startSession(ctx context.Context, job *platforms.Job, file *platforms.File) (session, *platforms.Error) {
	var about description
	about.Snippet.Title, about.Snippet.Description = job.Content.Title, job.Content.Text
	about.Status.PrivacyStatus = privacyPublic
	resp, err := p.API.Do(ctx, client.Call{
		Action: "create", Path: "/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status", Token: job.Account.Token.Access,
		Header: http.Header{
			"X-Upload-Content-Length": {strconv.FormatInt(file.Size, 10)},
			"X-Upload-Content-Type":   {string(file.MIMEType)},
		},
		Body: client.JSON("application/json; charset=UTF-8", about), Timeout: readTimeout,
	})
	if err != nil {
		return session{}, p.API.Unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, _ := p.classifyVideo(resp)
		return session{}, failure
	}
	s := session{address: resp.Header.Get("Location"), last: lastPart(0, file.Size)}
	if err := p.API.Addresses.Check(s.address); err != nil {
		return session{}, platforms.Errorf(platforms.ClassUnknown, msgNoSession).Because(err)
	}
	return s, nil
}

type state int

const (
	// open: more bytes are expected.
	open state = iota
	// done: the video is on the channel.
	done
	// gone: YouTube no longer knows the session.
	gone
)

type sessionStatus struct {
	state state
	// stored is the number of bytes that YouTube has received, while the session is open.
	stored int64
	video  video
}

func (p *Platform) querySession(ctx context.Context, s session, size int64) (sessionStatus, *platforms.Error) {
	resp, err := p.put(ctx, s, client.Call{Action: "status", Header: http.Header{"Content-Range": {fmt.Sprintf("bytes */%d", size)}}, Timeout: readTimeout})
	if err != nil {
		return sessionStatus{}, p.API.Unconfirmed(platforms.ClassTransient, err)
	}
	return p.parseSession(resp, s, size)
}

// send sends a part of the file other than the last one, which would make the video visible.
func (p *Platform) send(ctx context.Context, s session, file *platforms.File, offset, length int64) (sessionStatus, *platforms.Error) {
	resp, _, failure := p.API.Upload(ctx, client.Upload{
		Call: client.Call{Action: "upload", Method: http.MethodPut, URL: s.address, Header: span(offset, length, file.Size), Timeout: chunkTimeout},
		File: file, Offset: offset, Length: length,
	})
	if failure != nil {
		return sessionStatus{}, failure
	}
	at, failure := p.parseSession(resp, s, file.Size)
	if failure != nil && failure.Class == platforms.ClassPermanent && resp.Status == http.StatusBadRequest {
		// The description was accepted when the session started, so this error is about the part's position: YouTube
		// may have more bytes than Herald assumed.
		failure = p.API.Unconfirmed(platforms.ClassTransient, failure.Err)
	}
	return at, failure
}

func span(offset, length, size int64) http.Header {
	return http.Header{"Content-Range": {fmt.Sprintf("bytes %d-%d/%d", offset, offset+length-1, size)}}
}

// put sends a request to a session. It does not send a token: the URL itself grants access. Google's guide ("Resumable
// Uploads") shows the Authorization header with each request, but does not document that a session requires it. Without
// the header, a host from a response never sees the channel's token.
func (p *Platform) put(ctx context.Context, s session, call client.Call) (*transport.Response, error) {
	call.Method, call.URL = http.MethodPut, s.address
	return p.API.Do(ctx, call)
}

// parseSession parses a session's response. Errors in Google's format have specific messages; all others share one.
func (p *Platform) parseSession(resp *transport.Response, s session, size int64) (sessionStatus, *platforms.Error) {
	switch resp.Status {
	case http.StatusOK, http.StatusCreated:
		created, _ := jsondoc.Decode[video](resp.Body)
		if !validID(created.ID.String()) {
			return sessionStatus{}, p.API.Unconfirmed(platforms.ClassUnknown, errNoVideo)
		}
		return sessionStatus{state: done, video: created}, nil
	case http.StatusNotFound, http.StatusGone:
		return sessionStatus{state: gone}, nil
	case http.StatusPermanentRedirect:
		stored, ok := stored(resp.Header, s, size)
		if !ok {
			return sessionStatus{}, p.API.Unconfirmed(platforms.ClassUnknown, errNoRange)
		}
		return sessionStatus{state: open, stored: stored}, nil
	}
	failure, reason := p.classifyVideo(resp)
	if !documented(resp.Status, reason) {
		class := platforms.ClassUnknown
		if resp.Status >= http.StatusInternalServerError {
			class = platforms.ClassTransient
		}
		return sessionStatus{}, p.API.Unconfirmed(class, failure.Err)
	}
	return sessionStatus{}, failure
}

// sameSession reports whether a URL, which may be relative, refers to the session. If the session's URL contains an id,
// only the id is compared and not the host, because nobody but Google can know the id. Bytes are always sent to the
// original URL of the session.
func (s session) sameSession(location string) bool {
	own, err := url.Parse(s.address)
	if err != nil {
		return false
	}
	other, err := own.Parse(location)
	if err != nil {
		return false
	}
	if id := own.Query().Get(sessionID); id != "" {
		return other.Query().Get(sessionID) == id
	}
	return other.String() == own.String()
}

// sessionID is the parameter that holds the session id in a URL (Data API, guide "Resumable Uploads", step 3).
const sessionID = "upload_id"

// storedRange matches one byte range. The guide uses "bytes=0-999999"; Google's own client for Python reads only the
// number after the minus sign (googleapiclient/http.py, _process_response), so a missing or different unit is accepted
// as well.
var storedRange = regexp.MustCompile(`^(?i:bytes)?[ \t]*=?[ \t]*([0-9]{1,18})[ \t]*-[ \t]*([0-9]{1,18})$`)

// stored returns the number of bytes, from the start of the file, that YouTube has received, or 0 if there is no range.
// A response with a location outside the session is not YouTube's status 308, but a redirect with the same status. Of
// several ranges, only those that are contiguous from the start count, because the bytes after a gap must be sent
// again.
func stored(h http.Header, s session, size int64) (int64, bool) {
	if location := h.Get("Location"); location != "" && !s.sameSession(location) {
		return 0, false
	}
	named := strings.TrimSpace(strings.Join(h.Values("Range"), ","))
	if named == "" {
		return 0, true
	}
	var end, before int64
	for part := range strings.SplitSeq(named, ",") {
		found := storedRange.FindStringSubmatch(strings.TrimSpace(part))
		if found == nil {
			return 0, false
		}
		first, _ := strconv.ParseInt(found[1], 10, 64) // 18 digits always fit
		last, _ := strconv.ParseInt(found[2], 10, 64)
		if last < first || last >= size || first < before {
			return 0, false
		}
		before = first
		if first <= end {
			end = max(end, last+1)
		}
	}
	return end, end > 0
}

// idCharacters are the characters of a video's id.
const idCharacters = text.Letters + text.Digits + "_-"

// validID reports whether a string can be a video's id and part of a URL.
func validID(id string) bool { return text.Consists(id, 1, 64, idCharacters) }
