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
	// maxStreams limits concurrent streams, which take a connection and a few KiB each; maxOfOne limits the streams of
	// one person.
	maxStreams = 1000
	maxOfOne   = 20
	// streamFor is how long a stream's connection lasts. The page's script then reconnects, which distributes the pages
	// across the current replicas.
	streamFor = 5 * time.Minute
	// streamPause is the minimum time between two updates.
	streamPause = 250 * time.Millisecond
	// heartbeat is the interval between heartbeats. It is well under a minute, the time after which load balancers
	// commonly close idle connections.
	heartbeat = 20 * time.Second
	// recheckInterval is how often a stream checks whether its person may still follow the post. The session check
	// reads only the cache. The permission check is cached for five seconds (package access), for all of a person's
	// pages in a team. With this interval, a withdrawn permission ends a stream within a second after that, and the
	// Kubernetes API receives one review every five seconds for each user and team, however many pages are open.
	recheckInterval = time.Second
	// readAgain is the polling interval of a page that is not allowed to stream.
	readAgain = 30 * time.Second
)

type streams struct {
	mu  sync.Mutex
	all int
	of  map[string]int
}

// Reasons for not letting a page follow a post.
var (
	errStreams = errors.New("too many pages follow posts; reload the page later")
	errOfOne   = errors.New("too many pages of one person follow posts")
)

// enter counts a user's new stream. It returns errStreams or errOfOne if a limit is reached.
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

func (s *streams) release(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all--
	s.of[who]--
	if s.of[who] == 0 {
		delete(s.of, who)
	}
}

// events streams a post's changes (HTML, "Server-sent events").
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

// glance sends a post's current state and the delay until the next poll, for a user who has reached the limit on
// streams.
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

// stays reports whether the session and the permission to see posts are still valid.
func (s *Site) stays(v *visit) bool {
	if !s.Sessions.IsValid(v.session) {
		return false
	}
	may, err := s.allowed(v.Context(), v, seePosts)
	return may && err == nil // on an error the answer is no
}

// waitForChange waits until a post may have changed. It returns false if the stream must end.
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
		// The channel is read before the check, so no change in between is missed.
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

// Events that do not carry part of the page.
const (
	// finishedEvent stops the page from reconnecting.
	finishedEvent = "stop"
	// laterEvent makes the page reconnect after a delay; its data is the delay in milliseconds.
	laterEvent = "later"
)

type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	clock   interface{ Now() time.Time }
}

func (o *stream) setHeaders() {
	o.w.Header().Set("Content-Type", "text/event-stream")
	o.w.Header().Set("Cache-Control", "no-store")
	o.w.Header().Set("X-Accel-Buffering", "no") // ingress-nginx would buffer events
}

// eventWriteTimeout is the write timeout of one event.
const eventWriteTimeout = 30 * time.Second

func (o *stream) flush(data []byte) error {
	// The server's own write timeout is for whole responses.
	if err := o.control.SetWriteDeadline(o.clock.Now().Add(eventWriteTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := o.w.Write(data); err != nil {
		return err
	}
	return o.control.Flush()
}

// lineBreaks normalizes the three kinds of line breaks.
var lineBreaks = strings.NewReplacer("\r\n", "\n", "\r", "\n")

func (o *stream) send(node g.Node) error {
	var piece strings.Builder
	if err := node.Render(&piece); err != nil {
		return err
	}
	var event bytes.Buffer
	// A carriage return also ends a line of the stream (HTML, "server-sent events"), and no text may inject fields.
	for line := range strings.SplitSeq(lineBreaks.Replace(piece.String()), "\n") {
		fmt.Fprintf(&event, "data: %s\n", line)
	}
	event.WriteByte('\n')
	return o.flush(event.Bytes())
}

// beat sends a comment, which pages ignore.
func (o *stream) beat() error { return o.flush([]byte(": still here\n\n")) }

// stop ends the stream permanently, unless the reader has disconnected.
func (o *stream) stop(err error) error {
	if err == nil {
		err = o.flush([]byte("event: " + finishedEvent + "\ndata: \n\n"))
	}
	_ = err // a disconnected reader does not need the event
	return nil
}

// later ends the stream until the next poll.
func (o *stream) later() error {
	_ = o.flush([]byte("event: " + laterEvent + "\ndata: " + strconv.FormatInt(readAgain.Milliseconds(), 10) + "\n\n")) // as above
	return nil
}

// fail ends the stream. A missing post ends it permanently; after any other error the page may reconnect.
func (o *stream) fail(err error) error {
	if known, ok := errors.AsType[*bridge.Error](err); ok && known.Code == bridge.CodeNotFound {
		return o.stop(nil)
	}
	return nil
}
