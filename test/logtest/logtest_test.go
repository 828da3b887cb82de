// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package logtest

import (
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func write(t *testing.T, l *Log, text string) {
	t.Helper()
	if _, err := io.WriteString(l, text); err != nil {
		t.Fatal(err)
	}
}

func TestLines(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, text string
		wrong        bool
		want         []Line
	}{
		"a line":        {"its fields are the object's", `{"msg":"a","n":1}` + "\n", false, []Line{{"msg": "a", "n": 1.0}}},
		"nothing":       {"an empty log has no lines", "", false, nil},
		"a field twice": {"the second field hides the first when logs are filtered", `{"msg":"a","n":1,"n":1}` + "\n", true, []Line{{"msg": "a", "n": 1.0}}},
		"text":          {"tools cannot parse it", "hello\n", true, []Line{{}}},
		"within":        {"only a field of the line is compared", `{"a":{"x":1},"b":{"x":1}}` + "\n", false, []Line{{"a": map[string]any{"x": 1.0}, "b": map[string]any{"x": 1.0}}}},
	} {
		var l Log
		write(t, &l, tc.text)
		got, err := l.Lines()
		if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.wrong {
			t.Errorf("%s: %s: %v\n%s", name, tc.reason, err, diff)
		}
	}
}

func TestWith(t *testing.T) {
	var l Log
	write(t, &l, `{"msg":"a","n":1}`+"\n"+`{"msg":"b"}`+"\n")
	found := l.With("a")
	if len(found) != 1 || found[0].Text("n") != "1" || found[0].Text("m") != "" {
		t.Errorf("found %v", found)
	}
}

func TestIn(t *testing.T) {
	var l Log
	write(t, &l, `{"msg":"a","namespace":"x"}`+"\n"+`{"msg":"a","namespace":"y","n":1}`+"\n"+`{"msg":"b","namespace":"y"}`+"\n")
	found := l.In("y", "a")
	if len(found) != 1 || found[0].Text("n") != "1" {
		t.Errorf("found %v", found)
	}
}
