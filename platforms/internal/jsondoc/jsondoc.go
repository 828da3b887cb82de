// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package jsondoc reads the JSON that platforms answer. What is missing, or of
// another kind than documented, reads as nothing, so that one odd field does not
// make the rest unreadable. Successes are decoded into structs; Object is for
// errors, which come in several forms.
package jsondoc

import (
	"bytes"
	"encoding/json"
)

// Object is a JSON object. Nil is an empty one.
type Object map[string]any

// Parse reads a body that is one JSON object and nothing else. Numbers stay as
// they are written: ids are longer than a float can hold.
func Parse(body []byte) (Object, bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil || doc == nil || decoder.More() {
		return nil, false
	}
	return doc, true
}

// Text returns a string, or a number as it is written; else "".
func (o Object) Text(key string) string {
	switch v := o[key].(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		return ""
	}
}

// Int returns a whole number, also one that is written as a string; else 0.
func (o Object) Int(key string) int {
	return Text(o.Text(key)).Int()
}

// Bool returns a truth value, also one that is written as a string; else
// false.
func (o Object) Bool(key string) bool {
	if v, ok := o[key].(bool); ok {
		return v
	}
	return o.Text(key) == "true"
}

// Object returns an object, or nil.
func (o Object) Object(key string) Object {
	doc, _ := o[key].(map[string]any)
	return doc
}

// List returns the entries of a list and whether there is one. What is no
// object among them is nil.
func (o Object) List(key string) ([]Object, bool) {
	entries, ok := o[key].([]any)
	if !ok {
		return nil, false
	}
	list := make([]Object, len(entries))
	for i, v := range entries {
		list[i], _ = v.(map[string]any)
	}
	return list, true
}
