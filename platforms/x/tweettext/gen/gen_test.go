// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestExpand(t *testing.T) {
	for _, row := range []struct {
		reason, pattern string
		want            []string
		fails           bool
	}{
		{"alternatives in order", "bc|a", []string{"bc", "a"}, false},
		{"an optional character is tried first with it, then without", "ab?c", []string{"abc", "ac"}, false},
		{"a class and a range", "[ac-e]", []string{"a", "c", "d", "e"}, false},
		{"groups of both kinds", "(?:a|b)(c|d)", []string{"ac", "ad", "bc", "bd"}, false},
		{"the halves of a character are put together", `\ud83d[\ude00\ude01]`, []string{"😀", "😁"}, false},
		{"the look-ahead for a text selector is dropped", `a(?:\ufe0f|(?!\ufe0e))`, []string{"a\ufe0f", "a"}, false},
		{"other look-aheads are rejected", "a(?!b)", nil, true},
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
		want            []string
		fails           string
	}{
		{"single characters are omitted", `\u2600|\u2601\ufe0f`, []string{"\u2601\ufe0f"}, ""},
		{"a single character that may weigh one", `a|bc`, nil, "may weigh one"},
		{"a sequence that hides a longer one", `\u2600\u2601|\u2600\u2601\u2602`, nil, "before the longer"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			table, err := emojiTable("exports.default = /" + row.pattern + "/g;")
			check(t, table, row.want, err, row.fails)
		})
	}
}

// check compares a table or, if an error is expected, the expected part of its message.
func check(t *testing.T, table, want []string, err error, fails string) {
	t.Helper()
	if (err != nil) != (fails != "") || err != nil && !strings.Contains(err.Error(), fails) {
		t.Fatalf("got the error %v, want %q", err, fails)
	}
	if diff := cmp.Diff(want, table); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
}

func TestTLDTable(t *testing.T) {
	list := func(names string) string { return "RegExp('(?:(?:' + '" + names + "' + ')(?=[^0-9a-zA-Z@+-]|$))'))" }
	for _, row := range []struct {
		reason, generic, country string
		want                     []string
		fails                    string
	}{
		{"names are folded and put together", list("org|' + 'com"), list("рф|de"), []string{"ORG", "COM", "РФ", "DE"}, ""},
		{"a name before a longer one in the same script", list("嘉里|嘉里大酒店"), list("de"), nil, "before the longer"},
		{"a shorter ASCII name may precede a longer one, because a boundary follows", list("co|com"), list("de"), []string{"CO", "COM", "DE"}, ""},
		{"a list of another form", "RegExp('x')", list("de"), nil, "does not begin"},
		{"a list without its boundary", "RegExp('(?:(?:' + 'com' + '))'))", list("de"), nil, "boundary"},
		{"an unexpected pattern", list("com|[a-z]+"), list("de"), nil, "does not look like"},
	} {
		t.Run(row.reason, func(t *testing.T) {
			table, err := tldTable(row.generic, row.country)
			check(t, table, row.want, err, row.fails)
		})
	}
}

// TestWrite checks that a table is sorted and has no duplicates.
func TestWrite(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := write("table.txt", []string{"ORG", "COM", "ORG"}); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile("table.txt"); err != nil || string(got) != "COM ORG\n" {
		t.Errorf("wrote %q, %v", got, err)
	}
}
