// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
)

// countedFiles counts file reads and signatures. It signs a different URL each time.
type countedFiles struct {
	mediaOf
	store

	mu           sync.Mutex
	reads, signs int
}

func (c *countedFiles) Get(ctx context.Context, namespace, name string) (*v1alpha1.Media, error) {
	c.mu.Lock()
	c.reads++
	c.mu.Unlock()
	return c.mediaOf.Get(ctx, namespace, name)
}

func (c *countedFiles) PresignGet(_ context.Context, key string, _ time.Duration) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.signs++
	return fmt.Sprintf("https://store.example/%s?signature=%d", key, c.signs), nil
}

// upload stores an uploaded file.
func (w *world) upload(name string, edits ...func(*v1alpha1.Media)) {
	media := &v1alpha1.Media{
		ObjectMeta: metav1.ObjectMeta{Namespace: acme, Name: name, UID: types.UID("uid-" + name)},
		Spec:       v1alpha1.MediaSpec{FileName: name + ".png", MimeType: v1alpha1.MimePNG, SizeBytes: 1000},
		Status:     v1alpha1.MediaStatus{Phase: v1alpha1.MediaUploaded},
	}
	for _, edit := range edits {
		edit(media)
	}
	w.media[acme+"/"+name] = media
}

// withCountedFiles counts how often a world accesses files.
func withCountedFiles(w *world) *countedFiles {
	files := &countedFiles{mediaOf: mediaOf{w.cluster}}
	w.site.Service.Media, w.site.Service.Files = files, files
	return files
}

// images returns the URLs of a page's file previews.
func images(page *html.Node) (found []string) {
	for _, img := range elements(page, "img") {
		if class, _ := attribute(img, "class"); class == "thumb" {
			source, _ := attribute(img, "src")
			found = append(found, source)
		}
	}
	return found
}

// TestPreviewOnLaterPlatforms verifies the frame and the length of a text on platforms that version 1 of the API does not
// have.
func TestPreviewOnLaterPlatforms(t *testing.T) {
	t.Parallel()
	const flag = "\U0001F1E9\U0001F1EA"
	tests := []struct {
		name, account, caption string
		count, class, label    string
		problem                string
	}{
		{"the longest text on Bluesky", "our-bluesky", strings.Repeat("a", 300), "300 of 300 characters", "count near", "Bluesky, Account our-bluesky", ""},
		{"a flag counts one on Bluesky", "our-bluesky", flag, "1 of 300 characters as Bluesky counts them", "count", "Bluesky, Account our-bluesky", ""},
		{"a longer text is a problem on Bluesky", "our-bluesky", strings.Repeat("a", 301), "301 of 300 characters", "count over", "Bluesky, Account our-bluesky", "Bluesky, which accepts at most 300"},
		{"the longest text on Mastodon", "our-mastodon", strings.Repeat("a", 500), "500 of 500 characters", "count near", "Mastodon, Account our-mastodon", ""},
		{"a longer text is a problem on Mastodon", "our-mastodon", strings.Repeat("a", 501), "501 of 500 characters", "count over", "Mastodon, Account our-mastodon", "Mastodon, which accepts at most 500"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			page := newWorld(clocktesting.NewFakeClock(now)).preview(t, tc.account, tc.caption)
			meter, frame := "", ""
			for _, n := range elements(page, "output") {
				if id, _ := attribute(n, "id"); id == "count-"+tc.account {
					class, _ := attribute(n, "class")
					meter = class + ": " + textOf(n)
				}
			}
			for _, n := range elements(page, "section") {
				if id, _ := attribute(n, "id"); id == "mock-"+tc.account {
					class, _ := attribute(n, "class")
					label, _ := attribute(n, "aria-label")
					frame = class + ": " + label
					says(t, tc.name, textOf(n), []string{tc.caption, tc.problem}, nil)
				}
			}
			want := []string{tc.class + ": " + tc.count, "mock on-" + strings.TrimPrefix(tc.account, "our-") + ": " + tc.label}
			if diff := cmp.Diff(want, []string{meter, frame}); diff != "" {
				t.Errorf("the length and the frame (-want +got):\n%s", diff)
			}
		})
	}
}

// TestPreviewReadsOnce verifies that a preview reads each file once, however many accounts there are, and that the next
// preview uses the URL that the browser has already loaded.
func TestPreviewReadsOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	files := withCountedFiles(w)
	form := url.Values{"category": {"image"}, "caption": {"a"}}
	for i := range 3 {
		name := fmt.Sprint("m-", i)
		w.upload(name)
		form.Add("image", name)
	}
	for _, platform := range v1alpha1.Platforms() {
		form.Add("target", "our-"+string(platform))
	}
	check := func() []string {
		t.Helper()
		answer := w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", form))
		if answer.Code != http.StatusOK {
			t.Fatal(answer.Code)
		}
		return images(parsed(t, answer.Body.String()))
	}
	first := check()
	if files.reads != 3 || files.signs != 3 || len(first) < 3*4 {
		t.Errorf("three files for six accounts are read %d times and signed %d times, and shown %d times", files.reads, files.signs, len(first))
	}
	if again := check(); strings.Join(again, " ") != strings.Join(first, " ") || files.signs != 3 {
		t.Errorf("a repeated preview has other URLs: %q, then %q", first, again)
	}
}

