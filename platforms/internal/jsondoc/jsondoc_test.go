// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package jsondoc

import (
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := map[string]struct {
		reason, body string
		ok           bool
	}{
		"object":      {"an object is what every platform answers", `{"id":"1"}`, true},
		"blanks":      {"blanks around it mean nothing", " {}\n", true},
		"cut":         {"what broke off says nothing", `{"id":"1`, false},
		"two":         {"nor does what goes on", `{} {}`, false},
		"list":        {"a list is not what was asked for", `[{}]`, false},
		"null":        {"null is no document", `null`, false},
		"page":        {"an error page is none either", `<html>`, false},
		"empty":       {"nor is nothing", ``, false},
		"wrong field": {"an odd field does not make the rest unreadable", `{"id":[1],"x":"y"}`, true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if _, ok := Parse([]byte(tc.body)); ok != tc.ok {
				t.Errorf("%s: read %v", tc.reason, ok)
			}
		})
	}
}

func TestObject(t *testing.T) {
	doc, ok := Parse([]byte(`{
		"s":"text","n":12345678901234567890,"i":42,"si":"43","b":true,"sb":"true","o":{"k":"v"},
		"l":[{"k":"1"},2,{"k":"3"}],"e":[],"life":"3600","half":0.5,"never":1e30,"past":-1,"null":null}`))
	if !ok {
		t.Fatal("not read")
	}
	if doc.Text("s") != "text" || doc.Text("n") != "12345678901234567890" || doc.Text("o") != "" || doc.Text("none") != "" || doc.Text("null") != "" {
		t.Errorf("texts read as %q %q %q %q", doc.Text("s"), doc.Text("n"), doc.Text("o"), doc.Text("none"))
	}
	if doc.Int("i") != 42 || doc.Int("si") != 43 || doc.Int("s") != 0 || doc.Int("n") != 0 {
		t.Errorf("numbers read as %d %d %d %d", doc.Int("i"), doc.Int("si"), doc.Int("s"), doc.Int("n"))
	}
	if !doc.Bool("b") || !doc.Bool("sb") || doc.Bool("s") || doc.Bool("none") {
		t.Error("truth values are misread")
	}
	if doc.Object("o").Text("k") != "v" || doc.Object("none").Object("deeper").Text("k") != "" {
		t.Error("objects are misread")
	}
	list, there := doc.List("l")
	if !there || len(list) != 3 || list[2].Text("k") != "3" || list[1].Text("k") != "" {
		t.Errorf("the list reads as %v", list)
	}
	if empty, there := doc.List("e"); !there || len(empty) != 0 {
		t.Error("an empty list is a list")
	}
	if _, there := doc.List("o"); there {
		t.Error("an object is no list")
	}
	for key, want := range map[string]time.Duration{"life": time.Hour, "half": time.Second / 2, "never": 0, "past": 0, "none": 0, "s": 0} {
		if got := doc.Seconds(key); got != want {
			t.Errorf("%s lasts %v, want %v", key, got, want)
		}
	}
}
