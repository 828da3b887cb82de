// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// noon is the current time in these tests.
var noon = recorder.Noon

const (
	container = "17990000000000001"
	media     = "17990000000000777"
)

var (
	says   = recorder.Respond
	inTurn = recorder.Sequence
	class  = recorder.ClassOf

	identifies, renews  = platformtest.Identified, platformtest.Renewed
	refuses, leavesOpen = platformtest.Refused, platformtest.Unknown
)

func newThreads(t *testing.T, answer http.HandlerFunc) (*Platform, *recorder.Server) {
	t.Helper()
	server := recorder.Start(t, answer)
	return New(Config{Config: platforms.Config{APIURL: server.URL + "/", Clock: recorder.Clock{FakeClock: clocktesting.NewFakeClock(noon)}}}, transport.New(transport.Options{})), server
}

func jobFor(text string) platforms.Job {
	return platforms.Job{
		Account: platforms.Account{ID: "42", Username: "acme", Token: platforms.Token{Access: "access"}},
		Content: platforms.Content{Category: v1alpha1.CategoryText, Text: text}, Checkpoint: container, SearchFrom: noon,
	}
}

// problem responds with an error in Threads' format.
func problem(status, code, subcode int, transient bool) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"error":{"message":"token access","type":"THApiException","code":%d,"error_subcode":%d,"is_transient":%t}}`, code, subcode, transient))
}

// containerState responds with the container's state.
func containerState(state string) http.HandlerFunc {
	return says(200, `{"status":"`+state+`","id":"`+container+`"}`)
}

type answers = []http.HandlerFunc

func TestPublish(t *testing.T) {
	permalink := says(200, `{"id":"`+media+`","permalink":"https://www.threads.com/@acme/post/Cabc","timestamp":"2026-11-20T12:00:01+0000"}`)
	p, server := newThreads(t, inTurn(answers{says(200, `{"id":"`+media+`"}`), permalink}))
	got := p.Publish(t.Context(), jobFor("hello"))
	want := platforms.Result{
		Outcome: platforms.Posted, ExternalID: media, ExternalURL: "https://www.threads.com/@acme/post/Cabc", PostedAt: noon.Add(time.Second),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
	seen := server.Requests()
	if diff := cmp.Diff([]string{"POST /v1.0/42/threads_publish", "GET /v1.0/" + media}, server.Paths()); diff != "" {
		t.Fatalf("requests (-want +got):\n%s", diff)
	}
	if len(seen[0].Form) != 1 || seen[0].Form.Get("creation_id") != container || seen[0].Token != "access" || len(seen[0].Query) != 0 {
		t.Errorf("the publishing request is %+v", seen[0])
	}
}

func TestVerdicts(t *testing.T) {
	invalid, notFound := problem(400, 100, 0, false), problem(400, 24, 4279009, false)
	platformtest.Verdicts(t, newThreads, jobFor("hello"), "POST /v1.0/42/threads_publish", "GET /v1.0/"+container,
		leavesOpen("code 1", "an unknown error is not proof", problem(400, 1, 0, false)),
		leavesOpen("code 2", "a temporary error is not proof", problem(400, 2, 0, true)),
		leavesOpen("transient", "Threads marks transient errors", problem(400, 100, 0, true)),
		refuses("duplicate", "an earlier call may have published the container", problem(400, 506, 0, false), platforms.ClassDuplicate).Unproven(),
		refuses("dead token", "a dead token cannot be renewed", problem(400, 190, 463, false), platforms.ClassReconnect),
		refuses("permission", "a user has to grant the permission", problem(403, 10, 0, false), platforms.ClassReconnect),
		refuses("limit", "without a time, calling soon would prolong the limit",
			problem(403, 4, 0, true), platforms.ClassRateLimited).OfTheApp().Waiting(5*time.Minute),
		refuses("limit, 429", "the status means the same", says(429, ``), platforms.ClassRateLimited).Waiting(5*time.Minute),
		refuses("quota", "the 250 posts of 24 hours are used up", problem(400, 9, 2207042, false), platforms.ClassQuota).Waiting(time.Hour),
		refuses("spam", "the account has to pause for hours", problem(400, 4, 2207051, false), platforms.ClassQuota).Waiting(time.Hour),
		refuses("restricted", "a user has to act on Threads", problem(400, 100, 4279013, false), platforms.ClassRestricted).Waiting(time.Hour),
		refuses("invalid", "rejected content is never sent again unchanged", invalid, platforms.ClassPermanent).WithState(containerState("FINISHED")),
		refuses("invalid, published", "a published container is not refused", invalid, platforms.ClassPermanent).Unproven().WithState(containerState("PUBLISHED")),
		refuses("invalid, expired", "another container may succeed", invalid, platforms.ClassTransient).WithState(containerState("EXPIRED")),
		refuses("invalid, and no answer", "an earlier call may have published the container, and its state is unknown",
			invalid, platforms.ClassPermanent).Unproven().WithState(containerState("oops")),
		refuses("parts lost", "the next container is created with new parts",
			problem(400, 100, 4279004, false), platforms.ClassTransient).WithState(containerState("EXPIRED")),
		refuses("not found yet", "the container will be found", notFound, platforms.ClassTransient).WithState(containerState("FINISHED")),
		refuses("not found, published", "a published container also gives code 24",
			notFound, platforms.ClassTransient).Unproven().WithState(containerState("PUBLISHED")),
		refuses("not found, and no answer", "without the container's state the outcome is unknown",
			notFound, platforms.ClassTransient).Unproven().WithState(containerState("oops")))
}

// TestStuckContainer makes Threads refuse to publish a container that it reports as finished. The call is retried for a minute,
// and then a new container is created.
func TestStuckContainer(t *testing.T) {
	p, server := newThreads(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodGet:
			containerState("FINISHED")(w, r)
		case strings.HasSuffix(r.URL.Path, "threads_publish"):
			problem(400, 24, 4279009, false)(w, r)
		default:
			says(200, `{"id":"`+media+`"}`)(w, r)
		}
	})
	clk, ok := p.graph.Clock.(recorder.Clock)
	if !ok {
		t.Fatal("the clock is another one")
	}
	job := jobFor("hello")
	for _, tc := range []struct {
		reason string
		after  time.Duration
		want   string
	}{
		{"the container may not be ready yet", 0, container},
		{"59 seconds are too short", 59 * time.Second, container},
		{"after a minute it never will be", time.Second, media},
	} {
		clk.Step(tc.after)
		if got, err := p.Prepare(t.Context(), job); err != nil || got != tc.want && tc.after > 0 {
			t.Errorf("%s: prepared %q, %v after %v; want %q", tc.reason, got, err, server.Paths(), tc.want)
		}
		if got := p.Publish(t.Context(), job); got.Outcome != platforms.Refused || got.Err.Class != platforms.ClassTransient {
			t.Errorf("got %+v", got)
		}
	}
}

func TestPrepare(t *testing.T) {
	create, status := "POST /v1.0/42/threads", "GET /v1.0/"+container
	created := says(200, `{"id":"`+container+`"}`)
	tests := map[string]struct {
		reason, earlier string
		answer          http.HandlerFunc
		want            string
		class           platforms.Class
		asked           []string
	}{
		"created":           {"a finished container can be published", "", inTurn(answers{created, containerState("FINISHED")}), container, "", []string{create, status}},
		"account lost":      {"a token that no longer reaches the account needs a user", "", problem(400, 100, 33, false), "", platforms.ClassReconnect, []string{create}},
		"failed once":       {"another container may succeed", "", inTurn(answers{created, containerState("ERROR"), created, containerState("FINISHED")}), container, "", []string{create, status, create, status}},
		"failed twice":      {"a second container fails as well", "", inTurn(answers{created, containerState("ERROR"), created, containerState("ERROR")}), "", platforms.ClassPermanent, []string{create, status, create, status}},
		"not fetched":       {"the problem is temporary, but may last", "", problem(400, 9004, 2207052, false), "", platforms.ClassTransient, []string{create, create, create}},
		"video not fetched": {"Threads may fetch a video later", "", inTurn(answers{created, says(200, `{"id":"`+container+`","status":"ERROR","error_message":"FAILED_DOWNLOADING_VIDEO"}`), created, containerState("FINISHED")}), container, "", []string{create, status, create, status}},
		"refused":           {"the content is at fault", "", problem(400, 100, 0, false), "", platforms.ClassPermanent, []string{create}},
		"limited":           {"a limit passes", "", problem(403, 4, 0, true), "", platforms.ClassRateLimited, []string{create}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newThreads(t, tc.answer)
			job := jobFor("hello")
			job.Checkpoint = tc.earlier
			got, err := p.Prepare(t.Context(), job)
			var failure error
			if err != nil {
				failure = err
			}
			if got != tc.want || class(failure) != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
			if diff := cmp.Diff(tc.asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPrepareSendsTheText(t *testing.T) {
	const text = "Fish & <chips> \"now\" 🐟\nline two"
	p, server := newThreads(t, inTurn(answers{says(200, `{"id":"`+container+`"}`), containerState("FINISHED")}))
	job := jobFor(text)
	job.Checkpoint = ""
	if _, err := p.Prepare(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	r := server.Requests()[0]
	want := map[string][]string{"media_type": {"TEXT"}, "text": {text}}
	if diff := cmp.Diff(want, map[string][]string(r.Form)); diff != "" {
		t.Errorf("form (-want +got):\n%s", diff)
	}
	if r.Token != "access" || len(r.Query) != 0 {
		t.Errorf("the token must be in the header only; got %+v", r)
	}
}

// TestPrepareResumes repeatedly interrupts preparations while Threads takes longer to process a video than one
// preparation may take. Each preparation continues to wait for the first container.
func TestPrepareResumes(t *testing.T) {
	video := platforms.File{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: 1, Bytes: elsewhere{}}
	tests := map[string]struct {
		reason string
		media  []platforms.File
		want   []string
	}{
		"video": {"one container", []platforms.File{video}, []string{"POST", "GET 1", "GET 1", "GET 1"}},
		"carousel": {
			"one for each file, and one around them",
			[]platforms.File{video, video},
			[]string{"POST", "POST", "GET 1", "GET 1", "GET 1", "GET 2", "POST", "GET 3"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			const cuts = 2
			var asked, created int
			var did []string
			cut := func() {}
			p, _ := newThreads(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					created++
					did = append(did, "POST")
					says(200, fmt.Sprintf(`{"id":"%d"}`, created))(w, r)
					return
				}
				did = append(did, "GET "+strings.TrimPrefix(r.URL.Path, "/v1.0/"))
				asked++
				if asked > cuts {
					containerState("FINISHED")(w, r)
					return
				}
				containerState("IN_PROGRESS")(w, r)
				cut()
			})
			job := jobFor("hello")
			job.Content.Category, job.Content.Media, job.Checkpoint = v1alpha1.CategoryVideo, tc.media, ""
			job.StoreCheckpoint = func(_ context.Context, checkpoint, secret string) error {
				if secret != "" {
					t.Errorf("stored %q as a secret", secret)
				}
				job.Checkpoint = checkpoint
				return nil
			}
			prepare := func() (string, *platforms.Error) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				cut = cancel
				return p.Prepare(ctx, job)
			}
			for range cuts {
				if _, err := prepare(); err == nil || err.Class != platforms.ClassTransient {
					t.Fatalf("%s: got %v, want a temporary error", tc.reason, err)
				}
			}
			id, err := prepare()
			if err != nil || id != strconv.Itoa(created) {
				t.Errorf("%s: got %q, %v", tc.reason, id, err)
			}
			if diff := cmp.Diff(tc.want, did); diff != "" {
				t.Errorf("%s: calls (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// elsewhere is a file that Threads fetches.
type elsewhere struct{}

func (elsewhere) Open(context.Context, int64, int64) (io.ReadCloser, error) {
	return nil, errors.New("Threads fetches files")
}

func (elsewhere) Address(context.Context, time.Duration) (string, error) {
	return "https://store.invalid/film.mp4", nil
}

// parts responds like a graph that numbers its containers and refuses the first carousels. form returns the current
// request's form.
func parts(refusals int, form func() url.Values, made *[]string) http.HandlerFunc {
	created := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			containerState("FINISHED")(w, r)
			return
		}
		children := form().Get("children")
		if children != "" {
			*made = append(*made, "around "+children)
			if refusals > 0 {
				refusals--
				problem(400, 100, 4279004, false)(w, r)
				return
			}
		}
		created++
		if children == "" {
			*made = append(*made, strconv.Itoa(created))
		}
		says(200, fmt.Sprintf(`{"id":"%d"}`, created))(w, r)
	}
}

// TestItemsAreCreatedAgain makes Threads refuse a carousel because its parts are invalid or have expired. The parts
// must be created again, and the post must not fail.
func TestItemsAreCreatedAgain(t *testing.T) {
	video := platforms.File{Name: "film.mp4", MIMEType: v1alpha1.MimeMP4, Size: 1, Bytes: elsewhere{}}
	tests := map[string]struct {
		reason, checkpoint string
		refusals           int
		want               []string
		id                 string
		class              platforms.Class
	}{
		"once": {"new parts go into the next carousel", "", 1, []string{"1", "2", "around 1,2", "3", "4", "around 3,4"}, "5", ""},
		"parts of an earlier preparation": {
			"recorded items are not reused", "items:8,9", 1, []string{"around 8,9", "1", "2", "around 1,2"}, "3", "",
		},
		"expires repeatedly": {
			"the error is temporary after several attempts", "", 9,
			[]string{"1", "2", "around 1,2", "3", "4", "around 3,4"},
			"", platforms.ClassTransient,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var created []string
			var server *recorder.Server
			last := func() url.Values { seen := server.Requests(); return seen[len(seen)-1].Form }
			var p *Platform
			p, server = newThreads(t, parts(tc.refusals, last, &created))
			job := jobFor("hello")
			job.Content.Category, job.Content.Media, job.Checkpoint = v1alpha1.CategoryVideo, []platforms.File{video, video}, tc.checkpoint
			id, err := p.Prepare(t.Context(), job)
			if id != tc.id || (err == nil) != (tc.class == "") || err != nil && err.Class != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, id, err)
			}
			if diff := cmp.Diff(tc.want, created); diff != "" {
				t.Errorf("%s: containers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}
