// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
)

// zeros is a file of zero bytes.
type zeros struct{}

func (zeros) Open(_ context.Context, _, length int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(make([]byte, length))), nil
}

func (zeros) Address(context.Context, time.Duration) (string, error) {
	return "", errors.New("X fetches nothing")
}

// filmOf returns a job for a video of the given size.
func filmOf(size int64) platforms.Job {
	film := platforms.File{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: size, Bytes: zeros{}}
	return platforms.Job{Content: platforms.Content{Category: v1alpha1.CategoryVideo, Media: []platforms.File{film}}}
}

// uploads is a server that handles uploads as X does. It has an upload with the id "5", and assigns the id "7" to new
// ones.
type uploads struct {
	mu sync.Mutex
	// forgotten is the id of an upload that the server no longer has, and status is the status that it then
	// responds with.
	forgotten string
	status    int
	did       []string
}

func (u *uploads) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	what := strings.TrimPrefix(r.URL.Path, "/2/media/upload")
	if _, segment, found := strings.Cut(string(body), `name="segment_index"`); found {
		what += "#" + strings.Fields(segment)[0]
	}
	u.mu.Lock()
	u.did = append(u.did, what)
	u.mu.Unlock()
	if u.forgotten != "" && strings.HasPrefix(what, "/"+u.forgotten) {
		w.WriteHeader(u.status)
		fmt.Fprint(w, `{"title":"Invalid Request","detail":"no such media","type":"about:blank"}`)
		return
	}
	if strings.HasSuffix(what, "/finalize") {
		fmt.Fprint(w, `{"data":{"id":"7","processing_info":{"state":"pending"}}}`)
		return
	}
	fmt.Fprint(w, `{"data":{"id":"7"}}`)
}

func (u *uploads) calls() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.did
}

// TestUploadResumes resumes an upload of six chunks after four have arrived.
func TestUploadResumes(t *testing.T) {
	all := func(id string, from int) []string {
		var out []string
		for i := from; i < 6; i++ {
			out = append(out, fmt.Sprintf("/%s/append#%d", id, i))
		}
		return append(out, "/"+id+"/finalize", "")
	}
	anew := append([]string{"/initialize"}, all("7", 0)...)
	tests := map[string]struct {
		reason, checkpoint string
		server             *uploads
		want               []string
		id                 string
		class              platforms.Class
	}{
		"continues": {"four stored chunks are not sent again", "part:5:4", &uploads{}, all("5", 4), "5", ""},
		"finalized": {"only the end of a complete upload is repeated", "part:5:6", &uploads{}, all("5", 6), "5", ""},
		"forgotten": {
			"an upload that X has dropped starts over", "part:5:4", &uploads{forgotten: "5", status: 400},
			append([]string{"/5/append#4"}, anew...), "7", "",
		},
		"gone": {
			"the same in another form", "part:5:4", &uploads{forgotten: "5", status: 404}, append([]string{"/5/append#4"}, anew...), "7", "",
		},
		"outage": {
			"an outage is not evidence about the upload", "part:5:4", &uploads{forgotten: "5", status: 503},
			[]string{"/5/append#4", "/5/append#4", "/5/append#4"},
			"", platforms.ClassTransient,
		},
		"nonsense": {
			"another server's response is not reliable", "part:5:4", &uploads{forgotten: "5", status: 418},
			[]string{"/5/append#4"},
			"", platforms.ClassUnknown,
		},
		"odd id":        {"an invalid id starts over", "part:5/6:4", &uploads{}, anew, "7", ""},
		"odd number":    {"a part without a number starts over", "part:5:x", &uploads{}, anew, "7", ""},
		"absurd number": {"an impossible number starts a new upload", "part:5:-4", &uploads{}, anew, "7", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(tc.server)
			defer server.Close()
			var notes []string
			job := platforms.Job{
				Checkpoint: tc.checkpoint,
				Content: platforms.Content{Category: v1alpha1.CategoryVideo, Media: []platforms.File{
					{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: 5*chunk + 1, Bytes: zeros{}},
				}},
				StoreCheckpoint: func(_ context.Context, checkpoint, secret string) error {
					notes = append(notes, checkpoint+secret)
					return nil
				},
			}
			checkpoint, failure := New(Config{APIURL: server.URL}, transport.New(transport.Options{})).Prepare(t.Context(), job)
			if failure == nil && tc.class != "" || failure != nil && failure.Class != tc.class {
				t.Fatalf("%s: got %q, %v", tc.reason, checkpoint, failure)
			}
			if diff := cmp.Diff(tc.want, tc.server.calls()); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
			}
			if failure == nil && checkpoint != tc.id {
				t.Errorf("%s: prepared %q, want %q", tc.reason, checkpoint, tc.id)
			}
			if tc.id == "7" {
				if diff := cmp.Diff([]string{"part:7:2", "part:7:4", "7"}, notes); diff != "" {
					t.Errorf("%s: checkpoints (-want +got):\n%s", tc.reason, diff)
				}
			}
		})
	}
}

