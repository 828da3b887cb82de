// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxName limits the characters of a name in a path.
const maxName = 64

// Value is a value in a document, or the place of a missing value. If a value does not have the type that a method
// reads, the method records a problem in the document and returns the zero value.
type Value struct {
	doc *document
	// node is the index of the value; for a missing value, of its parent.
	node int
	// name is the name of a missing value.
	name string
	// optional allows a missing value, nullable allows null.
	missing, optional, nullable bool
}

// Field returns a required member of an object.
func (v Value) Field(name string) Value {
	if !v.missing {
		v.doc.nodes[v.node].entered = true
		for i := v.node + 1; i < v.doc.nodes[v.node].next; i = v.doc.nodes[i].next {
			if string(v.doc.nodes[i].name) == name {
				v.doc.nodes[i].used = true
				return Value{doc: v.doc, node: i}
			}
		}
	}
	return Value{doc: v.doc, node: v.node, name: name, missing: true}
}

// Optional returns an optional member of an object. A missing one reads as zero.
func (v Value) Optional(name string) Value {
	field := v.Field(name)
	field.optional = true
	return field
}

// OrNull returns the same value, with null allowed. Null reads as zero.
func (v Value) OrNull() Value {
	v.nullable = true
	return v
}

// IsSet reports whether the value is present, and not an allowed null.
func (v Value) IsSet() bool {
	return !v.missing && (!v.nullable || v.doc.nodes[v.node].kind != null)
}

// Text returns a string of least to most code points; least is 0 or 1.
func (v Value) Text(least, most int) string {
	raw, ok := v.read(text, "a string")
	if !ok {
		return ""
	}
	switch length := utf8.RuneCount(raw); {
	case length < least:
		v.Refuse("must not be empty")
	case length > most:
		v.Refuse(fmt.Sprintf("must have at most %d characters", most))
	default:
		return string(raw)
	}
	return ""
}

// OneOf returns a string with one of the known values.
func OneOf[S ~string](v Value, known ...S) S {
	switch {
	case v.IsSet() && v.doc.nodes[v.node].kind == text:
		for _, word := range known {
			if string(v.doc.nodes[v.node].text) == string(word) {
				return word
			}
		}
		v.Refuse("must be one of " + join(known))
	case v.IsSet():
		v.Refuse("must be a string, one of " + join(known))
	case v.missing && !v.optional:
		v.Refuse("is missing; it is one of " + join(known))
	}
	return ""
}

func join[S ~string](words []S) string {
	var b strings.Builder
	for i, word := range words {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(word))
	}
	return b.String()
}

// Time returns a time in RFC 3339 format.
func (v Value) Time() time.Time {
	raw, ok := v.read(text, "a string")
	if !ok {
		return time.Time{}
	}
	t, ok := ParseTime(string(raw))
	if !ok {
		v.Refuse("must be a time in RFC 3339 form, such as 2026-12-01T09:00:00Z")
	}
	return t
}

// Bool returns a boolean.
func (v Value) Bool() bool {
	raw, ok := v.read(boolean, "a boolean")
	return ok && raw[0] == 't'
}

// Number returns a number within bounds.
func (v Value) Number(least, most float64) float64 {
	raw, ok := v.read(number, "a number")
	if !ok {
		return 0
	}
	n, err := strconv.ParseFloat(string(raw), 64)
	switch {
	case err != nil:
		v.Refuse("is a larger number than can be read")
	case n < least:
		v.Refuse("must be at least " + strconv.FormatFloat(least, 'f', -1, 64))
	case n > most:
		v.Refuse("must be at most " + strconv.FormatFloat(most, 'f', -1, 64))
	default:
		return n
	}
	return 0
}

// Object reports whether the value is an object, whose fields can be read.
func (v Value) Object() bool {
	_, ok := v.read(object, "an object")
	return ok
}

// List returns an array of least to most items; least is 0 or 1. It is nil if the array is missing or empty, or has a
// different number of items.
func List[T any](v Value, least, most int, item func(Value) T) []T {
	if _, ok := v.read(array, "an array"); !ok {
		return nil
	}
	nodes, count := v.doc.nodes, 0
	for i := v.node + 1; i < nodes[v.node].next; i = nodes[i].next {
		count++
	}
	switch {
	case count < least:
		v.Refuse(fmt.Sprintf("must have at least %d item", least))
		return nil
	case count > most:
		v.Refuse(fmt.Sprintf("must have at most %d items", most))
		return nil
	case count == 0:
		return nil
	}
	list := make([]T, 0, count)
	for i := v.node + 1; i < nodes[v.node].next; i = nodes[i].next {
		list = append(list, item(Value{doc: v.doc, node: i}))
	}
	return list
}

// Pointer returns a pointer to an optional value, or nil if it is not set.
func Pointer[T any](v Value, read func(Value) T) *T {
	if !v.IsSet() {
		return nil
	}
	return new(read(v))
}

// read returns the text of a value of the given kind. It returns false for a missing or null value, and records a
// problem unless that is allowed; for another kind it records a problem and returns false.
func (v Value) read(want kind, called string) (raw []byte, ok bool) {
	switch {
	case v.missing && v.optional:
		return nil, false
	case v.missing:
		v.Refuse("is missing")
		return nil, false
	case !v.IsSet():
		return nil, false
	}
	n := &v.doc.nodes[v.node]
	if n.kind == want {
		return n.text, true
	}
	if v.nullable {
		called += " or null"
	}
	v.Refuse("must be " + called)
	return nil, false
}

// Refuse records a problem with the value.
func (v Value) Refuse(problem string) {
	if len(v.doc.problems) == ShownProblems {
		v.doc.more++
		return
	}
	v.doc.problems = append(v.doc.problems, v.Path()+": "+problem)
}

// Path returns the path of the value in its document, such as targets[1].caption.
func (v Value) Path() string {
	path := v.doc.path(v.node)
	if v.missing {
		return strings.TrimPrefix(path+"."+v.name, ".")
	}
	return path
}

// Problems returns the problems of the whole document in reading order: the first ShownProblems as text, and the number
// of others.
func (v Value) Problems() (first []string, more int) { return v.doc.problems, v.doc.more }

func (d *document) path(i int) string {
	parent := d.nodes[i].parent
	if parent < 0 {
		return ""
	}
	path := d.path(parent)
	if d.nodes[parent].kind == array {
		index := 0
		for j := parent + 1; j != i; j = d.nodes[j].next {
			index++
		}
		return path + "[" + strconv.Itoa(index) + "]"
	}
	name := short(string(d.nodes[i].name))
	if d.nodes[parent].parent < 0 {
		return name
	}
	return path + "." + name
}

func short(name string) string {
	if runes := []rune(name); len(runes) > maxName {
		return string(runes[:maxName]) + "…"
	}
	return name
}
