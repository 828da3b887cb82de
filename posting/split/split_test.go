// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package split

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/realplatforms"
)

// forX returns the rules of a thread on X.
func forX(text string, most int) Rules {
	x, _ := realplatforms.All().Capabilities(v1alpha1.PlatformX)
	return Rules{Fits: func(part string) bool { return x.CaptionLength(part) <= x.MaxCaption }, Links: x.Display.Links(text), MaxParts: most}
}

// words returns a sentence of n characters, made of words of nine letters.
func words(n int) string {
	return strings.TrimSpace(strings.Repeat("Something ", n/10+1)[:n-1]) + "."
}

func TestText(t *testing.T) {
	t.Parallel()
	long, short := words(250), words(120)
	address := "https://example.com/" + strings.Repeat("a/", 200)
	tests := []struct {
		name, text string
		want       []string
	}{
		{"a text that fits is not split", short, []string{short}},
		{"blanks around the parts are dropped", "  " + short + "   \n " + long + " ", []string{short, long}},
		{"blank parts are dropped", " \n\n ", nil},
		{"paragraphs stay together, although another sentence would fit", short + "\n\n" + short + " " + short, []string{short, short + " " + short}},
		{"two paragraphs share a part where both fit", short + "\n\n" + short + "\n\n" + short, []string{short + "\n\n" + short, short}},
		{"paragraphs that fit together are not split", short + "\n\n" + short, []string{short + "\n\n" + short}},
		{"a line break is a border like the end of a sentence", short + "\n" + long, []string{short, long}},
		{"a line break alone does not start a paragraph", short + "\n" + short + " " + long, []string{short + "\n" + short, long}},
		{"sentences stay together", short + " " + long, []string{short, long}},
		{"words are not split", strings.Repeat("word ", 60), []string{strings.TrimSpace(strings.Repeat("word ", 56)), strings.TrimSpace(strings.Repeat("word ", 4))}},
		{"a heading shares a part with the beginning of a long sentence", "News\n\n" + strings.Repeat("word ", 60), []string{"News\n\n" + strings.TrimSpace(strings.Repeat("word ", 55)), strings.TrimSpace(strings.Repeat("word ", 5))}},
		{"a heading of a later part does too", words(276) + "\n\nNews\n\n" + strings.Repeat("word ", 60), []string{words(276), "News\n\n" + strings.TrimSpace(strings.Repeat("word ", 55)), strings.TrimSpace(strings.Repeat("word ", 5))}},
		{"a sentence of a quarter of a part stays whole", words(69) + " " + strings.Repeat("Word ", 60), []string{words(69), strings.TrimSpace(strings.Repeat("Word ", 56)), strings.TrimSpace(strings.Repeat("Word ", 4))}},
		{"a shorter one does not", words(68) + " " + strings.Repeat("Word ", 60), []string{words(68) + " " + strings.TrimSpace(strings.Repeat("Word ", 42)), strings.TrimSpace(strings.Repeat("Word ", 18))}},
		{"a quarter is measured from the start of the part", long + "\n\n" + words(100) + "\n\n" + long, []string{long, words(100), long}},
		{"a compound is not split at its hyphen", strings.Repeat("a ", 130) + "state-of-the-art-and-more", []string{strings.TrimSpace(strings.Repeat("a ", 130)), "state-of-the-art-and-more"}},
		{"a long word is split", strings.Repeat("a", 300), []string{strings.Repeat("a", 280), strings.Repeat("a", 20)}},
		{"a word before it is not too short to be a part", "see " + strings.Repeat("a", 300), []string{"see", strings.Repeat("a", 280), strings.Repeat("a", 20)}},
		{"a CJK radical is a word", "\u2e80" + strings.Repeat("a", 300), []string{"\u2e80", strings.Repeat("a", 280), strings.Repeat("a", 20)}},
		{"a URL counts 23 and is not split", strings.Repeat("a ", 128) + address, []string{strings.Repeat("a ", 128) + address}},
		{"an address that does not fit starts the next part", strings.Repeat("a ", 130) + address, []string{strings.TrimSpace(strings.Repeat("a ", 130)), address}},
		{"an emoji family counts 2 and is not split", strings.Repeat("a", 279) + "👨‍👩‍👧‍👦", []string{strings.Repeat("a", 279), "👨‍👩‍👧‍👦"}},
		{"a letter with its accents is not split", strings.Repeat("a", 279) + "e\u0323\u0302\u0302", []string{strings.Repeat("a", 279), "e\u0323\u0302\u0302"}},
		{"Japanese does not have blanks, and its characters count 2", strings.Repeat("日本語です。", 24), []string{strings.Repeat("日本語です。", 23), "日本語です。"}},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := Text(tc.text, forX(tc.text, 100))
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Error(err, diff)
			}
		})
	}
}