// TestProcessingResumes interrupts a preparation while X is processing a video. The next preparation continues to wait
// for the same upload.
func TestProcessingResumes(t *testing.T) {
	for name, size := range map[string]int64{"one chunk": 1, "six chunks": 5*chunk + 1} {
		t.Run(name, func(t *testing.T) {
			ctx, cut := context.WithCancel(t.Context())
			defer cut()
			var started, asked int
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				switch {
				case strings.HasSuffix(r.URL.Path, "/initialize"):
					started++
				case strings.HasSuffix(r.URL.Path, "/finalize"):
					fmt.Fprint(w, `{"data":{"id":"7","processing_info":{"state":"pending"}}}`)
					return
				case r.Method == http.MethodGet:
					asked++
					if asked == 1 {
						fmt.Fprint(w, `{"data":{"id":"7","processing_info":{"state":"in_progress","check_after_secs":30}}}`)
						cut()
						return
					}
				}
				fmt.Fprint(w, `{"data":{"id":"7"}}`)
			}))
			defer server.Close()
			p := New(Config{APIURL: server.URL}, transport.New(transport.Options{}))
			job := filmOf(size)
			job.StoreCheckpoint = func(_ context.Context, checkpoint, _ string) error {
				job.Checkpoint = checkpoint
				return nil
			}
			if _, failure := p.Prepare(ctx, job); failure == nil || failure.Class != platforms.ClassTransient {
				t.Fatalf("got %v, want a temporary error", failure)
			}
			if id, failure := p.Prepare(t.Context(), job); failure != nil || id != "7" || started != 1 || asked != 2 {
				t.Errorf("got %q, %v after %d uploads and %d status requests, want one upload and two requests", id, failure, started, asked)
			}
		})
	}
}

// TestImagesHaveNoState prepares two images again. X has no state for images, but their ids contain the time of the
// upload.
func TestImagesHaveNoState(t *testing.T) {
	fresh, old := snowflake(noon.Add(-22*time.Hour)), snowflake(noon.Add(-23*time.Hour-time.Minute))
	tests := map[string]struct {
		reason, checkpoint string
		calls              []string
	}{
		"fresh":     {"X stores media for a day", fresh + "," + fresh, nil},
		"one old":   {"X would soon delete one of the images", fresh + "," + old, []string{"POST", "POST"}},
		"odd names": {"an id without a time has an unknown age", fresh + ",6", []string{"POST", "POST"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newX(t, Config{}, says(200, `{"data":{"id":"7"}}`))
			image := platforms.File{Name: "a.png", MIMEType: v1alpha1.MimePNG, Size: 1, Bytes: zeros{}}
			job := platforms.Job{
				Checkpoint: tc.checkpoint, Content: platforms.Content{Category: v1alpha1.CategoryImage, Media: []platforms.File{image, image}},
			}
			got, failure := p.Prepare(t.Context(), job)
			if want := map[bool]string{true: tc.checkpoint, false: "7,7"}[tc.calls == nil]; failure != nil || got != want {
				t.Errorf("%s: prepared %q, %v; want %q", tc.reason, got, failure, want)
			}
			var calls []string
			for _, r := range server.Requests() {
				calls = append(calls, r.Method)
			}
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStateOfUploadedVideo reads the state of a video that was uploaded earlier.
func TestStateOfUploadedVideo(t *testing.T) {
	asked := []string{"GET 6"}
	again := append(slices.Clone(asked), "POST", "POST", "POST")
	tests := map[string]struct {
		reason string
		// answer is X's response to the status call.
		answer http.HandlerFunc
		calls  []string
		class  platforms.Class
	}{
		"there":      {"an existing file is reused", says(200, `{"data":{"id":"6"}}`), asked, ""},
		"refused":    {"X has dropped the file", says(400, `{"title":"Invalid Request","type":"https://api.x.com/2/problems/invalid-request"}`), again, ""},
		"not found":  {"the same, in the format of a lookup", says(404, `{"title":"Not Found Error","type":"https://api.x.com/2/problems/resource-not-found","status":404}`), again, ""},
		"failed":     {"X could not process it", says(200, `{"data":{"id":"6","processing_info":{"state":"failed"}}}`), again, ""},
		"limited":    {"another upload would not end the limit", says(429, `{"title":"Too Many Requests"}`, "X-Rate-Limit-Remaining", "0"), asked, platforms.ClassRateLimited},
		"outage":     {"an outage is not evidence about the file", says(503, ``), asked, platforms.ClassTransient},
		"dead token": {"an expired token is not evidence", says(401, `{"title":"Unauthorized","type":"about:blank"}`), asked, platforms.ClassRefresh},
		"no money":   {"used-up credits are not evidence", says(402, `{"title":"CreditsDepleted"}`), asked, platforms.ClassQuota},
		"hang up":    {"a lost response is not evidence", hangUp, asked, platforms.ClassTransient},
		"bare 404":   {"a missing file was dropped, with or without a body", says(404, ``), again, ""},
		"nonsense":   {"a proxy may have responded", says(400, `<html>`), asked, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var calls []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				id := r.URL.Query().Get("media_id")
				mu.Lock()
				calls = append(calls, strings.TrimSpace(r.Method+" "+id))
				mu.Unlock()
				if id == "6" {
					tc.answer(w, r)
					return
				}
				fmt.Fprint(w, `{"data":{"id":"7"}}`)
			}))
			defer server.Close()
			server.Config.SetKeepAlivesEnabled(false) // net/http retries a read if a reused connection breaks
			film := platforms.File{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: 1, Bytes: zeros{}}
			job := platforms.Job{Checkpoint: "6", Content: platforms.Content{Category: v1alpha1.CategoryVideo, Media: []platforms.File{film}}}
			checkpoint, failure := New(Config{APIURL: server.URL}, transport.New(transport.Options{})).Prepare(t.Context(), job)
			if failure == nil && tc.class != "" || failure != nil && failure.Class != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, checkpoint, failure)
			}
			mu.Lock()
			defer mu.Unlock()
			if diff := cmp.Diff(tc.calls, calls); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFinalizeIsTrusted uploads a video that X does not process: the response to FINALIZE has no processing_info, and
// X has no state for it.
func TestFinalizeIsTrusted(t *testing.T) {
	tests := map[string]struct {
		reason, finalized string
		asks              bool
		class             platforms.Class
	}{
		"ready":      {"without processing_info the media is ready", `{"data":{"id":"7","media_key":"13_7"}}`, false, ""},
		"processed":  {"processing_info requires a lookup", `{"data":{"id":"7","processing_info":{"state":"pending","check_after_secs":1}}}`, true, platforms.ClassUnknown},
		"unreadable": {"a truncated response is not evidence", `{"data":{"id":"7"`, true, platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newX(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodGet:
					w.WriteHeader(http.StatusNotFound)
				case strings.HasSuffix(r.URL.Path, "/finalize"):
					fmt.Fprint(w, tc.finalized)
				default:
					fmt.Fprint(w, `{"data":{"id":"7"}}`)
				}
			})
			_, failure := p.Prepare(t.Context(), filmOf(1))
			if failure == nil && tc.class != "" || failure != nil && failure.Class != tc.class {
				t.Errorf("%s: got %v", tc.reason, failure)
			}
			all := server.Requests()
			if asks := all[len(all)-1].Method == http.MethodGet; asks != tc.asks {
				t.Errorf("%s: the state was requested: %v", tc.reason, asks)
			}
		})
	}
}

