// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	for _, row := range []struct {
		reason  string
		pattern string
		want    []string
		fails   bool
	}{
		{"alternatives in their order", "b|a", []string{"b", "a"}, false},
		{"what may be missing is tried present first", "ab?c", []string{"abc", "ac"}, false},
		{"a class and a range", "[ac-e]", []string{"a", "c", "d", "e"}, false},
		{"groups of both kinds", "(?:a|b)(c|d)", []string{"ac", "ad", "bc", "bd"}, false},
		{"the halves of a character are put together", `\ud83d[\ude00\ude01]`, []string{"😀", "😁"}, false},
		{"the look-ahead for a text selector is dropped", `a(?:\ufe0f|(?!\ufe0e))`, []string{"a\ufe0f", "a"}, false},
		{"any other look-ahead is refused", "a(?!b)", nil, true},
		{"an unclosed group", "(a", nil, true},
		{"an unclosed class", "[a", nil, true},
		{"a parenthesis too many", "a)", nil, true},
		{"an unfinished escape", `\ud8`, nil, true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			got, err := expand(row.pattern)
			if (err != nil) != row.fails {
				t.Fatalf("expand(%q): %v", row.pattern, err)
			}
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Errorf("expand(%q) (-want +got):\n%s", row.pattern, diff)
			}
		})
	}
}

func TestEmojiTable(t *testing.T) {
	for _, row := range []struct {
		reason, pattern string
		// want is a part of the table, or of the error.
		want  string
		fails bool
	}{
		{"neighbours that go on alike share an edge", `\u2600[\u2601-\u2603]|\u2604\ufe0f`, "{0x2601, 0x2603, 0}", false},
		{"a single character is left out", `\u2600|\u2601\ufe0f`, "{0x2601, 0x2601, 1}", false},
		{"a single character that may weigh one", `a|bc`, "may weigh one", true},
		{"a sequence that hides a longer one", `\u2600\u2601|\u2600\u2601\u2602`, "before the longer", true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			table, err := emojiTable("exports.default = /" + row.pattern + "/g;")
			if (err != nil) != row.fails {
				t.Fatalf("unexpected error: %v", err)
			}
			if err != nil {
				table = err.Error()
			}
			if !strings.Contains(table, row.want) {
				t.Errorf("%q is not in:\n%s", row.want, table)
			}
		})
	}
}

func TestTLDTable(t *testing.T) {
	list := func(names string) string { return "RegExp('(?:(?:' + '" + names + "' + ')(?=[^0-9a-zA-Z@+-]|$))'))" }
	for _, row := range []struct {
		reason, generic, country string
		// want is a part of the table, or of the error.
		want  string
		fails bool
	}{
		{"names are folded, sorted and put together", list("org|' + 'com"), list("рф|de"), `"COM", "DE", "ORG", "РФ",`, false},
		{"a name in both lists stands once", list("com"), list("com|de"), `"COM", "DE",`, false},
		{"the longest is measured in characters", list("com"), list("みんな|ею"), "maxTLDRunes = 3", false},
		{"a name before a longer one in the same script", list("嘉里|嘉里大酒店"), list("de"), "before the longer", true},
		{"an ASCII name may stand before a longer one, which its boundary tells apart", list("co|com"), list("de"), `"CO", "COM", "DE"`, false},
		{"a list of another form", "RegExp('x')", list("de"), "does not begin", true},
		{"a list without its boundary", "RegExp('(?:(?:' + 'com' + '))'))", list("de"), "boundary", true},
		{"something else than a name", list("com|[a-z]+"), list("de"), "does not look like", true},
	} {
		t.Run(row.reason, func(t *testing.T) {
			table, err := tldTable(row.generic, row.country)
			if (err != nil) != row.fails {
				t.Fatalf("unexpected error: %v", err)
			}
			if err != nil {
				table = err.Error()
			}
			if !strings.Contains(table, row.want) {
				t.Errorf("%q is not in:\n%s", row.want, table)
			}
		})
	}
}
