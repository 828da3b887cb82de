// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/test/sessiontest"
)

// reader receives the events of a stream.
type reader struct {
	mu     sync.Mutex
	head   http.Header
	text   strings.Builder
	status int
	// broken makes all writes fail.
	broken bool
}

func (r *reader) Header() http.Header { return r.head }

func (r *reader) WriteHeader(status int) { r.status = status }

func (r *reader) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken {
		return 0, http.ErrHandlerTimeout
	}
	return r.text.Write(b)
}

func (r *reader) Flush() {}

// breaks makes all later writes fail.
func (r *reader) breaks() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = true
}

// got returns the data since the last call.
func (r *reader) got() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer r.text.Reset()
	return r.text.String()
}

// follow opens a post's stream, in a synctest bubble.
func follow(t *testing.T, w *world, who access.Person, id string) (*reader, context.CancelFunc, chan struct{}) {
	t.Helper()
	r := newRequest(&who, "/teams/"+acme+"/posts/"+id+"/events", nil)
	ctx, leave := context.WithCancel(r.Context())
	out, done := &reader{head: http.Header{}}, make(chan struct{})
	go func() {
		defer close(done)
		w.site.ServeHTTP(out, r.WithContext(ctx))
	}()
	synctest.Wait()
	return out, leave, done
}

// pass advances the time.
func pass(d time.Duration) {
	time.Sleep(d) //nolint:forbidigo // in a bubble of synctest
	synctest.Wait()
}

// ended reports whether a stream has ended.
func ended(done chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

// eventsOf returns the data of a stream's events, parsed as in a browser (HTML, "interpreting an event stream"): each
// of the three line breaks ends a line.
func eventsOf(stream string) (data, named []string) {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(stream), "\n")
	var of []string
	for _, line := range lines {
		field, value, _ := strings.Cut(line, ":")
		switch {
		case line == "" && of != nil:
			data, of = append(data, strings.Join(of, "\n")), nil
		case field == "data":
			of = append(of, strings.TrimPrefix(value, " "))
		case field == "event":
			named = append(named, strings.TrimSpace(value))
		case line != "" && field != "":
			named = append(named, "unknown field "+field)
		}
	}
	return data, named
}

func TestStreamShowsChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(clock.RealClock{})
		w.put(textPost("p-1", "text"))
		out, leave, done := follow(t, w, viewer, "p-1")
		defer leave()
		if got := out.head.Get("Content-Type"); got != "text/event-stream" {
			t.Fatalf("Content-Type is %q", got)
		}
		if data, named := eventsOf(out.got()); len(data) != 1 || len(named) != 0 || !strings.Contains(data[0], "badge") {
			t.Fatalf("the first event is not the post's current state: %q, %q", data, named)
		}
		pass(heartbeat / 2)
		if got := out.got(); got != "" {
			t.Errorf("an event without a change: %q", got)
		}
		pass(heartbeat)
		if got := out.got(); !strings.HasPrefix(got, ":") || !strings.HasSuffix(got, "\n\n") {
			t.Errorf("an idle stream must send a comment as a heartbeat, got %q", got)
		}
		w.put(textPost("p-1", "text", func(post *v1alpha1.Post) {
			post.Status.Targets = []v1alpha1.TargetStatus{{Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseProcessing, Message: "the platform is slow"}}
		}))
		w.signals[acme+"/p-1"] <- struct{}{}
		synctest.Wait()
		if data, _ := eventsOf(out.got()); len(data) != 1 || !strings.Contains(data[0], "The platform is slow.") {
			t.Errorf("the change is not shown: %q", data)
		}
		if ended(done) {
			t.Fatal("the stream ends before the post")
		}
		w.put(textPost("p-1", "text", func(post *v1alpha1.Post) {
			post.Status.Targets = []v1alpha1.TargetStatus{{Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhasePosted, State: v1alpha1.TargetPosted, PostedAt: v1alpha1.NewTimePtr(now)}}
		}))
		w.signals[acme+"/p-1"] <- struct{}{}
		pass(streamPause)
		if data, named := eventsOf(out.got()); len(data) == 0 || strings.Join(named, " ") != finishedEvent {
			t.Errorf("a finished post ends the stream: %q, %q", data, named)
		}
		if !ended(done) || w.followed != 0 {
			t.Errorf("the stream ended: %v, and %d viewers follow", ended(done), w.followed)
		}
	})
}

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		act    func(w *world, out *reader, leave func())
	}{
		"Left":   {"a reader that disconnects releases its resources", func(_ *world, _ *reader, leave func()) { leave(); synctest.Wait() }},
		"Long":   {"streams are limited, so that permissions are checked again", func(*world, *reader, func()) { pass(streamFor + time.Second) }},
		"Broken": {"a stalled reader is detected at the next heartbeat", func(_ *world, out *reader, _ func()) { out.breaks(); pass(heartbeat + time.Second) }},
		"Gone": {"a deleted post no longer changes", func(w *world, _ *reader, _ func()) {
			delete(w.posts, acme+"/p-1")
			w.signals[acme+"/p-1"] <- struct{}{}
			pass(streamPause)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(clock.RealClock{})
				w.put(textPost("p-1", "text"))
				out, leave, done := follow(t, w, viewer, "p-1")
				defer leave()
				pass(streamPause)
				tc.act(w, out, leave)
				if !ended(done) || w.followed != 0 || w.site.streams.all != 0 || len(w.site.streams.of) != 0 {
					t.Errorf("%s: over %v, %d viewers, %d streams", tc.reason, ended(done), w.followed, w.site.streams.all)
				}
			})
		})
	}
}

func TestStreamsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(clock.RealClock{})
	w.put(textPost("p-1", "text"))
	for i := range maxStreams {
		if err := w.site.streams.enter("person " + strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	if answer := w.serve(newRequest(&viewer, "/teams/"+acme+"/posts/p-1/events", nil)); answer.Code != http.StatusServiceUnavailable {
		t.Errorf("a stream above the limit returned %d", answer.Code)
	}
}

// TestStreamsOfOnePerson verifies that one person cannot use up all streams: pages beyond the user's limit poll the
// post, and other people's pages continue.
func TestStreamsOfOnePerson(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(clock.RealClock{})
		w.put(textPost("p-1", "text"))
		var leaves []func()
		for range maxOfOne {
			_, leave, done := follow(t, w, viewer, "p-1")
			if leaves = append(leaves, leave); ended(done) {
				t.Fatal("a user cannot open enough streams of a post")
			}
		}
		late, leave, done := follow(t, w, viewer, "p-1")
		leaves = append(leaves, leave)
		data, named := eventsOf(late.got())
		if !ended(done) || len(data) != 2 || !strings.Contains(data[0], "badge") || data[1] != "30000" || strings.Join(named, " ") != laterEvent {
			t.Errorf("one stream too many gets %q, %q", data, named)
		}
		_, leave, done = follow(t, w, editor, "p-1")
		if leaves = append(leaves, leave); ended(done) {
			t.Error("another user is limited too")
		}
		leaves[0]()
		synctest.Wait()
		_, leave, done = follow(t, w, viewer, "p-1")
		if leaves = append(leaves, leave); ended(done) {
			t.Error("a released stream cannot be opened again")
		}
		for _, leave := range leaves {
			leave()
		}
		synctest.Wait()
		if w.site.streams.all != 0 || len(w.site.streams.of) != 0 {
			t.Errorf("counted %d streams, want none", w.site.streams.all)
		}
	})
}

// changing simulates permissions that a test revokes, with package access's cache: an answer is valid for five seconds.
type changing struct {
	roles

	mu    sync.Mutex
	gone  bool
	asked int
	kept  map[string]time.Time
}

func (c *changing) May(ctx context.Context, who access.Person, namespace, verb, resource string, name ...string) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := who.Name + namespace + verb + resource
	if at, ok := c.kept[key]; ok && time.Since(at) < 5*time.Second {
		return true, nil
	}
	c.asked++
	if c.gone {
		return false, nil
	}
	c.kept[key] = time.Now()
	return c.roles.May(ctx, who, namespace, verb, resource, name...)
}

