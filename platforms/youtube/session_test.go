// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package youtube

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// TestContinue parses responses that request the rest of a file of 1000 bytes.
func TestContinue(t *testing.T) {
	const address = "https://www.googleapis.com/upload/youtube/v3/videos?uploadType=resumable&upload_id=s3cr3t-1"
	tests := map[string]struct {
		reason, location string
		ranges           []string
		want             int64
		unread           bool
	}{
		"as documented":      {"the guide's form", "", []string{"bytes=0-99"}, 100, false},
		"no range":           {"without a range, no bytes are stored", "", nil, 0, false},
		"no unit":            {"Google's client for Python reads it", "", []string{"0-99"}, 100, false},
		"another case":       {"units of ranges have no case (RFC 9110, section 14.1)", "", []string{"Bytes=0-99"}, 100, false},
		"blanks":             {"blanks are ignored", "", []string{" bytes = 0 - 99 "}, 100, false},
		"a blank for =":      {"Content-Range has a blank there", "", []string{"bytes 0-99"}, 100, false},
		"everything":         {"YouTube may have all bytes", "", []string{"bytes=0-999"}, 1000, false},
		"ranges that join":   {"the stored ranges have no gap", "", []string{"bytes=0-99,100-199"}, 200, false},
		"ranges that lap":    {"overlapping ranges are invalid", "", []string{"bytes=0-99, 50-199"}, 200, false},
		"ranges in headers":  {"two lines are one list (RFC 9110, section 5.3)", "", []string{"bytes=0-99", "bytes=100-199"}, 200, false},
		"a gap":              {"the missing bytes are sent, and all following ones again", "", []string{"bytes=0-99,200-999"}, 100, false},
		"not from the start": {"YouTube would lack the start", "", []string{"bytes=7-99"}, 0, true},
		"out of order":       {"the order is undocumented", "", []string{"bytes=100-199,0-99"}, 0, true},
		"beyond the end":     {"the range exceeds the file's size", "", []string{"bytes=0-1000"}, 0, true},
		"one beyond the end": {"a range beyond the end is invalid", "", []string{"bytes=0-99,100-1000"}, 0, true},
		"backwards":          {"the range is invalid", "", []string{"bytes=9-0"}, 0, true},
		"another unit":       {"only bytes are a valid unit", "", []string{"chunks=0-9"}, 0, true},
		"open":               {"the end is missing", "", []string{"bytes=0-"}, 0, true},
		"not a range":        {"the range cannot be parsed", "", []string{"all of it"}, 0, true},

		"the same session":     {"Google's clients continue at the new address", address, []string{"bytes=0-99"}, 100, false},
		"the same, relative":   {"an address may leave out its host", "/upload/youtube/v3/videos?upload_id=s3cr3t-1", []string{"bytes=0-99"}, 100, false},
		"the same, query only": {"the path may differ, too", "?upload_id=s3cr3t-1&uploadType=resumable", []string{"bytes=0-99"}, 100, false},
		"on another host":      {"the id identifies the session, and bytes go to the known host", "https://youtube.googleapis.com/upload?upload_id=s3cr3t-1", []string{"bytes=0-99"}, 100, false},
		"another session":      {"the received bytes belong to another session", "https://www.googleapis.com/upload/youtube/v3/videos?upload_id=s3cr3t-2", []string{"bytes=0-99"}, 0, true},
		"no session":           {"a proxy redirects", "https://www.googleapis.com/upload/youtube/v3/videos", []string{"bytes=0-99"}, 0, true},
		"a page":               {"a page is not a session", "/", nil, 0, true},
		"no address":           {"an invalid URL is ignored", "http://%zz", nil, 0, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{"Range": tc.ranges}
			if tc.location != "" {
				h.Set("Location", tc.location)
			}
			if got, ok := stored(h, session{address: address}, 1000); got != tc.want && !tc.unread || ok == tc.unread {
				t.Errorf("%s: got %d, %t", tc.reason, got, ok)
			}
		})
	}
	plain := session{address: "https://www.googleapis.com/session/1"}
	if !plain.sameSession("/session/1") || plain.sameSession("/session/2") {
		t.Error("a session without an id is identified by its URL")
	}
}

