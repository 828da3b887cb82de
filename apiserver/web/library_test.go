// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// libraryWorld has a picture, a large picture, a video and another team's file, in order of age.
func libraryWorld() *world {
	w := newWorld(clocktesting.NewFakeClock(now))
	w.upload("new", func(m *v1alpha1.Media) {
		m.CreationTimestamp, m.Status.SizeBytes, m.Status.Width, m.Status.Height = metav1.NewTime(now), 1000, 40, 30
	})
	w.upload("large", func(m *v1alpha1.Media) {
		m.CreationTimestamp, m.Status.SizeBytes = metav1.NewTime(now.Add(-time.Hour)), 9<<20
	})
	w.upload("film", func(m *v1alpha1.Media) {
		m.CreationTimestamp, m.Spec.MimeType, m.Spec.FileName, m.Status.DurationMillis = metav1.NewTime(now.Add(-2*time.Hour)), v1alpha1.MimeMP4, "film.mp4", 65_400
	})
	w.upload("theirs", func(m *v1alpha1.Media) { m.Namespace = beta })
	return w
}

// valuesOf returns the values of the inputs of this name and type.
func valuesOf(page *html.Node, kind, name string) (values []string) {
	for _, input := range elements(page, "input") {
		value := func(name string) string { got, _ := attribute(input, name); return got }
		if value("type") == kind && value("name") == name {
			values = append(values, value("value"))
		}
	}
	return values
}

// TestLibrary verifies which of the team's files a page offers.
func TestLibrary(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, path, kind string
		want, says         []string
	}{
		"the page":         {"all of the team's files, and no other files", "files", "checkbox", []string{"new", "large", "film"}, []string{"40 × 30", "1:05", "Use in a new post"}},
		"a search":         {"the search is by name", "files?q=LARGE", "checkbox", []string{"large"}, nil},
		"no file found":    {"the page reports it", "files?q=nothing", "checkbox", nil, []string{"No files"}},
		"a second page":    {"the team has fewer files than a page", "files?page=2", "checkbox", nil, nil},
		"for pictures":     {"the dialog for an image field", "files/list?types=image/png", "checkbox", []string{"new", "large"}, nil},
		"for one video":    {"a video post has one file", "files/list?types=video/mp4&one=1", "radio", []string{"film"}, nil},
		"for another type": {"the page reports an empty list", "files/list?types=image/webp", "checkbox", nil, []string{"No file fits."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := libraryWorld().get(t, editor, "/teams/"+acme+"/"+tc.path)
			if diff := cmp.Diff(tc.want, valuesOf(page, tc.kind, "file")); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, word := range tc.says {
				if !strings.Contains(textOf(page), word) {
					t.Errorf("%s: the page lacks %q", tc.reason, word)
				}
			}
		})
	}
}

// TestPostOfFiles verifies the kind of the post that a user starts with files.
func TestPostOfFiles(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, query, kind, field string }{
		"a picture":      {"images make an image post", "file=new", "image", "image"},
		"two pictures":   {"the list's order is kept", "file=new&file=large", "image", "image"},
		"a film":         {"a video makes a video post", "file=film", "video", "video"},
		"both":           {"only a card can contain both", "file=new&file=film", "tree", "media-0"},
		"a deleted file": {"the other files remain", "file=new&file=gone", "image", "image"},
		"no valid file":  {"the form is empty", "file=gone", "text", "image"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := libraryWorld().get(t, editor, "/teams/"+acme+"/posts/new?"+tc.query)
			query, _ := url.ParseQuery(tc.query)
			var want []string
			for _, file := range query["file"] {
				if file != "gone" {
					want = append(want, file)
				}
			}
			if diff := cmp.Diff(want, valuesOf(page, "hidden", tc.field)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, radio := range elements(page, "input") {
				id, _ := attribute(radio, "id")
				if _, checked := attribute(radio, "checked"); checked && strings.HasPrefix(id, "category-") && id != "category-"+tc.kind {
					t.Errorf("%s: %s is chosen", tc.reason, id)
				}
			}
		})
	}
}

// TestFilesWithoutScripts verifies that the form's button lists the team's files in it, and keeps what was entered.
func TestFilesWithoutScripts(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, kind, field, input string
		want                       []string
	}{
		"pictures": {"files that are not in the post yet", "image", "image", "checkbox", []string{"new"}},
		"video":    {"a post has one video", "video", "video", "radio", []string{"film"}},
		"a part":   {"each part lists the files", "tree", "media-1", "checkbox", []string{"new", "large", "film"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := libraryWorld()
			form := url.Values{"category": {tc.kind}, "do": {"library"}, "caption": {"Kept"}, "image": {"large"}, "cards": {"2"}}
			answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form))
			page := parsed(t, answer.Body.String())
			if diff := cmp.Diff(tc.want, valuesOf(page, tc.input, tc.field)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if got := valuesOf(page, "hidden", "image"); !cmp.Equal(got, []string{"large"}) || !strings.Contains(textOf(page), "Kept") {
				t.Errorf("%s: the form lost the input: %v", tc.reason, got)
			}
			if w.written() != 0 {
				t.Errorf("%s: the request stored a file", tc.reason)
			}
		})
	}
}
