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

// maxName is how many characters of a name a path shows.
const maxName = 64

// Value is a value of a document, or the place of one that is missing. Its
// methods that read it as a type record a problem in the document and return
// the zero value if it is not what it has to be.
type Value struct {
	doc *document
	// node is the value's; of a missing one, its parent's.
	node int
	// name is that of a missing value.
	name string
	// optional values may be missing, nullable ones null.
	missing, optional, nullable bool
}

// Field returns a member of an object that has to be there.
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

// Optional returns a member of an object that may be missing. Read as a type,
// it is zero then.
func (v Value) Optional(name string) Value {
	field := v.Field(name)
	field.optional = true
	return field
}

// OrNull returns the same value, which may be null. Read as a type, it is zero
// then.
func (v Value) OrNull() Value {
	v.nullable = true
	return v
}

// IsSet reports whether the value is there, and not a null that is allowed.
func (v Value) IsSet() bool {
	return !v.missing && (!v.nullable || v.doc.nodes[v.node].kind != null)
}

// Text reads a string of so many characters (code points); least is 0 or 1.
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

// OneOf reads a string that is one of those known.
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

// Time reads a time in RFC 3339 form.
func (v Value) Time() time.Time {
	raw, ok := v.read(text, "a string")
	if !ok {
		return time.Time{}
	}
	t, ok := timeOf(string(raw))
	if !ok {
		v.Refuse("must be a time in RFC 3339 form, such as 2026-12-01T09:00:00Z")
	}
	return t
}

// Bool reads true or false.
func (v Value) Bool() bool {
	raw, ok := v.read(boolean, "a boolean")
	return ok && raw[0] == 't'
}

// Number reads a number within bounds.
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

// List reads an array of so many items; least is 0 or 1. It is nil if the array
// is missing, empty or has another number of items.
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

// Pointer reads an optional value and returns nil if it was not given.
func Pointer[T any](v Value, read func(Value) T) *T {
	if !v.IsSet() {
		return nil
	}
	return new(read(v))
}

// read returns the text of a value that has to be of a kind. It is false, after
// a problem has been recorded, for another kind, and for a value that is
// missing or null.
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

// Path is where the value is in its document, such as targets[1].caption.
func (v Value) Path() string {
	path := v.doc.path(v.node)
	if v.missing {
		return strings.TrimPrefix(path+"."+v.name, ".")
	}
	return path
}

// Problems are those that have been recorded of the whole document, in the
// order in which it was read: the first ShownProblems in words, and how many
// there are more.
func (v Value) Problems() (first []string, more int) { return v.doc.problems, v.doc.more }

// path is where a node is in the document.
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

// short keeps a path short that shows a name of the client's making.
func short(name string) string {
	if runes := []rune(name); len(runes) > maxName {
		return string(runes[:maxName]) + "…"
	}
	return name
}
