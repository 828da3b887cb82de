// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

const (
	create = "POST /v25.0/42/media"
	status = "GET /v25.0/" + container
)

func TestPrepare(t *testing.T) {
	ok := made(container)
	tests := map[string]struct {
		reason, earlier string
		answers         answers
		want            string
		class           platforms.Class
		asked           []string
	}{
		"ready":                 {"a finished container can be published", "", answers{ok, containerState("FINISHED")}, container, "", []string{create, status}},
		"used again":            {"a valid container is reused", container, answers{containerState("FINISHED")}, container, "", []string{status}},
		"published":             {"a published container is neither created nor published again", container, answers{containerState("PUBLISHED")}, container, platforms.ClassDuplicate, []string{status}},
		"expired":               {"a new container replaces it", container, answers{containerState("EXPIRED"), ok, containerState("FINISHED")}, container, "", []string{status, create, status}},
		"failed meanwhile":      {"a new container replaces a failed one", container, answers{containerState("ERROR"), ok, containerState("FINISHED")}, container, "", []string{status, create, status}},
		"deleted":               {"a missing container is created again", container, answers{problem(400, 100, 33), ok, containerState("FINISHED")}, container, "", []string{status, create, status}},
		"not ours":              {"a checkpoint of another kind is ignored", "upload:" + container, answers{ok, containerState("FINISHED")}, container, "", []string{create, status}},
		"nonsense":              {"an invalid id is ignored", "items:../me", answers{ok, containerState("FINISHED")}, container, "", []string{create, status}},
		"status unavailable":    {"without a response, the container may be published", container, answers{says(503, ``)}, "", platforms.ClassTransient, []string{status}},
		"odd state":             {"an unknown state does not allow the publication", container, answers{containerState("LATER")}, "", platforms.ClassUnknown, []string{status}},
		"failed once":           {"another container may succeed", "", answers{ok, broke("2207053"), ok, containerState("FINISHED")}, container, "", []string{create, status, create, status}},
		"failed twice":          {"the problem is temporary, but may last", "", answers{ok, broke("2207053"), ok, broke("2207053")}, "", platforms.ClassTransient, []string{create, status, create, status}},
		"failed, unknown":       {"the number of retries is limited", "", answers{ok, broke("FAILED"), ok, broke("FAILED")}, "", platforms.ClassPermanent, []string{create, status, create, status}},
		"permanent failure":     {"another container would fail too", "", answers{ok, broke("2207026")}, "", platforms.ClassPermanent, []string{create, status}},
		"blocked":               {"a blocked account is not retried", "", answers{ok, broke("2207051")}, "", platforms.ClassQuota, []string{create, status}},
		"expired immediately":   {"a container that expires during the wait is created again", "", answers{ok, containerState("EXPIRED"), ok, containerState("FINISHED")}, container, "", []string{create, status, create, status}},
		"not fetched once":      {"the store may become reachable", "", answers{problem(400, 9004, 2207052), ok, containerState("FINISHED")}, container, "", []string{create, create, status}},
		"not fetched":           {"Instagram sometimes fails to download reachable files", "", answers{problem(400, 9004, 2207052)}, "", platforms.ClassTransient, []string{create, create, create}},
		"unread":                {"a new container exists, regardless of its state", "", answers{ok, problem(400, 100, 33), containerState("FINISHED")}, container, "", []string{create, status, status}},
		"refused":               {"the content is at fault", "", answers{problem(400, 100, 0)}, "", platforms.ClassPermanent, []string{create}},
		"dead token":            {"a user must reconnect the account", "", answers{problem(400, 190, 0)}, "", platforms.ClassReconnect, []string{create}},
		"outage":                {"an outage passes", "", answers{says(502, ``)}, "", platforms.ClassTransient, []string{create}},
		"answer lost":           {"an unpublished object may be created again", "", answers{hangUp}, "", platforms.ClassTransient, []string{create}},
		"created without an id": {"a container without an id cannot be published", "", answers{says(200, `{}`)}, "", platforms.ClassUnknown, []string{create}},
		"status lost":           {"a container with an unknown state cannot be published", "", answers{ok, says(502, ``)}, "", platforms.ClassTransient, []string{create, status}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, inTurn(tc.answers))
			job := jobFor("hello", "", picture("a.jpg"))
			job.Checkpoint = tc.earlier
			got, err := p.Prepare(t.Context(), job)
			if got != tc.want || class(err) != tc.class {
				t.Errorf("%s: got %q, %v", tc.reason, got, err)
			}
			if diff := cmp.Diff(tc.asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
		})
	}
}