// TestLostFilesAreSentAgain publishes with files that X no longer has.
func TestLostFilesAreSentAgain(t *testing.T) {
	fresh := snowflake(noon.Add(-time.Hour))
	for name, tc := range map[string]struct {
		reason, answer string
		lost           bool
	}{
		"gone": {"the images are uploaded again", `{"errors":[{"parameters":{},"message":"Your media IDs are invalid."}],"title":"Invalid Request",
			"detail":"One or more parameters to your request was invalid.","type":"https://api.x.com/2/problems/invalid-request"}`, true},
		"old code": {"the old API has another code for a lost file", `{"errors":[{"code":325,"message":"A media id was not found."}]}`, true},
		"another rejection": {"another rejection is not evidence about the files", `{"title":"Invalid Request","detail":"One or more parameters to your request was invalid.",
			"type":"https://api.x.com/2/problems/invalid-request"}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			p, _ := newX(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/2/tweets" {
					w.WriteHeader(http.StatusBadRequest)
					fmt.Fprint(w, tc.answer)
					return
				}
				fmt.Fprint(w, `{"data":{"id":"7"}}`)
			})
			job := jobFor("hello")
			job.Content.Category, job.Checkpoint = v1alpha1.CategoryImage, fresh
			job.Content.Media = []platforms.File{{Name: "a.png", MIMEType: v1alpha1.MimePNG, Size: 1, Bytes: zeros{}}}
			got := p.Publish(t.Context(), job)
			if again := got.Err.Class == platforms.ClassTransient; got.Outcome != platforms.Refused || again != tc.lost {
				t.Errorf("%s: got %s, %+v", tc.reason, got.Outcome, got.Err)
			}
			id, failure := p.Prepare(t.Context(), job)
			if want := map[bool]string{true: "7", false: fresh}[tc.lost]; failure != nil || id != want {
				t.Errorf("%s: prepared %q, %v; want %q", tc.reason, id, failure, want)
			}
		})
	}
}

// FuzzPart checks that every accepted checkpoint of a part contains an upload and a valid number of segments, and that
// formatting it results in an equivalent checkpoint.
func FuzzPart(f *testing.F) {
	for _, checkpoint := range []string{"part:1991:3", "part::1", "part:1991:-1", "part:1991:99999999", "part:1/2:1", "1991"} {
		f.Add(checkpoint)
	}
	f.Fuzz(func(t *testing.T, checkpoint string) {
		found, ok := partOf(checkpoint)
		if !ok {
			return
		}
		if !validID(found.id) || found.segments < 1 || found.segments > maxSegments {
			t.Errorf("%q was parsed as %+v", checkpoint, found)
		}
		if again, ok := partOf(found.checkpoint()); !ok || again != found {
			t.Errorf("%q was parsed as %+v, and that as %+v", checkpoint, found, again)
		}
	})
}
