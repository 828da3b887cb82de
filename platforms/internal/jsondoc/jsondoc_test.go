// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"strings"
	"testing"
	"time"
)

func TestDecodeForms(t *testing.T) {
	tests := map[string]struct {
		reason, body string
		ok           bool
	}{
		"object":      {"all platforms return objects", `{"id":"1"}`, true},
		"blanks":      {"surrounding blanks are ignored", " {}\n", true},
		"cut":         {"a truncated document is invalid", `{"id":"1`, false},
		"two":         {"two documents are invalid", `{} {}`, false},
		"list":        {"a list is not an object", `[{}]`, false},
		"null":        {"null is not an object", `null`, false},
		"page":        {"an error page is not an object", `<html>`, false},
		"empty":       {"an empty document is invalid", ``, false},
		"wrong field": {"an invalid field does not affect others", `{"id":[1],"x":"y"}`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if v, ok := Decode[struct{ ID, X Text }]([]byte(tc.body)); ok != tc.ok || !ok && v.ID != "" {
				t.Errorf("%s: decoded %+v, %v", tc.reason, v, ok)
			}
		})
	}
}

func TestDecode(t *testing.T) {
	type part struct {
		K Text `json:"k"`
	}
	doc, ok := Decode[struct {
		S, N, O, None, Null, B Text
		I, SI                  Text
		Flag, Said, No         Flag
		L                      []part
		E                      []part
		Away                   []part
		Odd                    []part
		Nested                 part
		Wrong                  part
		Life                   Text
		At, Never              Text
	}]([]byte(`{
		"s":"te\u00e4xt","n":12345678901234567890,"o":{"k":"v"},"null":null,"b":true,"i":42,"si":"43","flag":true,"said":"true","no":"yes",
		"l":[{"k":"1"},2,{"k":3}],"e":[],"odd":{"k":"v"},"nested":{"k":"v"},"wrong":[1],"life":"3600","at":"2026-11-20T13:00:00+01:00","never":"soon"}`))
	if !ok {
		t.Fatal("not read")
	}
	if doc.S != "teäxt" || doc.N != "12345678901234567890" || doc.O != "" || doc.None != "" || doc.Null != "" || doc.B != "" {
		t.Errorf("texts read as %q %q %q %q %q %q", doc.S, doc.N, doc.O, doc.None, doc.Null, doc.B)
	}
	if doc.I.Int() != 42 || doc.SI.Int() != 43 || doc.S.Int() != 0 || doc.N.Int() != 0 {
		t.Errorf("numbers read as %d %d %d %d", doc.I.Int(), doc.SI.Int(), doc.S.Int(), doc.N.Int())
	}
	if !doc.Flag || !doc.Said || doc.No {
		t.Error("truth values are misread")
	}
	if len(doc.L) != 3 || doc.L[0].K != "1" || doc.L[1].K != "" || doc.L[2].K != "3" {
		t.Errorf("a list with an odd entry reads as %v", doc.L)
	}
	if doc.E == nil || doc.Away != nil || doc.Odd != nil {
		t.Errorf("an empty list is neither missing nor invalid: %v %v %v", doc.E, doc.Away, doc.Odd)
	}
	if doc.Nested.K != "v" || doc.Wrong.K != "" {
		t.Error("objects are misread")
	}
	if doc.Life.Seconds() != time.Hour || !doc.At.Time().Equal(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)) || !doc.Never.Time().IsZero() {
		t.Errorf("times read as %v %v %v", doc.Life.Seconds(), doc.At.Time(), doc.Never.Time())
	}
	if got, ok := Decode[*part]([]byte(`[]`)); ok || got != nil {
		t.Errorf("a value that is not an object decodes as %v", got)
	}
}

func TestSeconds(t *testing.T) {
	for text, want := range map[Text]time.Duration{"3600": time.Hour, "0.5": time.Second / 2, "1e30": 0, "-1": 0, "": 0, "soon": 0} {
		if got := text.Seconds(); got != want {
			t.Errorf("%q lasts %v, want %v", text, got, want)
		}
	}
}

func TestWeb(t *testing.T) {
	for text, want := range map[Text]bool{
		"https://www.threads.com/@a/post/1": true, "http://127.0.0.1:8080/x/1": true, "javascript:alert(1)": false,
		"JAVASCRIPT:alert(1)": false, "data:text/html,a": false, "//evil.example/a": false, "/a": false, "https://": false,
		"https://x.com@evil.example/": false, "": false,
	} {
		if got := text.Web(); (got != "") != want || want && got != string(text) {
			t.Errorf("%q reads as %q", text, got)
		}
	}
}

// FuzzDecode checks that any input is either decoded or rejected, and that numbers stay within plausible limits.
func FuzzDecode(f *testing.F) {
	for _, body := range []string{`{"id":1991000000000000001,"in":"3600"}`, `{"id":{},"in":[1],"list":"x"}`, `{"in":1e308}`, `{"in":-1,"list":[1,"a",null]}`, `[]`, `{}{}`, "\xff"} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		read, ok := Decode[struct {
			ID   Text   `json:"id"`
			In   Text   `json:"in"`
			List []Text `json:"list"`
		}]([]byte(body))
		if !ok && (read.ID != "" || read.In != "" || read.List != nil) {
			t.Errorf("%q is not read, and read as %+v", body, read)
		}
		if life := read.In.Seconds(); life < 0 || life > 10*365*24*time.Hour {
			t.Errorf("%q lasts %s", read.In, life)
		}
		if ok && !strings.Contains(body, "{") {
			t.Errorf("%q is no object", body)
		}
	})
}
