// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/sandbox/state"
)

func TestFields(t *testing.T) {
	inner := Node{Type: "Inner", Values: map[string]any{"id": "7", "a": 1}, Known: []string{"id", "a", "b"}, Default: []string{"a"}}
	node := Node{
		Type: "Outer",
		Values: map[string]any{
			"id": "1", "name": "n", "one": inner, "many": Edge{inner, inner}, "picture": Wrapped(Node{
				Type: "Picture", Values: map[string]any{"url": "u", "width": 5}, Known: []string{"url", "width"}, Default: []string{"url"},
			}),
		},
		Known: []string{"id", "name", "one", "many", "picture", "silent"}, Default: []string{"name"},
	}
	tests := []struct {
		name, fields, want string
		code               int
	}{
		{"the default fields", "", `{"id":"1","name":"n"}`, 0},
		{"the id is always included", "name", `{"id":"1","name":"n"}`, 0},
		{"a field without a value", "silent", `{"id":"1"}`, 0},
		{"a node's defaults", "one", `{"id":"1","one":{"a":1,"id":"7"}}`, 0},
		{"a node's fields", "one{id},name", `{"id":"1","name":"n","one":{"id":"7"}}`, 0},
		{"fields of a list's elements", "many{a,b}", `{"id":"1","many":{"data":[{"a":1,"id":"7"},{"a":1,"id":"7"}]}}`, 0},
		{"fields of a wrapped node", "picture{url},name", `{"id":"1","name":"n","picture":{"data":{"url":"u"}}}`, 0},
		{"an unknown field", "names", "", 100},
		{"an unknown nested field", "one{c}", "", 100},
		{"subfields of a scalar", "name{a}", "", 2500},
		{"an empty name between commas", "id,,name", "", 2500},
		{"a trailing comma", "id,", "", 2500},
		{"a missing closing brace", "one{a", "", 2500},
		{"an extra closing brace", "one{a}}", "", 2500},
		{"empty braces", "one{}", "", 2500},
		{"blanks", "id, name", "", 2500},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			p := &Params{values: map[string]string{"fields": tt.fields}}
			fields := p.Fields()
			got, bad := map[string]any(nil), p.Validate()
			if bad == nil {
				got, bad = node.Select(fields)
			}
			if tt.code != 0 {
				if bad == nil || bad.Code != tt.code {
					t.Errorf("error %v, want code %d", bad, tt.code)
				}
				return
			}
			content, err := json.Marshal(got)
			if diff := cmp.Diff(tt.want, string(content)); bad != nil || err != nil || diff != "" {
				t.Errorf("%v %v (-want +got):\n%s", bad, err, diff)
			}
		})
	}
}

func TestIDs(t *testing.T) {
	at := time.Date(2026, 12, 1, 9, 0, 0, 0, time.UTC).UnixMilli()
	seen := map[string]bool{}
	previous := ""
	for _, stamp := range []state.Stamp{
		{Milli: at}, {Milli: at, Serial: 1}, {Milli: at, Serial: 65535}, {Milli: at + 1}, {Milli: at + 86_400_000*3650},
	} {
		id := NewID(stamp)
		code := Shortcode(id)
		if len(id) != 17 || id <= previous || seen[code] || IDOf(code) != id {
			t.Errorf("%+v: id %s after %s, code %s of %s", stamp, id, previous, code, IDOf(code))
		}
		previous, seen[code] = id, true
	}
	for _, code := range []string{"", "C", "abc", "C!", "Caaaaaaaaaaaaaa"} {
		if id := IDOf(code); id != "" {
			t.Errorf("%q is parsed as %s", code, id)
		}
	}
	if code := Shortcode("me"); code != "" {
		t.Errorf("me is shortened to %s", code)
	}
}
