// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func nested(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

// parse returns Parse's error message, or "".
func parse(body string) string {
	if _, err := Parse([]byte(body)); err != nil {
		return err.Error()
	}
	return ""
}

func TestParse(t *testing.T) {
	t.Parallel()
	manyNames := func(count int, last string) string {
		var b strings.Builder
		for i := range count - 1 {
			fmt.Fprintf(&b, `"n%d":%d,`, i, i)
		}
		return "{" + b.String() + `"` + last + `":0}`
	}
	tests := map[string]struct{ reason, body, want string }{
		"Usual": {
			"nested objects may have the same names",
			`{"a":{"a":1,"b":["a","a"]},"b":[{"a":1},{"a":2}],"c":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00 ä 😀"}`, "",
		},
		"Twice":         {"decoders differ: they use the first or the last value", `{"a":1,"b":2,"a":1}`, "a: appears twice in its object"},
		"TwiceEscaped":  {"an escaped name is the same name", `{"caption":1,"c\u0061ption":2}`, "caption: appears twice in its object"},
		"TwiceDeep":     {"the path is reported", `{"targets":[{},{"x":{"y":1,"y":2}}]}`, "targets[1].x.y: appears twice in its object"},
		"TwiceInArrays": {"paths contain array indexes", `[[0,[{"a":1,"a":1}]]]`, "[0][1][0].a: appears twice in its object"},
		"TwiceEmpty":    {"an empty name is a name", `{"":1,"":2}`, ": appears twice in its object"},
		"TwiceLate":     {"objects with many names are checked too", manyNames(101, "n7"), "n7: appears twice in its object"},
		"ManyNames":     {"unique names are accepted up to the limit", manyNames(MaxNames, "m"), ""},
		"TooManyNames":  {"the limit is exceeded by one", manyNames(MaxNames+1, "m"), "the body: has more than 256 names"},
		"DeepNames":     {"the path is reported", `{"a":[` + manyNames(MaxNames+1, "m") + `]}`, "a[0]: has more than 256 names"},
		"TwiceLong":     {"long names are shortened in messages", `{"` + strings.Repeat("ä", 900) + `":1,"` + strings.Repeat("ä", 900) + `":1}`, strings.Repeat("ä", 64) + "…: appears twice in its object"},
		"Capitals":      {"names are case-sensitive", `{"a":1,"A":2}`, ""},
		"Deepest":       {"the maximum depth", `{"a":` + nested(MaxDepth-1) + `}`, ""},
		"TooDeep":       {"the depth is exceeded by one", nested(MaxDepth + 1), "the body is nested deeper than 64 levels"},
		"Abyss":         {"greater depth does not cost more", strings.Repeat(`{"a":[`, 1<<17), "the body is nested deeper than 64 levels"},
		"NUL":           {"many programs end strings at NUL", `{"targets":[{"caption":"a\u0000b"}]}`, `targets[0].caption: must not contain the NUL character (\u0000)`},
		"EscapedNoNUL":  {"an escaped backslash is followed by ordinary characters", `{"a":"\\u0000"}`, ""},
		"HighAlone":     {"the second half is missing", `{"a":["x","\ud800"]}`, `a[1]: contains half a surrogate pair (\ud800); send the whole character`},
		"HighThenText":  {"ordinary text follows", `{"a":"\uD83Dxxxxxx"}`, `a: contains half a surrogate pair (\ud83d); send the whole character`},
		"HighTwice":     {"two first halves are not a pair", `{"a":"\ud83d\ud83d\ude00"}`, `a: contains half a surrogate pair (\ud83d); send the whole character`},
		"LowAlone":      {"the first half is missing", `{"a":"\ude00"}`, `a: contains half a surrogate pair (\ude00); send the whole character`},
		"Replacement":   {"U+FFFD is a valid character", `{"a":"\ufffd"}`, ""},
		"NotUTF8":       {"the bytes are not valid UTF-8", "{\"a\":\"\xff\"}", "the body is not valid UTF-8 at byte 7; send JSON in UTF-8"},
		"NotJSON":       {"the body is not valid JSON", `{"a":1,]`, "the body is not valid JSON: invalid character ']' looking for beginning of object key string at byte 8"},
		"CutEscape":     {"the escape is incomplete", `{"a":"\u00`, "the body is not valid JSON: it ends unexpectedly"},
		"Empty":         {"an empty body has its own message", ``, "the body is empty; send a JSON object"},
		"MostValues":    {"the maximum number of values", `{"a":[1` + strings.Repeat(",1", MaxValues-3) + `]}`, ""},
		"TooManyValues": {"the number is exceeded by one", `{"a":[1` + strings.Repeat(",1", MaxValues-2) + `]}`, "the body contains more than 16384 values"},
		"TooManyItems":  {"objects count like array items", `{"a":[{}` + strings.Repeat(",{}", 1<<18), "the body contains more than 16384 values"},
		"NULBehind":     {"a NUL byte does not end the body", "{}\x00", "the body continues after its JSON object, at byte 3; send only one object"},
		"Blanks":        {"blanks alone are not a value", " \n\t", "the body is not valid JSON: it ends unexpectedly"},
		"TwoObjects":    {"one body contains one object", "{}{}", "the body continues after its JSON object, at byte 3; send only one object"},
		"NameNotUTF8":   {"names are checked too", "{\"\xff\":1}", "the body is not valid UTF-8 at byte 3; send JSON in UTF-8"},
		"Overlong":      {"the encoding is not the shortest", "{\"a\":\"\xc0\xaf\"}", "the body is not valid UTF-8 at byte 7; send JSON in UTF-8"},
		"Surrogate":     {"surrogates are not valid UTF-8", "{\"a\":\"\xed\xa0\x80\"}", "the body is not valid UTF-8 at byte 7; send JSON in UTF-8"},
		"Array":         {"only objects have fields", "[1]", "the body must be a JSON object"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := parse(tc.body); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// FuzzParse compares the parser with a slow check based on the standard library's tokens: it accepts exactly the
// objects that the standard library accepts, except for the findings of slowCheck.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"a":1,"a":2}`, `{"a":{"b":1},"b":[{"b":1}]}`, `["\u0000"]`, `{"\u0000":"\ud83d\ude00"}`, `"\ud83d"`, nested(64), nested(65),
		`{"a":[{"b":"c"},{"b":"c","\u0062":1}]}`, `[1e400,12345678901234567890,-0]`, `{"a":"\\u0000\\ud800"}`, "\"\xff\"",
		`{"a":[01,-,1.,1e,.5,+1,tru]}`, "{\"a\"\t: \"\n\"}", `{"a":"\x\u12g4"}`, `{"a":[1,],}`, `{"a" 1}`, ` { "a" : [ -0.5E+7 , true , false , null ] } `, "{}\x00",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := parse(string(body))
		if !utf8.ValidString(got) || len(got) > 1<<16 {
			t.Errorf("the error is %q", got)
		}
		if !json.Valid(body) {
			if got == "" {
				t.Errorf("%q was accepted, but is not JSON", body)
			}
			return
		}
		// The standard library decodes an unpaired surrogate as U+FFFD, which may also be in the source text.
		if bytes.Contains(body, []byte(`\u`)) && bytes.ContainsAny(body, "dD") && strings.Contains(got, "surrogate") {
			return
		}
		want := slowCheck(body) || bytes.TrimLeft(body, " \t\r\n")[0] != '{'
		if (got != "") != want {
			t.Errorf("got %q for %q, which is wrong: %t", got, body, want)
		}
		if got == "" {
			sameAsStandard(t, body)
		}
	})
}