// TestContinueAtTheSameSession uploads to a session whose responses contain its own URL, and to one that omits the range's
// unit.
func TestContinueAtTheSameSession(t *testing.T) {
	const size = chunk + unit + 1
	for reason, dress := range map[string]func(at string) []string{
		"Location of the session": func(at string) []string { return []string{"Location", at, "Range", "bytes=0-%d"} },
		"Range without its unit":  func(string) []string { return []string{"Range", "0-%d"} },
	} {
		t.Run(reason, func(t *testing.T) {
			next := func(bytes int64) http.HandlerFunc {
				return func(w http.ResponseWriter, r *http.Request) {
					headers := dress("http://" + r.Host + r.URL.RequestURI())
					headers[len(headers)-1] = fmt.Sprintf(headers[len(headers)-1], bytes-1)
					says(308, "", headers...)(w, r)
				}
			}
			answers := []http.HandlerFunc{begun, next(chunk)}
			for range 2 { // the status call, and the last part
				answers = append(answers, next(chunk+unit))
			}
			p, g := newGoogle(t, append(answers, says(200, published), shown(videoID))...)
			job := videoJob(size)
			checkpoint, failure := p.Prepare(t.Context(), job)
			if failure != nil {
				t.Fatalf("got %q, %v", checkpoint, failure)
			}
			job = g.upTo(size, chunk+unit)
			if found, err := p.Lookup(t.Context(), job); err != nil || !found.Proof {
				t.Errorf("a session with missing bytes proves that there is no video: %+v, %v", found, err)
			}
			if got := p.Publish(t.Context(), job); got.Outcome != platforms.Posted {
				t.Errorf("got %+v (%v)", got, got.Err)
			}
		})
	}
}

// TestForeignSession gives Herald a session URL that is not YouTube's, in YouTube's response and in the Secret that
// stores it. The URL must not be called, even if everything else matches.
func TestForeignSession(t *testing.T) {
	var calls atomic.Int32
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { calls.Add(1) }))
	defer inside.Close()
	for reason, address := range map[string]string{
		"a service inside": inside.URL + "/-/quit", "another site": "https://upload.evil.example/session",
		"YouTube without TLS":                 "http://www.googleapis.com/session",
		"a host that only looks like YouTube": "https://www.googleapis.com.evil.example/session",
	} {
		t.Run(reason, func(t *testing.T) {
			p, g := newGoogle(t, says(200, "", "Location", address))
			job := videoJob(unit + 7)
			job.StoreCheckpoint = func(context.Context, string, string) error {
				t.Error("a checkpoint was stored")
				return nil
			}
			if checkpoint, failure := p.Prepare(t.Context(), job); failure == nil || failure.Problem != msgNoSession {
				t.Errorf("got %q, %v", checkpoint, failure)
			}
			s := session{address: address, last: unit}
			job.Checkpoint, job.Secret = s.checkpoint(), s.secret()
			if got := p.Publish(t.Context(), job); got.Outcome != platforms.Refused || got.Err.Class != platforms.ClassTransient {
				t.Errorf("got %+v", got)
			}
			g.answers = []http.HandlerFunc{says(200, `{"items":[]}`)}
			if got, err := p.Lookup(t.Context(), job); got.Matches != 0 || got.Proof || err == nil {
				t.Errorf("the lookup returned %+v, %v, want no proof from another server", got, err)
			}
		})
	}
	if calls.Load() != 0 {
		t.Errorf("the service inside was called %d times", calls.Load())
	}
}

// TestFailuresHaveTheSameMessage makes a session URL respond in every way that is not YouTube's. All messages must be equal,
// because different ones would reveal the kind of server.
func TestFailuresHaveTheSameMessage(t *testing.T) {
	words := map[string][]string{}
	try := func(what, base string) {
		p := New(Config{APIURL: base, Clock: clocktesting.NewFakeClock(noon)}, transport.New(transport.Options{}))
		s := session{address: base + "/session", last: unit}
		job := videoJob(unit + 7)
		job.Checkpoint, job.Secret = s.checkpoint(), s.secret()
		_, failure := p.Prepare(t.Context(), job)
		published := p.Publish(t.Context(), job)
		_, err := p.Lookup(t.Context(), job)
		for _, message := range []string{fmt.Sprint(failure), fmt.Sprint(published.Err), fmt.Sprint(err)} {
			words[message] = append(words[message], what)
		}
	}
	for _, status := range []int{200, 204, 301, 302, 400, 401, 403, 405, 418, 429, 500, 503} {
		server := httptest.NewServer(says(status, "<html>inside</html>"))
		try(fmt.Sprint("status ", status), server.URL)
		server.Close()
	}
	closed := httptest.NewServer(nil)
	closed.Close()
	try("a closed port", closed.URL)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }() // The test is over.
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("SSH-2.0-x\r\n")) // The client may have closed the connection.
			_ = conn.Close()
		}
	}()
	try("no web server", "http://"+listener.Addr().String())
	if len(words) != 1 {
		t.Errorf("all failures must have the same message: %v", words)
	}
}
