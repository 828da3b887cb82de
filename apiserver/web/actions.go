// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	g "maragu.dev/gomponents"

	"github.com/herald-social/herald/apiserver/bridge"
)

// cancel withdraws a post.
func (s *Site) cancel(w http.ResponseWriter, v *visit) error {
	id := v.PathValue("id")
	if err := s.Service.CancelPost(v.Context(), v.caller, id); err != nil {
		return err
	}
	v.leave(w, "posts/"+id, "cancelled")
	return nil
}

// reschedule gives a scheduled post another time.
func (s *Site) reschedule(w http.ResponseWriter, v *visit) error {
	written, err := s.readForm(w, v)
	if err != nil {
		return err
	}
	written.when = whenLater
	at, err := written.time()
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: err.Error()}
	}
	from, err := time.Parse(time.RFC3339Nano, v.PostForm.Get("from"))
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say which time the post had; load the page again"}
	}
	id := v.PathValue("id")
	if _, err := s.Service.Move(v.Context(), v.caller, id, from, *at); err != nil {
		return err
	}
	if back := localPath(v.PostForm.Get("back"), v.path("calendar")); back != "" {
		http.Redirect(w, v.Request, back, http.StatusSeeOther) //nolint:gosec // G710: localPath lets no other page through
		return nil
	}
	v.leave(w, "posts/"+id, "moved")
	return nil
}

// localPath is an address of a form, if it is that page of ours and not one elsewhere; otherwise it is empty.
func localPath(address, page string) string {
	u, err := url.Parse(address)
	if err != nil || u.IsAbs() || u.Host != "" || u.User != nil || u.Path != page {
		return ""
	}
	return u.RequestURI()
}

// settle takes a person's word on what became of a target.
func (s *Site) settle(w http.ResponseWriter, v *visit) error {
	if _, err := s.readForm(w, v); err != nil {
		return err
	}
	target, err := strconv.Atoi(v.PostForm.Get("target"))
	if err != nil {
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say which account it is about"}
	}
	verdict := bridge.Verdict{}
	switch v.PostForm.Get("verdict") {
	case "posted":
		verdict.Posted, verdict.ExternalID = true, idOf(v.PostForm.Get("found"))
		if verdict.ExternalID == "" {
			return &bridge.Error{Code: bridge.CodeValidation, Message: "enter the id or the address of the post as the platform shows it"}
		}
	case "not-sent":
	default: // what may be sent again is said in words
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say whether the post was published; load the page again"}
	}
	id := v.PathValue("id")
	if err := s.Service.Settle(v.Context(), v.caller, id, target, verdict); err != nil {
		return err
	}
	v.leave(w, "posts/"+id, "settled")
	return nil
}

// idOf is the id that a person found: as it is, or the part of an address that names the post. Addresses end in it on X
// (/status/ID), Threads and Instagram (/p/CODE), Facebook (/posts/ID), TikTok (/video/ID), and have it as a parameter on YouTube (?v=ID).
func idOf(found string) string {
	found = strings.TrimSpace(found)
	if strings.Contains(found, "/") && !strings.Contains(found, "://") {
		found = "https://" + found // browsers hide it
	}
	u, err := url.Parse(found)
	if err != nil || u.Host == "" {
		return found
	}
	query := u.Query()
	switch page, post := query.Get("id"), query.Get("story_fbid"); {
	case query.Get("v") != "": // YouTube
		return query.Get("v")
	case page != "" && post != "": // Facebook, whose ids have both
		return page + "_" + post
	case query.Get("fbid") != "":
		return query.Get("fbid")
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	// On X, what follows the id is a picture of the post.
	if i := slices.Index(parts, "status"); i >= 0 && i+1 < len(parts) {
		return parts[i+1]
	}
	return parts[len(parts)-1]
}

const (
	// maxStreams is how many pages may follow a post at once: each holds a connection and a few KiB.
	maxStreams = 1000
	// streamFor is how long a page follows a post over one connection. The page's script connects anew, so that a person who was
	// signed out, or lost a right, sees no more than that.
	streamFor = 5 * time.Minute
	// streamPause is how soon after one change the next one is shown.
	streamPause = 250 * time.Millisecond
	// heartbeat keeps a quiet connection open: load balancers end those that are silent for a minute.
	heartbeat = 20 * time.Second
)

// events sends what changes of a post as it happens (HTML, "Server-sent events").
func (s *Site) events(w http.ResponseWriter, v *visit) error {
	id := v.PathValue("id")
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many pages follow posts; load the page again later", http.StatusServiceUnavailable)
		return nil
	}
	changes, stop, err := s.Service.FollowPost(v.caller, id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil
	}
	defer stop()
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Accel-Buffering", "no") // NGINX's Ingress would hold events back
	out := &stream{w: w, control: http.NewResponseController(w), clock: s.Clock}
	end := s.Clock.After(streamFor)
	for {
		post, err := s.Service.ReadPost(v.Context(), v.caller, id)
		if err != nil {
			return out.fail(err)
		}
		v.now = s.Clock.Now()
		if err := out.send(s.live(v, post)); err != nil || finished(post) {
			return out.stop(err)
		}
		if !s.awaitChange(v, out, changes, end) {
			return nil
		}
	}
}

// awaitChange waits until a post may have changed; false means that the page is gone or has to connect anew.
func (s *Site) awaitChange(v *visit, out *stream, changes <-chan struct{}, end <-chan time.Time) bool {
	pause := s.Clock.After(streamPause)
	select {
	case <-v.Context().Done():
		return false
	case <-s.closing:
		return false
	case <-pause:
	}
	for {
		select {
		case <-v.Context().Done():
			return false
		case <-end:
			return false
		case <-s.closing:
			return false
		case <-changes:
			return true
		case <-s.Clock.After(heartbeat):
			if out.beat() != nil {
				return false
			}
		}
	}
}

// finishedEvent is the event after which a page does not connect again.
const finishedEvent = "stop"

// stream is a connection that events are sent over.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	clock   interface{ Now() time.Time }
}

// patience is how long a reader may take for one event.
const patience = 30 * time.Second

func (o *stream) flush(data []byte) error {
	// The server's own limit is for whole answers.
	if err := o.control.SetWriteDeadline(o.clock.Now().Add(patience)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write(data); err != nil {
		return err
	}
	return o.control.Flush()
}

// lineBreaks makes one kind of the three line breaks.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

// send sends an event with a piece of a page.
func (o *stream) send(node g.Node) error {
	var piece strings.Builder
	if err := node.Render(&piece); err != nil {
		return err
	}
	var event bytes.Buffer
	// A carriage return ends a line of the stream too (HTML, "server-sent events"): no text may write fields.
	for line := range strings.SplitSeq(lineBreaks.Replace(piece.String()), "\n") {
		fmt.Fprintf(&event, "data: %s\n", line)
	}
	event.WriteByte('\n')
	return o.flush(event.Bytes())
}

// beat sends a comment, which pages do not see.
func (o *stream) beat() error { return o.flush([]byte(": still here\n\n")) }

// stop ends the stream for good, unless the reader has gone.
func (o *stream) stop(err error) error {
	if err == nil {
		err = o.flush([]byte("event: " + finishedEvent + "\ndata: \n\n"))
	}
	_ = err // a reader that has gone needs no end
	return nil
}

// fail ends the stream. What is gone is gone for good; anything else the page may try again.
func (o *stream) fail(err error) error {
	if known, ok := errors.AsType[*bridge.Error](err); ok && known.Code == bridge.CodeNotFound {
		return o.stop(nil)
	}
	return nil
}