func TestTextIsLimited(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		rules      func(Rules) Rules
		want       error
	}{
		{"the maximum number of parts", strings.Repeat("a", 3*280), func(r Rules) Rules { return r }, nil},
		{"one part too many", strings.Repeat("a", 3*280+1), func(r Rules) Rules { return r }, ErrTooMany},
		{
			"an address counts in full on Threads, so a long one does not fit", "see https://example.com/" + strings.Repeat("a", 300),
			func(r Rules) Rules { r.Fits = func(part string) bool { return len(part) <= 280 }; return r }, ErrTooLarge,
		},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if _, err := Text(tc.text, tc.rules(forX(tc.text, 3))); !errors.Is(err, tc.want) {
				t.Errorf("got %v, want %v", err, tc.want)
			}
		})
	}
}

// TestTextBesideLinks verifies that a text may be divided before and after a link, even without a blank.
func TestTextBesideLinks(t *testing.T) {
	t.Parallel()
	rules := Rules{Fits: func(part string) bool { return len(part) <= 2 }, Links: []platforms.Link{{Start: 1, End: 3}, {Start: 3, End: 5}}, MaxParts: 4}
	got, err := Text("abcdef", rules)
	if diff := cmp.Diff([]string{"a", "bc", "de", "f"}, got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

// FuzzText verifies that each part fits, that the parts contain the text, and that they divide neither links nor
// clusters.
func FuzzText(f *testing.F) {
	for _, text := range []string{"", words(600), strings.Repeat("👨‍👩‍👧‍👦", 200), strings.Repeat("日本語example.com ", 40), "a\n\n\n" + strings.Repeat("#tag @ada ", 60), strings.Repeat("e\u0301", 400)} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		rules := forX(text, 1000)
		parts, err := Text(text, rules)
		if err != nil {
			return
		}
		at, ends := 0, clusterEnds(text)
		for _, part := range parts {
			if part == "" || !rules.Fits(part) {
				t.Fatalf("%q does not fit", part)
			}
			start := at + strings.Index(text[at:], part)
			if strings.TrimSpace(text[at:start]) != "" {
				t.Fatalf("%q is lost before %q", text[at:start], part)
			}
			at = start + len(part)
			if !slices.Contains(ends, at) {
				t.Fatalf("%q ends within a cluster", part)
			}
			if slices.ContainsFunc(rules.Links, func(l platforms.Link) bool { return l.Start < at && at < l.End }) {
				t.Fatalf("%q divides a link", part)
			}
		}
		if strings.TrimSpace(text[at:]) != "" {
			t.Fatalf("%q is lost at the end", text[at:])
		}
	})
}

func clusterEnds(text string) []int {
	var ends []int
	at, state := 0, -1
	for rest := text; rest != ""; {
		var cluster string
		cluster, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
		at += len(cluster)
		ends = append(ends, at)
	}
	return ends
}

// TestSections verifies how a writer divides a text.
func TestSections(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		want         []string
	}{
		"no divider": {"the text has one part", "one\n\ntwo", []string{"one\n\ntwo"}},
		"lines":      {"each line divides", "one\n---\ntwo\n\n---\n\nthree", []string{"one", "two", "three"}},
		"blanks":     {"editors add blanks and carriage returns", "one\r\n --- \r\ntwo", []string{"one", "two"}},
		"edges":      {"a part needs text", "---\none\n---\n---\ntwo\n---", []string{"one", "two"}},
		"in a line":  {"a dash in a sentence does not divide", "one --- two\n----\n--", []string{"one --- two\n----\n--"}},
		"empty text": {"the text has no parts", " \n", nil},
	} {
		if got := Sections(tc.text); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %s: %q", name, tc.reason, got)
		}
	}
}