// TestUnreadableContainer makes Instagram refuse reads of its containers although it publishes them, as it once did for
// days. A new container is created only once and eventually counts as ready; it is replaced only when it may really be
// gone.
func TestUnreadableContainer(t *testing.T) {
	tests := map[string]struct {
		reason string
		job    platforms.Job
		made   int
	}{
		"image":    {"one container", jobFor("hello", "", picture("a.jpg")), 1},
		"carousel": {"one for each image and one around them", jobFor("hello", "", picture("a"), picture("b"), picture("c")), 4},
		"reel":     {"one container", jobFor("hello", "", film("a.mp4")), 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			created := 0
			p, _ := newInstagram(t, func(w http.ResponseWriter, r *http.Request) {
				if r.Method != http.MethodPost {
					problem(400, 100, 33)(w, r)
					return
				}
				created++
				says(200, fmt.Sprintf(`{"id":"%d"}`, created))(w, r)
			})
			job, started := tc.job, p.config.Clock.Now()
			first, err := p.Prepare(t.Context(), job)
			if took := p.config.Clock.Since(started); err != nil || first != fmt.Sprint(tc.made) || created != tc.made || took > time.Minute {
				t.Fatalf("%s: got %q, %v after %d containers and %v", tc.reason, first, err, created, took)
			}
			job.Checkpoint = first
			if again, err := p.Prepare(t.Context(), job); again != first || err != nil || created != tc.made {
				t.Errorf("%s: got %q, %v after %d containers: it is new", tc.reason, again, err, created)
			}
			p.config.Clock.(recorder.Clock).Step(10 * time.Minute)
			if again, err := p.Prepare(t.Context(), job); again != fmt.Sprint(2*tc.made) || err != nil {
				t.Errorf("%s: got %q, %v after %d containers, want new ones", tc.reason, again, err, created)
			}
		})
	}
}

// TestForms compares complete forms.
func TestForms(t *testing.T) {
	at := 1500 * time.Millisecond
	upload := "POST /rupload/ig-api-upload/v25.0/" + container
	tests := map[string]struct {
		reason string
		job    platforms.Job
		at     *time.Duration
		asked  []string
		form   url.Values
	}{
		"image":           {"Instagram fetches it", jobFor("Fish & <chips> 🐟\n#now", "", picture("a.jpg")), nil, []string{create, status}, url.Values{"image_url": {"https://store.example/a.jpg"}, "caption": {"Fish & <chips> 🐟\n#now"}}},
		"no caption":      {"an empty caption is omitted", jobFor("", "", picture("a.jpg")), nil, []string{create, status}, url.Values{"image_url": {"https://store.example/a.jpg"}}},
		"video":           {"videos are reels", jobFor("hello", "", film("a.mp4")), nil, []string{create, status}, url.Values{"media_type": {"REELS"}, "video_url": {"https://store.example/a.mp4"}, "caption": {"hello"}}},
		"thumbnail":       {"in milliseconds", jobFor("", "", film("a.mp4")), &at, []string{create, status}, url.Values{"media_type": {"REELS"}, "video_url": {"https://store.example/a.mp4"}, "thumb_offset": {"1500"}}},
		"image, linked":   {"the same at another host", jobFor("", linked, picture("a.jpg")), nil, []string{"POST /facebook/v25.0/42/media", "GET /facebook/v25.0/" + container}, url.Values{"image_url": {"https://store.example/a.jpg"}}},
		"video, uploaded": {"through a Page, bytes can be uploaded", jobFor("hello", linked, film("a.mp4")), &at, []string{"POST /facebook/v25.0/42/media", upload, "GET /facebook/v25.0/" + container}, url.Values{"media_type": {"REELS"}, "upload_type": {"resumable"}, "caption": {"hello"}, "thumb_offset": {"1500"}}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.Method == http.MethodGet:
					containerState("FINISHED")(w, r)
				case strings.HasPrefix(r.URL.Path, "/rupload/"):
					says(200, `{"success":true}`)(w, r)
				default:
					made(container)(w, r)
				}
			})
			tc.job.Content.ThumbnailAt = tc.at
			if got, err := p.Prepare(t.Context(), tc.job); err != nil || got != container {
				t.Fatalf("%s: got %q, %v", tc.reason, got, err)
			}
			if diff := cmp.Diff(tc.asked, server.Paths()); diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			r := server.Requests()[0]
			if diff := cmp.Diff(tc.form, r.Form); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if r.Token != "access" || len(r.Query) != 0 {
				t.Errorf("the token must be in the header only; got %+v", r)
			}
		})
	}
}