func (c *changing) questions() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

// TestStreamChecksPermission verifies how quickly a revocation reaches open pages, as docs/people.md promises, and that
// many pages of one person cause no more requests to the Kubernetes API than one.
func TestStreamChecksPermission(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		rights := &changing{kept: map[string]time.Time{}}
		w := newWorld(clock.RealClock{}, func(c *Config) {
			rights.roles, _ = c.Access.(roles)
			c.Access = rights
		})
		w.put(textPost("p-1", "text"))
		var dones []chan struct{}
		for range 10 {
			_, leave, done := follow(t, w, viewer, "p-1")
			t.Cleanup(leave)
			dones = append(dones, done)
		}
		before := rights.questions()
		pass(time.Minute)
		if asked := rights.questions() - before; asked > 13 {
			t.Errorf("ten idle pages of one user caused %d checks a minute, want one in five seconds", asked)
		}
		rights.mu.Lock()
		rights.gone = true
		rights.mu.Unlock()
		pass(6 * time.Second)
		for i, done := range dones {
			if !ended(done) {
				t.Errorf("page %d is still updated six seconds after the permission was removed", i)
			}
		}
	})
}

// TestStreamEndsAtSignOut verifies that signing out everywhere ends the streams of open pages at all replicas.
func TestStreamEndsAtSignOut(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		secrets := sessiontest.New()
		replica := func() *session.Manager {
			m := session.NewManager(session.Options{
				Secrets: secrets, Namespace: sessiontest.Namespace, Name: sessiontest.Name, Secure: true, Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
			})
			go m.Run(t.Context())
			synctest.Wait()
			return m
		}
		here, there := replica(), replica()
		w := newWorld(clock.RealClock{}, func(c *Config) { c.Sessions, c.SignIn.Sessions = here, here })
		w.put(textPost("p-1", "text"))
		_, leave, done := follow(t, w, viewer, "p-1")
		defer leave()
		_, leaveOther, other := follow(t, w, editor, "p-1")
		defer leaveOther()
		pass(streamPause)
		if err := there.SignOutEverywhere(t.Context(), viewer.Name); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // no time passes
		if !ended(done) || ended(other) {
			t.Errorf("the signed-out user's page ended: %v, another user's: %v", ended(done), ended(other))
		}
	})
}

// TestThreatStreamText verifies that a post's text cannot inject events: a carriage return also ends a line.
func TestThreatStreamText(t *testing.T) {
	t.Parallel()
	w := newWorld(clock.RealClock{})
	w.put(textPost("p-1", "text", func(post *v1alpha1.Post) {
		post.Status.Targets = []v1alpha1.TargetStatus{{
			Platform: v1alpha1.PlatformX, Phase: v1alpha1.PhaseFailed, State: v1alpha1.TargetFailed, Message: "a\r\rdata: <b>\revent: mine\r\nretry: 1\n\nb",
		}}
	}))
	out := httptest.NewRecorder()
	w.site.ServeHTTP(out, newRequest(&viewer, "/teams/"+acme+"/posts/p-1/events", nil))
	data, named := eventsOf(out.Body.String())
	if len(data) != 2 || data[1] != "" || strings.Join(named, " ") != finishedEvent {
		t.Errorf("a message wrote events: %d, named %q", len(data), named)
	}
}

// TestStreamSignedOut verifies that a stream without a session is not redirected, because it cannot show a page.
func TestStreamSignedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(clock.RealClock{})
	r := newRequest(nil, "/teams/"+acme+"/posts/p-1/events", nil)
	r.Header.Set("Accept", "text/event-stream")
	if answer := w.serve(r); answer.Code != http.StatusNoContent {
		t.Errorf("got %d, want 204, which permanently closes an EventSource (HTML, \"server-sent events\")", answer.Code)
	}
}
