// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package counting

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/must"
)

// page is the documentation of caption length counting.
const page = "../../docs/captions.md"

// rows returns the page's limits, by heading and first column.
func rows(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile(page)
	must.Succeed(t, err)
	found, heading := map[string]string{}, ""
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			heading = name
		}
		if cells := strings.Split(line, " | "); len(cells) == 4 {
			found[heading+": "+strings.TrimPrefix(cells[0], "| ")] = cells[1]
		}
	}
	return found
}

// TestPage compares the page's tables with the platforms' capabilities: a text at the documented limit is accepted, and
// a longer one is rejected.
func TestPage(t *testing.T) {
	said := rows(t)
	limits := declared()
	caption := func(platform v1alpha1.Platform, one string) func(n int) bool {
		l := limits[platform]
		return func(n int) bool {
			return takes(l.MaxCaption, l.CaptionLength, l.CaptionProblem, strings.Repeat(one, n))
		}
	}
	youtube := limits[v1alpha1.PlatformYouTube]
	for row, tc := range map[string]struct {
		reason string
		takes  func(n int) bool
		// of is the number of units in a piece of the text.
		of int
	}{
		"X: text":                   {"kanji weigh two", caption(v1alpha1.PlatformX, "漢"), 2},
		"X: U+FEFF, U+FFFE, U+FFFF": {"none is taken", func(n int) bool { return caption(v1alpha1.PlatformX, "\ufeff")(n) }, 1},
		"Threads: text":             {"a letter with its mark counts one", caption(v1alpha1.PlatformThreads, "e\u0301"), 1},
		"Threads: links":            {"different addresses count", func(n int) bool { return caption(v1alpha1.PlatformThreads, addresses(n))(1) }, 1},
		"Instagram: text":           {"an emoji of one code point counts one", caption(v1alpha1.PlatformInstagram, "🎉"), 1},
		"Instagram: hashtags":       {"each sign with a word counts", caption(v1alpha1.PlatformInstagram, "#a "), 1},
		"Instagram: mentions":       {"each name counts", caption(v1alpha1.PlatformInstagram, "@a "), 1},
		"TikTok: text":              {"an emoji counts two", caption(v1alpha1.PlatformTikTok, "🎉"), 2},
		"YouTube: description":      {"kanji have three bytes, and these two have one each", caption(v1alpha1.PlatformYouTube, "ab"), 2},
		"YouTube: title":            {"an emoji counts two", title(&youtube, "🎉"), 2},
		"YouTube: `<` and `>`":      {"none is taken", caption(v1alpha1.PlatformYouTube, "<"), 1},
	} {
		most, err := strconv.Atoi(strings.ReplaceAll(said[row], ",", ""))
		if err != nil {
			t.Errorf("%s: the page has no number: %q", row, said[row])
			continue
		}
		if n := most / tc.of; !tc.takes(n) || tc.takes(n+1) {
			t.Errorf("%s: the page says %d (%s), of which the platform takes %d pieces: %t, and one more: %t", row, most, tc.reason, n, tc.takes(n), tc.takes(n+1))
		}
		delete(said, row)
	}
	delete(said, "Facebook: text") // it has no limit
	for row := range said {
		if said[row] != "at most" && said[row] != "---" {
			t.Errorf("the page has a row that nothing holds: %s, %s", row, said[row])
		}
	}
}

// takes reports whether a text is within the limit and otherwise valid.
func takes(most int, length func(string) int, problem func(string) string, text string) bool {
	return length(text) <= most && (problem == nil || problem(text) == "")
}

func title(limits *platforms.Capabilities, one string) func(n int) bool {
	return func(n int) bool {
		return takes(limits.MaxTitle, limits.TitleLength, limits.TitleProblem, strings.Repeat(one, n))
	}
}

// addresses returns n different URLs.
func addresses(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString("https://example.com/" + strconv.Itoa(i) + " ")
	}
	return b.String()
}