// sameAsStandard checks that the parser reads the same values as the standard library.
func sameAsStandard(t *testing.T, body []byte) {
	t.Helper()
	var want any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if err := decoder.Decode(&want); err != nil {
		t.Fatal(err)
	}
	value, err := Parse(body)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, plain(value.doc.nodes, 0)); diff != "" {
		t.Errorf("%q: -want +got:\n%s", body, diff)
	}
}

// plain returns a node as encoding/json decodes it into an empty interface.
func plain(nodes []node, i int) any {
	n := &nodes[i]
	switch n.kind {
	case object:
		members := map[string]any{}
		for j := i + 1; j < n.next; j = nodes[j].next {
			members[string(nodes[j].name)] = plain(nodes, j)
		}
		return members
	case array:
		items := []any{}
		for j := i + 1; j < n.next; j = nodes[j].next {
			items = append(items, plain(nodes, j))
		}
		return items
	case text:
		return string(n.text)
	case number:
		return json.Number(n.text)
	case boolean:
		return string(n.text) == "true"
	case null:
	}
	return nil
}

// slowCheck reports whether a JSON value is nested too deep, has a duplicate name, NUL or invalid UTF-8.
func slowCheck(body []byte) bool {
	type object struct {
		names map[string]bool
		name  bool // a name is next
	}
	var open []*object
	value := func() { // after a value
		if len(open) > 0 && open[len(open)-1].names != nil {
			open[len(open)-1].name = true
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	for {
		token, err := decoder.Token()
		switch {
		case errors.Is(err, io.EOF):
			return !utf8.Valid(body)
		case err != nil: // the tokenizer has a lower nesting limit than Valid
			return true
		}
		switch v := token.(type) {
		case json.Delim:
			switch v {
			case '{':
				open = append(open, &object{names: map[string]bool{}, name: true})
			case '[':
				open = append(open, &object{})
			default:
				open = open[:len(open)-1]
				value()
				continue
			}
			if len(open) > MaxDepth {
				return true
			}
		case string:
			top := &object{}
			if len(open) > 0 {
				top = open[len(open)-1]
			}
			if top.name {
				if top.names[v] {
					return true
				}
				top.names[v], top.name = true, false
				continue
			}
			if strings.ContainsRune(v, 0) {
				return true
			}
			value()
		default:
			value()
		}
	}
}