// TestPreviewOfVideo verifies that a video property that a platform rejects prevents publishing, and that one that it
// may reject only causes a warning.
func TestPreviewOfVideo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason  string
		change  func(*v1alpha1.MediaStatus)
		convert bool
		want    []string
		not     string
	}{
		"a fitting video":   {"the video is accepted", func(*v1alpha1.MediaStatus) {}, false, nil, "a platform may refuse it"},
		"a long video":      {"X accepts it from some accounts only", func(s *v1alpha1.MediaStatus) { s.DurationMillis = 200_000 }, false, []string{"a platform may refuse it", "plays for 3 min 20 s; an ordinary account of X accepts at most 2 min 20 s"}, "Before it can be published"},
		"a longer video":    {"X does not accept it", func(s *v1alpha1.MediaStatus) { s.DurationMillis = 10_000_000 }, false, []string{"Before it can be published", "X accepts at most 2 h 5 min"}, "a platform may refuse it"},
		"a large video":     {"the size is named", func(s *v1alpha1.MediaStatus) { s.Width, s.Height = 3840, 2160 }, false, []string{"Before it can be published", "has 3840 × 2160 pixels; X accepts at most 1920 on each side"}, "a platform may refuse it"},
		"a converted video": {"the team converts videos", func(s *v1alpha1.MediaStatus) { s.Width, s.Height = 3840, 2160 }, true, nil, "pixels"},
		"HEVC":              {"X's documentation does not mention it", func(s *v1alpha1.MediaStatus) { s.VideoCodec = "hevc" }, false, []string{"a platform may refuse it", "is encoded as hevc"}, "Before it can be published"},
		"HEVC converted":    {"the file is verified", func(s *v1alpha1.MediaStatus) { s.VideoCodec = "hevc" }, true, nil, "a platform may refuse it"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.teams[0].Spec.Media.Convert = tc.convert
			w.upload("film", func(m *v1alpha1.Media) {
				m.Spec.MimeType = v1alpha1.MimeMP4
				m.Status.SizeBytes, m.Status.Width, m.Status.Height, m.Status.DurationMillis = 1000, 720, 1280, 10_000
				tc.change(&m.Status)
			})
			answer := w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", url.Values{"category": {"video"}, "caption": {"a"}, "video": {"film"}, "target": {"our-x"}}))
			says(t, tc.reason, answer.Body.String(), tc.want, []string{tc.not})
		})
	}
}

// TestPreviewIsBounded verifies that a preview shows no more files than the platform, and a page no more than
// maxPictures.
func TestPreviewIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	withCountedFiles(w)
	image := url.Values{"category": {"image"}, "caption": {"a"}, "target": {"our-x"}}
	thread := url.Values{"category": {"tree"}, "cards": {"100"}}
	for _, platform := range v1alpha1.Platforms() {
		thread.Add("target", "our-"+string(platform))
	}
	for i := range 10 {
		name := fmt.Sprint("m-", i)
		w.upload(name)
		image.Add("image", name)
		for part := range 100 {
			thread.Add(fmt.Sprint("media-", part), name)
		}
	}
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", image))
	if page := parsed(t, answer.Body.String()); len(images(page)) != 4 || !strings.Contains(textOf(page), "and 6 more files") {
		t.Errorf("X shows four pictures, and its preview %d", len(images(page)))
	}
	answer = w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", thread))
	if shown := len(images(parsed(t, answer.Body.String()))); shown != maxPictures {
		t.Errorf("the preview of a thread shows %d pictures, want %d", shown, maxPictures)
	}
}

// TestChecksAreBounded verifies that a user who exceeds the limit gets a notice instead of the preview, that others
// are not affected, and that the preview returns.
func TestChecksAreBounded(t *testing.T) {
	t.Parallel()
	clk := clocktesting.NewFakeClock(now)
	w := newWorld(clk)
	check := func(who access.Person, htmx string) (int, string) {
		r := newRequest(&who, "/teams/"+acme+"/compose/check", url.Values{"category": {"text"}, "caption": {"a"}, "target": {"our-x"}})
		r.Header.Set("HX-Request", htmx)
		answer := w.serve(r)
		return answer.Code, answer.Body.String()
	}
	for i := range checksPerMinute {
		if code, text := check(editor, "true"); code != http.StatusOK || !strings.Contains(text, "mock") {
			t.Fatalf("check %d: %d", i, code)
		}
	}
	if code, text := check(editor, "true"); code != http.StatusOK || strings.Contains(text, "mock") || !strings.Contains(text, "Your text is still here") {
		t.Errorf("a preview above the limit, which htmx has to show: %d, %s", code, text)
	}
	if code, _ := check(editor, ""); code != http.StatusTooManyRequests {
		t.Errorf("one too many of a program: %d", code)
	}
	if _, text := check(administrator, "true"); !strings.Contains(text, "mock") {
		t.Error("another user is limited too")
	}
	clk.Step(time.Second)
	if _, text := check(editor, "true"); !strings.Contains(text, "mock") {
		t.Error("the limit did not reset")
	}
}

