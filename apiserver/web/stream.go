// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	g "maragu.dev/gomponents"

	"github.com/herald-social/herald/apiserver/bridge"
)

const (
	// maxStreams is how many pages may follow a post at once: each holds a connection and a few KiB. maxOfOne is how many of one
	// person may.
	maxStreams = 1000
	maxOfOne   = 20
	// streamFor is how long a page follows a post over one connection. The page's script connects anew, which spreads the pages
	// over the replicas that there are then.
	streamFor = 5 * time.Minute
	// streamPause is how soon after one change the next one is shown.
	streamPause = 250 * time.Millisecond
	// heartbeat keeps a quiet connection open: load balancers end those that are silent for a minute.
	heartbeat = 20 * time.Second
	// recheckInterval is how often it is asked whether a person may still follow a post. The session is asked in memory. An answer about a
	// right is used for five seconds (package access), for all pages of a person in a team: this often, a right that is gone
	// ends a stream a second after the answer, and costs the Kubernetes API one question in five seconds for each person and
	// team, however many pages follow.
	recheckInterval = time.Second
	// readAgain is how soon a page that may not follow asks how its post stands.
	readAgain = 30 * time.Second
)

// streams counts the pages that follow posts.
type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// Why a page may not follow a post.
var (
	errStreams = errors.New("too many pages follow posts; load the page again later")
	errOfOne   = errors.New("too many pages of one person follow posts")
)

// enter counts one page more of a person, or says why not.
func (s *streams) enter(who string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.all >= maxStreams:
		return errStreams
	case s.of[who] >= maxOfOne:
		return errOfOne
	}
	if s.of == nil {
		s.of = map[string]int{}
	}
	s.all++
	s.of[who]++
	return nil
}

// release counts it no more.
func (s *streams) release(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	s.of[who]--
	if s.of[who] == 0 {
		delete(s.of, who)
	}
}

// events sends what changes of a post as it happens (HTML, "Server-sent events").
func (s *Site) events(w http.ResponseWriter, v *visit) error {
	id := v.PathValue("id")
	out := &stream{w: w, control: http.NewResponseController(w), clock: s.Clock}
	switch err := s.streams.enter(v.person.Name); {
	case errors.Is(err, errOfOne):
		return s.glance(v, out, id)
	case err != nil:
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil
	}
	defer s.streams.release(v.person.Name)
	changes, stop, err := s.Service.SubscribePost(v.caller, id)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return nil
	}
	defer stop()
	out.setHeaders()
	end := s.Clock.After(streamFor)
	for s.stays(v) {
		post, err := s.Service.ReadPost(v.Context(), v.caller, id)
		if err != nil {
			return out.fail(err)
		}
		v.now = s.Clock.Now()
		if err := out.send(s.live(v, post)); err != nil || finished(post) {
			return out.stop(err)
		}
		if !s.waitForChange(v, out, changes, end) {
			return nil
		}
	}
	return nil
}

// glance tells how a post stands, and when the page may ask again: for a person who has too many pages that follow posts.
func (s *Site) glance(v *visit, out *stream, id string) error {
	out.setHeaders()
	post, err := s.Service.ReadPost(v.Context(), v.caller, id)
	if err != nil {
		return out.fail(err)
	}
	if err := out.send(s.live(v, post)); err != nil || finished(post) {
		return out.stop(err)
	}
	return out.later()
}

// stays reports whether a person may go on following a post: neither the session nor the right to see posts has ended.
func (s *Site) stays(v *visit) bool {
	if !s.Sessions.IsValid(v.session) {
		return false
	}
	may, err := s.allowed(v.Context(), v, seePosts)
	return may && err == nil // what is not known allows nothing
}

// waitForChange waits until a post may have changed; false means that the page is gone, may not follow any more, or has to connect
// anew.
func (s *Site) waitForChange(v *visit, out *stream, changes <-chan struct{}, end <-chan time.Time) bool {
	pause := s.Clock.After(streamPause)
	select {
	case <-v.Context().Done():
		return false
	case <-s.closing:
		return false
	case <-pause:
	}
	beat := s.Clock.After(heartbeat)
	for {
		// It is taken before it is asked, so that no change in between is missed.
		sessions := s.Sessions.Changed()
		if !s.stays(v) {
			return false
		}
		select {
		case <-v.Context().Done():
			return false
		case <-end:
			return false
		case <-s.closing:
			return false
		case <-changes:
			return true
		case <-sessions:
		case <-s.Clock.After(recheckInterval):
		case <-beat:
			if out.beat() != nil {
				return false
			}
			beat = s.Clock.After(heartbeat)
		}
	}
}

// Events without a piece of a page.
const (
	// finishedEvent is the event after which a page does not connect again.
	finishedEvent = "stop"
	// laterEvent is the one after which a page connects again as many milliseconds later as its data say.
	laterEvent = "later"
)

// stream is a connection that events are sent over.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	clock   interface{ Now() time.Time }
}

// setHeaders says what follows.
func (o *stream) setHeaders() {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-store")
	o.w.Header().Set("X-Accel-Buffering", "no") // NGINX's Ingress would hold events back
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

// later ends the stream for a while.
func (o *stream) later() error {
	_ = o.flush([]byte("event: " + laterEvent + "\ndata: " + strconv.FormatInt(readAgain.Milliseconds(), 10) + "\n\n")) // as above
	return nil
}

// fail ends the stream. What is gone is gone for good; anything else the page may try again.
func (o *stream) fail(err error) error {
	if known, ok := errors.AsType[*bridge.Error](err); ok && known.Code == bridge.CodeNotFound {
		return o.stop(nil)
	}
	return nil
}
