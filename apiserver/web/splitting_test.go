// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
)

// tooLong has two sentences. Each fits on X.
var tooLong = strings.Repeat("word ", 40) + "end. " + strings.Repeat("More ", 30) + "end."

func (w *world) submit(tb testing.TB, form url.Values) (int, *html.Node) {
	tb.Helper()
	answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form))
	return answer.Code, parsed(tb, answer.Body.String())
}

func formOf(tb testing.TB, page *html.Node) url.Values {
	tb.Helper()
	return sent(withID(tb, page, "compose"))
}

// TestSplitOffer verifies when the composer offers to split a text.
func TestSplitOffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, caption string
		targets       []string
		want          []string
	}{
		{"a text that fits", "a", []string{"our-x"}, nil},
		{"a text that is too long", tooLong, []string{"our-x"}, []string{"too long for X (359 of 280)", "Split into a thread of 2 parts"}},
		{"a text with dividers", "a\n---\nb\n---\nc", []string{"our-x"}, []string{"Lines of --- divide the text", "Split into a thread of 3 parts"}},
		{"dividers on platforms without threads", "a\n---\nb", []string{"our-instagram"}, nil},
		{"too many dividers", strings.Repeat("a\n---\n", 101), []string{"our-x"}, []string{"The text is too long for a thread on X."}},
		{"the text fits on Threads", tooLong, []string{"our-threads"}, nil},
		{"Instagram does not have threads", tooLong, []string{"our-instagram"}, nil},
		{"other platforms do not accept threads", tooLong, []string{"our-x", "our-facebook", "our-instagram"}, []string{"Facebook, Instagram: no threads"}},
		{"longer than any post", strings.Repeat(" ", 300<<10) + tooLong, []string{"our-x"}, []string{"The text is too long for a thread on X."}},
		{"too long even for a thread", strings.Repeat(tooLong, 70), []string{"our-x"}, []string{"The text is too long for a thread on X."}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			form := url.Values{"category": {"text"}, "caption": {tc.caption}, "target": tc.targets}
			answer := parsed(t, w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", form)).Body.String())
			offer := textOf(withID(t, answer, splitID))
			says(t, tc.name, offer, tc.want, nil)
			if len(tc.want) == 0 && offer != "" {
				t.Errorf("got %q", offer)
			}
		})
	}
}

// TestSplit verifies that splitting divides the text and moves the files, and that undoing it restores the form.
func TestSplit(t *testing.T) {
	t.Parallel()
	first, second, _ := strings.Cut(tooLong, ". ")
	first += "."
	tests := []struct {
		name string
		form url.Values
		want url.Values
	}{
		{"a text", url.Values{"category": {"text"}, "caption": {tooLong}}, url.Values{"card-0": {first}, "card-1": {second}}},
		{"a divided text with one long part", url.Values{"category": {"text"}, "caption": {"Hello\r\n---\r\n" + tooLong}}, url.Values{"card-0": {"Hello"}, "card-1": {first}, "card-2": {second}}},
		{"the text of the account that needs it", url.Values{"category": {"text"}, "caption": {"short"}, "own-our-x": {tooLong}}, url.Values{"card-0": {first}, "card-1": {second}}},
		{"images belong to the first part", url.Values{"category": {"image"}, "caption": {tooLong}, "image": {"m-1", "m-2"}, "alt-image-m-2": {"A rocket"}}, url.Values{"card-0": {first}, "card-1": {second}, "media-0": {"m-1", "m-2"}, "alt-media-0-m-1": {""}, "alt-media-0-m-2": {"A rocket"}}},
		{"a video fits into one part", url.Values{"category": {"video"}, "caption": {tooLong}, "video": {"m-1"}}, url.Values{"card-0": {first}, "card-1": {second}, "media-0": {"m-1"}, "alt-media-0-m-1": {""}}},
		{
			"existing parts are replaced, and can be restored",
			url.Values{"category": {"text"}, "caption": {tooLong}, "cards": {"3"}, "card-0": {"one"}, "card-2": {"three"}, "media-2": {"m-1"}, "alt-media-2-m-1": {"A map"}},
			url.Values{"card-0": {first}, "card-1": {second}},
		},
		{"without a time", url.Values{"category": {"text"}, "caption": {tooLong}, "when": {"later"}}, url.Values{"card-0": {first}, "card-1": {second}}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			for _, name := range []string{"m-1", "m-2"} {
				w.upload(name)
			}
			tc.form.Set("target", "our-x")
			tc.form.Set("do", "split")
			code, page := w.submit(t, tc.form)
			got := formOf(t, page)
			if code != http.StatusOK || got.Get("category") != "tree" || w.written() > 0 {
				t.Fatalf("%d, %v, %d writes", code, got, w.written())
			}
			parts, cards := url.Values{}, 0
			for name := range tc.want {
				if strings.HasPrefix(name, "card-") {
					cards++
				}
			}
			for name, values := range got {
				if strings.HasPrefix(name, "card-") || strings.HasPrefix(name, "media-") || strings.HasPrefix(name, "alt-media-") {
					parts[name] = values
				}
			}
			if diff := cmp.Diff(tc.want, parts); diff != "" {
				t.Error(diff)
			}
			says(t, tc.name, textOf(page), []string{"The text is now a thread of " + plural(cards, "part") + ".", "Undo"}, nil)

			got.Set("card-1", "changed since")
			got.Set("do", "unsplit")
			_, page = w.submit(t, got)
			back := formOf(t, page)
			for name, values := range tc.form {
				if name != "do" && name != "when" && cmp.Diff(values, back[name]) != "" {
					t.Errorf("%s is %q, was %q", name, back[name], values)
				}
			}
			if tc.form.Get("card-0") == "" && back.Get("card-0") != "" || back.Has("before") {
				t.Errorf("part of the thread remains: %v", back)
			}
		})
	}
}