// TestCheckOfEditor verifies that the edit page requires permission to update, not to create.
func TestCheckOfEditor(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.put(textPost("p-1", "text", asDraft))
	for page, want := range map[string]string{"posts/new": "compose/check", "posts/p-1/edit": "posts/p-1/check?draft"} {
		at, _ := attribute(withID(t, w.get(t, editor, "/teams/"+acme+"/"+page), "check"), "hx-post")
		if at != "/teams/"+acme+"/"+want {
			t.Errorf("%s is checked at %s", page, at)
		}
	}
}

// writers may write posts but not upload files.
type writers struct{ roles }

func (r writers) May(ctx context.Context, who access.Person, namespace, verb, resource string, name ...string) (bool, error) {
	if resource == "media" {
		return false, nil
	}
	return r.roles.May(ctx, who, namespace, verb, resource, name...)
}

// TestThreatUploadAddresses verifies that only people who may create files get upload URLs, because with one, a file
// can be replaced until it is verified.
func TestThreatUploadAddresses(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(*Config){
		"Roles": func(*Config) {}, "WritersWithoutFiles": func(c *Config) { of, _ := c.Access.(roles); c.Access = writers{of} },
	} {
		w := newWorld(clocktesting.NewFakeClock(now), edit)
		w.upload("m-1", func(m *v1alpha1.Media) {
			m.Status.Phase, m.Status.UploadURL = v1alpha1.MediaPending, "https://store.example/upload-here"
		})
		w.put(textPost("p-1", "text", asDraft, func(post *v1alpha1.Post) {
			post.Spec.Category, post.Spec.Image = v1alpha1.CategoryImage, &v1alpha1.ImageContent{MediaRefs: references([]string{"m-1"})}
		}))
		who := []access.Person{viewer, editor}
		for _, p := range who {
			for _, path := range append([]string{"posts/p-1/events"}, pages...) {
				r := newRequest(&p, "/teams/"+acme+"/"+path, nil)
				ctx, cancel := context.WithCancel(r.Context())
				cancel() // ends the stream after its first event
				if body := w.serve(r.WithContext(ctx)).Body.String(); strings.Contains(body, "upload-here") || strings.Contains(body, "?put") {
					t.Errorf("%s: %s has an upload URL for %s", name, path, p.Name)
				}
			}
			form := url.Values{"category": {"image"}, "image": {"m-1"}, "target": {"our-x"}}
			if body := w.serve(newRequest(&p, "/teams/"+acme+"/compose/check", form)).Body.String(); strings.Contains(body, "upload-here") || strings.Contains(body, "?put") {
				t.Errorf("%s: a preview has an upload URL for %s", name, p.Name)
			}
		}
		if name == "Roles" {
			continue
		}
		if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/media", url.Values{})); answer.Code != http.StatusForbidden || len(w.media) != 1 {
			t.Errorf("a user who may write posts but not upload got %d", answer.Code)
		}
		if page := w.get(t, editor, "/teams/"+acme+"/posts/new"); !strings.Contains(textOf(page), "You are not allowed to upload files for this team") {
			t.Error("a page offers a forbidden action")
		}
	}
}

// slowAccess delays each response by a second.
type slowAccess struct{ roles }

func (r slowAccess) May(ctx context.Context, who access.Person, namespace, verb, resource string, name ...string) (bool, error) {
	time.Sleep(time.Second) //nolint:forbidigo // in a bubble of synctest
	return r.roles.May(ctx, who, namespace, verb, resource, name...)
}

// TestPermissionsAreCheckedConcurrently verifies that a page checks its permissions concurrently.
func TestPermissionsAreCheckedConcurrently(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(clock.RealClock{}, func(c *Config) { of, _ := c.Access.(roles); c.Access = slowAccess{of} })
		begun := time.Now()
		if answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts", nil)); answer.Code != http.StatusOK {
			t.Fatal(answer.Code)
		}
		if took := time.Since(begun); took > 2*time.Second { // for the page's actions, and for the page itself
			t.Errorf("a page waits %s for probes of a second each", took)
		}
	})
}
