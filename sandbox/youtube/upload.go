// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"cmp"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// chunkUnit is the unit of chunk sizes: every chunk except the last is a multiple of it.
const chunkUnit = 256 << 10

// span is the byte range in a request to a session, or a query for the session's progress.
type span struct {
	simulator.Range
	query bool
}

// unknown is the total of a file whose length is not known yet, written as *.
const unknown = -1

var (
	queryPattern = regexp.MustCompile(`^bytes \*/([0-9]{1,18}|\*)$`)
	openPattern  = regexp.MustCompile(`^bytes ([0-9]{1,18})-([0-9]{1,18})/\*$`)
)

// readSpan reads the Content-Range header. A request without one contains the whole file. A client that streams sends
// the total only with its last chunk, or with a query if no bytes are left (google.golang.org/api/internal/gensupport).
func readSpan(r *http.Request) (span, bool) {
	text := r.Header.Get("Content-Range")
	if text == "" {
		return span{Range: simulator.Range{Last: r.ContentLength - 1, Total: r.ContentLength}}, r.ContentLength > 0
	}
	if found := queryPattern.FindStringSubmatch(text); found != nil {
		total := int64(unknown)
		if found[1] != "*" {
			total, _ = strconv.ParseInt(found[1], 10, 64) // 18 digits always fit
		}
		return span{query: true, Range: simulator.Range{Total: total}}, r.ContentLength == 0
	}
	out, ok := simulator.ReadRange(r)
	if found := openPattern.FindStringSubmatch(text); found != nil {
		out.First, _ = strconv.ParseInt(found[1], 10, 64)
		out.Last, _ = strconv.ParseInt(found[2], 10, 64)
		out.Total, ok = unknown, out.First <= out.Last
	}
	return span{Range: out}, ok && r.ContentLength == out.Last-out.First+1
}

// operation returns the operation of a request to a session. The last chunk publishes the video.
func operation(r *http.Request) faults.Operation {
	switch s, ok := readSpan(r); {
	case ok && s.query:
		return faults.Status
	case ok && s.Last == s.Total-1:
		return faults.Publish
	default:
		return faults.Upload
	}
}

// sessionAccount returns the account of the session that a request belongs to.
func (p *Platform) sessionAccount(r *faults.Request) string {
	session, ok := p.Store.Container(Name, r.URL.Query().Get("upload_id"))
	if !ok {
		return ""
	}
	return session.AccountID
}

// serveUpload handles PUT and POST requests to a session, whose URL is the only credential. Google's own Go client
// sends chunks by POST and turns off status 308, which its HTTP client would follow as a redirect.
func (p *Platform) serveUpload(w http.ResponseWriter, r *faults.Request) {
	session, ok := p.Store.Container(Name, r.URL.Query().Get("upload_id"))
	if !ok {
		fail(w, problemFor(http.StatusNotFound))
		return
	}
	unlock := p.sessions.Lock(session.ID)
	defer unlock()
	account, refused := p.receive(r, session)
	if refused != nil {
		fail(w, refused)
		return
	}
	session, _ = p.Store.Container(Name, session.ID)
	if post, made := p.Store.Post(Name, session.PostID); made {
		writeJSON(w, http.StatusOK, p.video(account, post, r, detailOf(session.Detail).Parts))
		return
	}
	if size, _ := p.Blobs.Size(session.ID); size > 0 {
		w.Header().Set("Range", "bytes=0-"+strconv.FormatInt(size-1, 10))
	}
	if r.Header.Get("X-GUploader-No-308") == "yes" {
		w.Header().Set("X-Http-Status-Code-Override", strconv.Itoa(resumeIncomplete))
		w.WriteHeader(http.StatusOK)
		return
	}
	w.WriteHeader(resumeIncomplete)
}

// resumeIncomplete is Google's status for an incomplete upload. In HTTP it is a redirect.
const resumeIncomplete = http.StatusPermanentRedirect

// receive stores the chunk in a request and publishes the video after the last one. The caller holds the session's
// lock.
func (p *Platform) receive(r *faults.Request, session state.Container) (state.Account, *problem) {
	account, ok := p.Store.Account(state.Key{Platform: Name, ID: session.AccountID})
	if !ok {
		return account, problemFor(http.StatusNotFound)
	}
	// If a kill came between the last byte and publishing, the video is published now.
	if refused := p.settle(account, session); refused != nil {
		return account, refused
	}
	if session, _ = p.Store.Container(Name, session.ID); session.PostID != "" {
		if _, there := p.Store.Post(Name, session.PostID); !there {
			return account, sessionOver() // its video was deleted
		}
		return account, nil
	}
	if !p.Clock.Now().Before(session.CreatedAt().Add(sessionLife)) {
		return account, sessionOver()
	}
	s, ok := readSpan(r.Request)
	kept := detailOf(session.Detail)
	if !ok || s.Total != kept.Size && s.Total != unknown && kept.Size != unknown {
		return account, badRange("The Content-Range or Content-Length is invalid.")
	}
	if refused := p.recordLength(&session, s); refused != nil {
		return account, refused
	}
	if s.query {
		return account, p.settle(account, session)
	}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); !p.Lenient && (err != nil || media != kept.Type) {
		return account, refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "badContent", "The Content-Type is not the one that the session was begun with.")
	}
	if refused := p.appendChunk(r, session, s); refused != nil {
		return account, refused
	}
	return account, p.settle(account, session)
}

