// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/sandbox/state"
)

func TestWeigh(t *testing.T) {
	tests := []struct {
		name, text string
		want       int
	}{
		{"empty", "", 0},
		{"ASCII", "abc", 3},
		{"Latin with accents", "äé", 2},
		{"composed first: e and its accent are one", "e\u0301", 1},
		{"Georgian, the last light range", "\u10ff", 1},
		{"the first heavy character", "\u1100", 2},
		{"punctuation of the light ranges", "\u2000\u200d\u2010\u201f\u2032\u2037", 6},
		{"between the light ranges", "\u200e\u200f\u2020\u2031\u2038", 10},
		{"Japanese", "日本", 4},
		{"emoji", "😀", 2},
		{"emoji with a skin tone", "👍🏽", 2},
		{"family of four", "👨‍👩‍👧‍👦", 2},
		{"flag", "🇩🇪", 2},
		{"two flags", "🇩🇪🇫🇷", 4},
		{"half a flag", "🇩", 2},
		{"keycap", "1️⃣", 2},
		{"a digit is not a keycap", "1", 1},
		{"heart in emoji style", "❤️", 2},
		{"heart in text style", "❤\ufe0e", 4},
		{"copyright sign", "©", 2},
		{"address", "https://example.com/" + strings.Repeat("a", 100), 23},
		{"short address", "http://a.de", 23},
		{"bare domain", "see example.com", 27},
		{"two addresses", "https://a.com https://b.com", 47},
		{"address in Japanese", "日https://example.com日", 27},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := weigh(tt.text); got != tt.want {
				t.Errorf("weigh(%q) = %d, want %d", tt.text, got, tt.want)
			}
		})
	}
}

func TestFindLinks(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"no link", "a. b. c", nil},
		{"at the end of a sentence", "Go to https://example.com/path.", []string{"https://example.com/path"}},
		{"in parentheses", "(https://example.com/path)", []string{"https://example.com/path"}},
		{"with parentheses", "https://example.com/a_(b)", []string{"https://example.com/a_(b)"}},
		{"with nested parentheses", "https://example.com/(a(b)c)", []string{"https://example.com/(a(b)c)"}},
		{"query and fragment", "https://example.com/a?b=c&d=e#f!", []string{"https://example.com/a?b=c&d=e#f"}},
		{"port", "http://example.com:8080/", []string{"http://example.com:8080/"}},
		{"port without a number", "http://example.com: a", []string{"http://example.com"}},
		{"upper-case scheme", "HTTPS://EXAMPLE.COM", []string{"HTTPS://EXAMPLE.COM"}},
		{"another scheme", "ftp://example.com", nil},
		{"file names", "main.go and node.js", nil},
		{"a country-code domain", "README.md", []string{"README.md"}},
		{"mail address", "me@example.com", nil},
		{"mail address that starts like a domain", "a.com@example.com", nil},
		{"after a slash", "/example.com", nil},
		{"after a dollar sign", "$example.com", nil},
		{"underscore in the domain", "http://a_b.com", nil},
		{"hyphen at the end of a label", "http://a-.com", nil},
		{"two dots", "http://a..com", nil},
		{"unknown top-level domain", "http://example.invalidtld", nil},
		{"the longest top-level domain", "http://example.com.invalidtld", []string{"http://example.com"}},
		{"followed by Japanese", "example.comです", []string{"example.com"}},
		{"two in a row", "a.com,b.com", []string{"a.com", "b.com"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, l := range findLinks(tt.text) {
				got = append(got, tt.text[l.start:l.end])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.text, diff)
			}
		})
	}
}

func TestSnowflake(t *testing.T) {
	at := state.Stamp{Milli: epochMilli + 1, Serial: 2}
	if got := newID(at); got != "4194306" {
		t.Errorf("newID = %s, want (1 << 22) + 2", got)
	}
	if got, ok := stampOf("4194306"); !ok || got != at {
		t.Errorf("stampOf = %v, %v, want %v", got, ok, at)
	}
	for _, bad := range []string{"", "-1", "a", "99999999999999999999"} {
		if got, ok := stampOf(bad); ok {
			t.Errorf("stampOf(%q) = %v, want an error", bad, got)
		}
	}
}

// FuzzRender checks, for any text, that the reported positions are those of the short links and that no < or > is left
// unescaped.
func FuzzRender(f *testing.F) {
	for _, seed := range []string{
		"", "https://example.com/a(b)?c=d#e", "a.com é日 <b>.de & x.みんな", "(http://a.b.co.uk:80/(x(y)z)) 👨‍👩‍👧", "ELPAÍS.com t.co/a https://t.co/b?c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if !utf8.ValidString(text) {
			t.Skip("the body of a request is UTF-8")
		}
		got := render(state.Post{Key: state.Key{ID: "1"}, Text: text})
		runes := []rune(got.text)
		for _, u := range got.urls {
			if string(runes[u.Start:u.End]) != u.URL || len(u.URL) != linkWeight {
				t.Errorf("%q: %+v does not cut out the short link", got.text, u)
			}
		}
		if strings.ContainsAny(got.text, "<>") {
			t.Errorf("%q is not escaped", got.text)
		}
		if n := weigh(text); n < 0 || (n == 0) != (text == "") {
			t.Errorf("weigh(%q) = %d", text, n)
		}
	})
}