// TestSplitIsRefused verifies that a form that cannot be split is shown again, unchanged, with the reason.
func TestSplitIsRefused(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		form url.Values
		want string
	}{
		{"a text that fits", url.Values{"category": {"text"}, "caption": {"a"}, "target": {"our-x"}, "do": {"split"}}, "there is nothing to split"},
		{"a text without an account", url.Values{"category": {"text"}, "caption": {tooLong}, "do": {"split"}}, "there is nothing to split"},
		{"too many parts", url.Values{"category": {"text"}, "caption": {strings.Repeat(tooLong, 70)}, "target": {"our-x"}, "do": {"split"}}, "too long for a thread"},
		{"forged data to restore", url.Values{"category": {"tree"}, "card-0": {"a"}, "before": {`{"kind":"poll"}`}, "target": {"our-x"}, "do": {"unsplit"}}, ""},
		{"no data to restore", url.Values{"category": {"tree"}, "card-0": {"a"}, "target": {"our-x"}, "do": {"unsplit"}}, ""},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			_, page := w.submit(t, tc.form)
			says(t, tc.name, textOf(page), []string{tc.want}, nil)
			if back := formOf(t, page); back.Get("category") != tc.form.Get("category") || back.Get("card-0") != tc.form.Get("card-0") || w.written() > 0 {
				t.Errorf("the form has changed: %v", back)
			}
		})
	}
}

// TestSplitWithoutScript verifies that a form that was refused because of its length offers the split.
func TestSplitWithoutScript(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	code, page := w.submit(t, url.Values{"category": {"text"}, "caption": {tooLong}, "target": {"our-x"}, "when": {"now"}})
	if code != http.StatusBadRequest {
		t.Fatal(code)
	}
	says(t, "the page offers the split again", textOf(withID(t, page, splitID)), []string{"Split into a thread of 2 parts"}, nil)
}

// TestSplitOfEditedPost verifies that a stored draft can be split, and that a scheduled post's kind does not change.
func TestSplitOfEditedPost(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		edit   func(*v1alpha1.Post)
		want   string
	}{
		"draft":     {"its kind can be changed", asDraft, "tree"},
		"scheduled": {"the post was validated as a thread", asScheduled, "text"},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		w.put(textPost("p-1", tooLong, tc.edit))
		page := w.get(t, editor, "/teams/"+acme+"/posts/p-1/edit")
		if got := strings.Contains(textOf(page), "Split into"); got != (tc.want == "tree") {
			t.Errorf("%s: %s: offered: %t", name, tc.reason, got)
		}
		address, _ := attribute(withID(t, page, "check"), "hx-post")
		checked := w.serve(newRequest(&editor, address, formOf(t, page)))
		if got := strings.Contains(checked.Body.String(), "Split into"); got != (tc.want == "tree") {
			t.Errorf("%s: %s: the page offers a split while the post is being written: %t", name, tc.reason, got)
		}
		form := with(formOf(t, page), "do", "split")
		answer := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/p-1/edit", form))
		if got := formOf(t, parsed(t, answer.Body.String())); got.Get("category") != tc.want || w.written() > 0 {
			t.Errorf("%s: %s: %v, %d writes", name, tc.reason, got, w.written())
		}
	}
}
