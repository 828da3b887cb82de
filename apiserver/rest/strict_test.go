// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-faster/jx"

	"github.com/herald-social/herald/apiserver/rest/oas"
)

func nested(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

func TestCheckJSON(t *testing.T) {
	t.Parallel()
	manyNames := func(last string) string {
		var b strings.Builder
		for i := range 100 {
			fmt.Fprintf(&b, `"n%d":%d,`, i, i)
		}
		return "{" + b.String() + `"` + last + `":0}`
	}
	tests := map[string]struct{ reason, body, want string }{
		"Usual": {
			"objects may share names with those around and beside them",
			`{"a":{"a":1,"b":["a","a"]},"b":[{"a":1},{"a":2}],"c":"\"\\\/\b\f\n\r\t\u00e4\ud83d\ude00 ä 😀"}`, "",
		},
		"Twice":         {"of two values, decoders take the first or the last", `{"a":1,"b":2,"a":1}`, "a: stands twice in its object"},
		"TwiceEscaped":  {"an escaped name is the same name", `{"caption":1,"c\u0061ption":2}`, "caption: stands twice in its object"},
		"TwiceDeep":     {"the path says where", `{"targets":[{},{"x":{"y":1,"y":2}}]}`, "targets[1].x.y: stands twice in its object"},
		"TwiceInArrays": {"arrays in arrays have their place in the path", `[[0,[{"a":1,"a":1}]]]`, "[0][1][0].a: stands twice in its object"},
		"TwiceEmpty":    {"the empty name is a name", `{"":1,"":2}`, ": stands twice in its object"},
		"TwiceLate":     {"objects with many names are no exception", manyNames("n7"), "n7: stands twice in its object"},
		"ManyNames":     {"many names are fine when each stands once", manyNames("m"), ""},
		"TwiceLong":     {"a message does not grow with what it is about", `{"` + strings.Repeat("ä", 900) + `":1,"` + strings.Repeat("ä", 900) + `":1}`, strings.Repeat("ä", 64) + "…: stands twice in its object"},
		"Capitals":      {"names differ by their capitals", `{"a":1,"A":2}`, ""},
		"Deepest":       {"as deep as is allowed", nested(maxDepth), ""},
		"TooDeep":       {"one level more", nested(maxDepth + 1), "the body nests deeper than 64 levels"},
		"Abyss":         {"no depth costs more than the limit", strings.Repeat(`{"a":[`, 1<<17), "the body nests deeper than 64 levels"},
		"NUL":           {"NUL ends the text in many a program", `{"targets":[{"caption":"a\u0000b"}]}`, `targets[0].caption: must not hold the NUL character (\u0000)`},
		"EscapedNoNUL":  {"a backslash and u0000 are six characters", `{"a":"\\u0000"}`, ""},
		"HighAlone":     {"half of an emoji", `{"a":["x","\ud800"]}`, `a[1]: holds half a surrogate pair (\ud800); send the whole character`},
		"HighThenText":  {"what follows is no second half", `{"a":"\uD83Dxxxxxx"}`, `a: holds half a surrogate pair (\ud83d); send the whole character`},
		"HighTwice":     {"two first halves make no pair", `{"a":"\ud83d\ud83d\ude00"}`, `a: holds half a surrogate pair (\ud83d); send the whole character`},
		"LowAlone":      {"the second half alone", `{"a":"\ude00"}`, `a: holds half a surrogate pair (\ude00); send the whole character`},
		"Replacement":   {"U+FFFD is a character", `{"a":"\ufffd"}`, ""},
		"NotUTF8":       {"bytes that are no text", "{\"a\":\"\xff\"}", "the body is not valid UTF-8"},
		"NotJSON":       {"others say what is wrong with it", `{"a":1,]`, ""},
		"CutEscape":     {"an escape that ends too early", `{"a":"\u00`, ""},
		"Nothing":       {"others say that it is empty", ``, ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := checkJSON([]byte(tc.body)); got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}

// FuzzCheckJSON holds the check against a slow one that is made of the standard
// library's tokens.
func FuzzCheckJSON(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"a":1,"a":2}`, `{"a":{"b":1},"b":[{"b":1}]}`, `["\u0000"]`, `{"\u0000":"\ud83d\ude00"}`, `"\ud83d"`, nested(64), nested(65),
		`{"a":[{"b":"c"},{"b":"c","\u0062":1}]}`, `[1e400,12345678901234567890,-0]`, `{"a":"\\u0000\\ud800"}`, "\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := checkJSON(body)
		if !utf8.ValidString(got) || len(got) > 1<<16 {
			t.Errorf("says %q", got)
		}
		if !json.Valid(body) {
			return
		}
		// The standard library reads half a pair as U+FFFD, which may as well stand there itself.
		if bytes.Contains(body, []byte(`\u`)) && bytes.ContainsAny(body, "dD") && strings.Contains(got, "surrogate") {
			return
		}
		if want := slowCheck(body); (got != "") != want {
			t.Errorf("says %q to %q, which is found wrong: %t", got, body, want)
		}
	})
}

// slowCheck reports whether a JSON value nests too deep, has a name twice or
// holds NUL or bytes that are no UTF-8.
func slowCheck(body []byte) bool {
	type object struct {
		names map[string]bool
		name  bool // a name comes next
	}
	var open []*object
	value := func() { // a value has ended
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
		case err != nil: // the tokenizer nests less deep than Valid
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
			if len(open) > maxDepth {
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

// BenchmarkBody tells what the check adds to the decoding of a usual body.
func BenchmarkBody(b *testing.B) {
	body := []byte(`{"category":"text","scheduled_at":"2026-12-01T09:00:00.000Z","targets":[` +
		`{"connection_id":"acme-x","caption":"We launched \ud83d\ude80 — and here is what it does: https://example.com/launch"},` +
		`{"connection_id":"acme-threads","caption":"We launched. It took a while, but here it is, and we are proud of it."}]}`)
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var req oas.CreatePostRequest
			if err := req.Decode(jx.DecodeBytes(body)); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("check", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if problem := checkJSON(body); problem != "" {
				b.Fatal(problem)
			}
		}
	})
	large := []byte(`[` + strings.Repeat(`{"a":1},`, 1<<17-1) + `{}]`)
	b.Run("check 1 MiB of objects", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if problem := checkJSON(large); problem != "" {
				b.Fatal(problem)
			}
		}
	})
}
