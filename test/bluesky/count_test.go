// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/bluesky"
	"github.com/herald-social/herald/test/must"
)

// TestCounts compares Herald's count of a text's length with Bluesky's own client (RichText.graphemeLength), and the
// texts that Herald accepts with the lexicon's limits of 300 graphemes and 3,000 bytes.
func TestCounts(t *testing.T) {
	const family, germany = "\U0001F468\u200D\U0001F469\u200D\U0001F467\u200D\U0001F466", "\U0001F1E9\U0001F1EA"
	rows := []struct {
		name, text string
		want       int
	}{
		{"letters count one each", "hello", 5},
		{"nothing counts nothing", "", 0},
		{"the longest text has 300 letters", strings.Repeat("a", 300), 300},
		{"a longer text is rejected", strings.Repeat("a", 301), 301},
		{"an emoji counts one, whatever its bytes", strings.Repeat("\U0001F389", 300), 300},
		{"emoji count one each in too long a text", strings.Repeat("\U0001F389", 301), 301},
		{"a skin tone belongs to its emoji", "\U0001F44D\U0001F3FD", 1},
		{"a tone without an emoji belongs to the space before it", "a \U0001F3FD", 2},
		{"joined emoji count one", family, 1},
		{"a joined couple has a variation selector", "\U0001F469\u200D\u2764\uFE0F\u200D\U0001F468", 1},
		{"120 families have 3,000 bytes", strings.Repeat(family, 120), 120},
		{"121 families have too many bytes", strings.Repeat(family, 121), 121},
		{"a flag is two letters that count one", germany, 1},
		{"flags pair from the left", germany + germany, 2},
		{"an odd letter of a flag stands alone", germany + "\U0001F1E9", 2},
		{"300 flags are the longest text of flags", strings.Repeat(germany, 300), 300},
		{"a flag of tags counts one", "\U0001F3F4\U000E0067\U000E0062\U000E0073\U000E0063\U000E0074\U000E007F", 1},
		{"a rainbow flag is joined", "\U0001F3F3\uFE0F\u200D\U0001F308", 1},
		{"a keycap counts one", "1\uFE0F\u20E3", 1},
		{"a composed letter counts one", "\u00e9", 1},
		{"a combining mark belongs to its letter", "e\u0301", 1},
		{"any number of marks belongs to its letter", "Z\u0351\u036B\u0343\u036A\u0302", 1},
		{"a mark at the start stands alone", "\u0301a", 2},
		{"a syllable of Hangul counts one", "\uD55C", 1},
		{"conjoining jamo count one", "\u1112\u1161\u11AB", 1},
		{"jamo of two syllables", "\u1100\u1161\u1100\u1161", 2},
		{"a vowel sign of Thai belongs to its consonant", "\u0E01\u0E33", 1},
		{"a prepended mark belongs to what follows", "\u0600\u0661", 1},
		{"a conjunct of Devanagari counts one", "\u0915\u094D\u0937", 1},
		{"a conjunct of three consonants counts one", "\u0938\u094D\u0924\u094D\u0930", 1},
		{"a conjunct with a nukta counts one", "\u0915\u093C\u094D\u0937", 1},
		{"a conjunct with a joiner counts one", "\u0915\u094D\u200D\u0937", 1},
		{"a non-joiner divides a conjunct", "\u0915\u094D\u200C\u0937", 2},
		{"a conjunct of Bengali counts one", "\u0995\u09CD\u09B7", 1},
		{"a conjunct of Malayalam counts one", "\u0D15\u0D4D\u0D37", 1},
		{"consonants of Tamil are divided", "\u0B95\u0BCD\u0BB7", 2},
		{"300 conjuncts of three bytes a letter are within both limits", strings.Repeat("\u0915\u094D\u0937", 300), 300},
		{"a joiner belongs to the letter before it", "a\u200Db", 2},
		{"a non-joiner belongs to the letter before it", "\u0646\u200C\u062F", 2},
		{"CR LF counts one", "a\r\nb", 3},
		{"LF CR counts two", "a\n\rb", 4},
		{"a direction mark stands alone", "a\u200Fb", 3},
		{"a no-break space counts one", "a\u00a0b", 3},
		{"kanji count one each", "\u6F22\u5B57", 2},
	}
	texts := make([]string, len(rows))
	for i := range rows {
		texts[i] = rows[i].text
	}
	input, err := json.Marshal(texts)
	must.Succeed(t, err)
	command := exec.CommandContext(t.Context(), node(t), "count.mjs")
	var problems bytes.Buffer
	command.Stdin, command.Stderr = bytes.NewReader(input), &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, problems.String())
	}
	var client []struct {
		Graphemes int `json:"graphemes"`
		Bytes     int `json:"bytes"`
	}
	must.Succeed(t, json.Unmarshal(output, &client))
	if len(client) != len(rows) {
		t.Fatalf("the client counted %d texts, want %d", len(client), len(rows))
	}
	limits := bluesky.New(bluesky.Config{Config: platforms.Config{}}, transport.New(transport.Options{})).Capabilities()
	for i, row := range rows {
		theirs, ours := client[i], limits.CaptionLength(row.text)
		if ours != theirs.Graphemes || ours != row.want || len(row.text) != theirs.Bytes {
			t.Errorf("%s: %+q: Herald counts %d, want %d; Bluesky's client counts %+v", row.name, row.text, ours, row.want, theirs)
		}
		accepts := ours <= limits.MaxCaption && (limits.CaptionProblem == nil || limits.CaptionProblem(row.text) == "")
		if valid := theirs.Graphemes <= 300 && theirs.Bytes <= 3000; accepts != valid {
			t.Errorf("%s: Herald accepts the text: %t, and the lexicon: %t", row.name, accepts, valid)
		}
	}
}