// carousels responds like a graph that numbers its containers 1, 2, 3, … and returns the given state for each; "" means
// finished.
func carousels(states map[string]string) http.HandlerFunc {
	next := 0
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			next++
			made(fmt.Sprint(next))(w, r)
			return
		}
		state := states[r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]]
		if state == "" {
			state = "FINISHED"
		}
		containerState(state)(w, r)
	}
}

func TestCarousel(t *testing.T) {
	tests := map[string]struct {
		reason, earlier string
		states          map[string]string
		want            string
		// posts are the created containers: an image's address, or "=" and the parts of a carousel container.
		posts []string
		notes []string
	}{
		"new":             {"items are created and recorded first, then the parent", "", nil, "4", []string{"a", "b", "c", "=1,2,3"}, []string{"items:1", "items:1,2", "items:1,2,3"}},
		"after a crash":   {"existing items are used, and missing ones are created", "items:77,78", nil, "2", []string{"c", "=77,78,1"}, []string{"items:77,78,1"}},
		"all items exist": {"only the parent is created", "items:77,78,79", nil, "1", []string{"=77,78,79"}, nil},
		"one expired":     {"the expired container is recreated in its place", "items:77,78,79", map[string]string{"78": "EXPIRED"}, "2", []string{"b", "=77,1,79"}, []string{"items:77,1,79"}},
		"too many":        {"the items belong to another post", "items:76,77,78,79", nil, "4", []string{"a", "b", "c", "=1,2,3"}, []string{"items:1", "items:1,2", "items:1,2,3"}},
		"complete":        {"an existing parent needs no items", "77", nil, "77", nil, nil},
		"whole, lapsed":   {"an expired parent is created with new items", "77", map[string]string{"77": "EXPIRED"}, "4", []string{"a", "b", "c", "=1,2,3"}, []string{"items:1", "items:1,2", "items:1,2,3"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, carousels(tc.states))
			kept := &diary{}
			job := jobFor("hello", "", picture("a"), picture("b"), picture("c"))
			job.Checkpoint, job.StoreCheckpoint = tc.earlier, kept.save
			got, err := p.Prepare(t.Context(), job)
			if err != nil || got != tc.want {
				t.Fatalf("%s: got %q, %v", tc.reason, got, err)
			}
			if diff := cmp.Diff(tc.notes, kept.notes); diff != "" {
				t.Errorf("%s: checkpoints (-want +got):\n%s", tc.reason, diff)
			}
			var posts []string
			for _, r := range server.Requests() {
				if r.Method != http.MethodPost {
					continue
				}
				post := strings.TrimPrefix(r.Form.Get("image_url"), "https://store.example/")
				want := url.Values{"image_url": {r.Form.Get("image_url")}, "is_carousel_item": {"true"}}
				if post == "" {
					post = "=" + r.Form.Get("children")
					want = url.Values{"media_type": {"CAROUSEL"}, "children": {r.Form.Get("children")}, "caption": {"hello"}}
				}
				if diff := cmp.Diff(want, r.Form); diff != "" {
					t.Errorf("form (-want +got):\n%s", diff)
				}
				posts = append(posts, post)
			}
			if diff := cmp.Diff(tc.posts, posts); diff != "" {
				t.Errorf("%s: containers (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestCarouselNamesTheFile(t *testing.T) {
	refuse := func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseForm(); err != nil {
			t.Error(err)
		}
		problem(400, 36003, 2207009)(w, r)
	}
	p, _ := newInstagram(t, inTurn(answers{made("1"), refuse}))
	_, err := p.Prepare(t.Context(), jobFor("hello", "", picture("good.jpg"), picture("wide.jpg")))
	if err == nil || err.Class != platforms.ClassPermanent || !strings.Contains(err.Error(), `"wide.jpg"`) {
		t.Errorf("got %v, want the file's name", err)
	}
}

// TestCheckpointsMustBeStored makes storing a part's checkpoint fail. The preparation must not continue without it, because a later
// process would not know about the part.
func TestCheckpointsMustBeStored(t *testing.T) {
	for name, tc := range map[string]struct {
		job   platforms.Job
		asked int
	}{
		"carousel": {jobFor("", "", picture("a"), picture("b")), 1},
		"upload":   {jobFor("", linked, film("a.mp4")), 1},
		"reel":     {jobFor("", "", film("a.mp4")), 1},
	} {
		t.Run(name, func(t *testing.T) {
			p, server := newInstagram(t, made(container))
			tc.job.StoreCheckpoint = func(context.Context, string, string) error { return errors.New("no API server") }
			if got, err := p.Prepare(t.Context(), tc.job); got != "" || class(err) != platforms.ClassTransient || len(server.Requests()) != tc.asked {
				t.Errorf("got %q, %v after %v", got, err, server.Paths())
			}
		})
	}
}

func TestUnsendableFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		err   error
		class platforms.Class
	}{
		"changed": {platforms.ErrFileChanged, platforms.ClassPermanent},
		"away":    {errors.New("no store"), platforms.ClassTransient},
	} {
		for what, job := range map[string]platforms.Job{
			"image": jobFor("", "", picture("a.jpg")), "carousel": jobFor("", "", picture("a.jpg"), picture("b.jpg")),
			"reel": jobFor("", "", film("a.mp4")), "upload": jobFor("", linked, film("a.mp4")),
		} {
			t.Run(name+" "+what, func(t *testing.T) {
				p, _ := newInstagram(t, made(container))
				for i := range job.Content.Media {
					job.Content.Media[i].Bytes = bytes{err: tc.err}
				}
				if _, err := p.Prepare(t.Context(), job); class(err) != tc.class || !strings.Contains(err.Error(), "a.") {
					t.Errorf("got %v", err)
				}
			})
		}
	}
	p, server := newInstagram(t, hangUp)
	job := jobFor("hello", "", picture("a.jpg"))
	job.Content.Media = nil
	if _, err := p.Prepare(t.Context(), job); class(err) != platforms.ClassPermanent || len(server.Requests()) != 0 {
		t.Errorf("got %v, want an error for text posts", err)
	}
}

func TestPrepareTimesOut(t *testing.T) {
	server := recorder.Start(t, inTurn(answers{made(container), containerState("IN_PROGRESS")}))
	p := New(Config{Config: platforms.Config{APIURL: server.URL}}, transport.New(transport.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	job, kept := jobFor("hello", "", film("a.mp4")), &diary{}
	job.StoreCheckpoint = func(ctx context.Context, checkpoint, secret string) error {
		if err := kept.save(ctx, checkpoint, secret); err != nil || len(kept.notes) == 2 {
			cancel()
		}
		return nil
	}
	if _, err := p.Prepare(ctx, job); class(err) != platforms.ClassTransient {
		t.Errorf("got %v, want a temporary error", err)
	}
	// The checkpoint is stored after the creation and again at each poll, because the caller may drop checkpoints
	// that follow each other quickly.
	if diff := cmp.Diff([]string{container, container}, kept.notes); diff != "" {
		t.Errorf("checkpoints (-want +got):\n%s", diff)
	}
}