// recordLength stores the length of the file when the client first announces it.
func (p *Platform) recordLength(session *state.Container, s span) *problem {
	kept := detailOf(session.Detail)
	size, _ := p.Blobs.Size(session.ID)
	if kept.Size != unknown || s.Total == unknown || s.query && s.Total != size {
		return nil
	}
	kept.Size = s.Total
	if err := p.saveDetail(session.ID, kept); err != nil {
		return p.broken("keep the length of a video", err)
	}
	*session, _ = p.Store.Container(Name, session.ID)
	return nil
}

// appendChunk appends a chunk to the session's file.
func (p *Platform) appendChunk(r *faults.Request, session state.Container, s span) *problem {
	size, _ := p.Blobs.Size(session.ID)
	total := detailOf(session.Detail).Size
	switch {
	case total != unknown && s.Last >= total:
		return badRange("The chunk ends after the video.")
	case s.First != size:
		return badRange("The chunk does not begin where the one before it ended.")
	case s.Last != total-1 && (s.Last-s.First+1)%chunkUnit != 0:
		return badRange("The number of bytes uploaded is required to be a multiple of 262144, except for the final request.")
	}
	_, err := p.Blobs.Append(session.ID, s.First, r.Body, s.Last+1)
	if err == nil {
		return nil
	}
	p.Logger.Info("a chunk did not arrive whole", "platform", Name, "error", err)
	return badRange("The request was cut off.")
}

func badRange(message string) *problem {
	return refuse(http.StatusBadRequest, "INVALID_ARGUMENT", "global", "badRequest", message)
}

func sessionOver() *problem {
	return refuse(http.StatusGone, "NOT_FOUND", "global", "gone", "The upload session is over.")
}

// settle publishes the video of a session after its last byte.
func (p *Platform) settle(account state.Account, session state.Container) *problem {
	kept := detailOf(session.Detail)
	size, open := p.Blobs.Size(session.ID)
	switch {
	case session.PostID != "":
		return nil
	case kept.Failure == uploadLimitExceeded:
		return uploadLimit()
	case !open:
		return sessionOver()
	case kept.Size == unknown || size < kept.Size:
		return nil
	}
	file, err := p.Blobs.Finish(session.ID)
	if err == nil {
		_, err = p.publishVideo(account, session, kept, file)
	}
	if _, full := errors.AsType[*state.QuotaError](err); full {
		kept.Failure = uploadLimitExceeded
		if err = p.saveDetail(session.ID, kept); err == nil {
			return uploadLimit()
		}
	}
	if err != nil {
		return p.broken("keep a video", err)
	}
	return nil
}

// saveDetail replaces a session's stored detail.
func (p *Platform) saveDetail(session string, d detail) error {
	content, err := json.Marshal(d)
	if err != nil {
		return err
	}
	_, err = p.Store.ChangeContainer(Name, session, func(c *state.Container) { c.Detail = content })
	return err
}

// publishVideo publishes a video on the channel. On a private account the video is private, regardless of the request.
// YouTube's errors about the file appear after processing.
func (p *Platform) publishVideo(account state.Account, session state.Container, kept detail, file blobs.Blob) (state.Post, error) {
	kept.ReadyAt, kept.Failure = p.Clock.Now().Add(account.Settings.Work(processing)).UTC(), account.Settings.ProcessingError
	if !strings.HasPrefix(file.MIMEType, "video/") {
		kept.Failure = cmp.Or(kept.Failure, "invalidFile")
	}
	kept.Seconds = int64(file.Duration.Round(time.Second) / time.Second)
	if account.Settings.Private {
		kept.Video.Status.Privacy = "private"
	}
	content, err := json.Marshal(kept)
	if err != nil {
		return state.Post{}, err
	}
	return p.Store.Publish(account.Key, state.Draft{
		Text: kept.Video.Snippet.Description, Title: kept.Video.Snippet.Title, Privacy: kept.Video.Status.Privacy,
		Media:     []state.Media{simulator.MediaOf(file)},
		Container: session.ID, Detail: content, NewID: newID,
	})
}
