// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strictjson reads JSON objects from strangers. It refuses what two
// readers could understand differently (RFC 7493): names that occur twice in
// an object, bytes that are not UTF-8, halves of surrogate pairs; and the NUL
// character, which cannot be stored. It counts while it reads, so that the
// memory for a document is bounded by a few times its size.
//
// Parse reads a document in one pass. The methods of Value then read it as
// what it should be and collect what is wrong with it, with paths. All errors
// and problems are worded for the client. The package knows no HTTP.
package strictjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"unicode/utf8"
)

const (
	// MaxDepth is how many levels of objects and arrays a document may have. The
	// deepest value that the API describes, a media id of a card, lies in four;
	// what is ignored may lie deeper.
	MaxDepth = 64
	// MaxValues is how many values a document may hold, objects and arrays
	// included. The largest post that the API describes, a tree of 100 cards with
	// 100 media ids each to 100 targets, has 10,506.
	MaxValues = 1 << 14
	// MaxNames is how many members an object may have: so few that comparing each
	// name with all before it needs no map. The API describes up to ten.
	MaxNames = 256
	// firstNodes is for how many nodes there is space at first; a usual post has
	// about ten.
	firstNodes = 16
	// ShownProblems is how many problems of a document are worded, as many as an answer
	// names (bridge.JoinFirst). Further ones are counted only: a document of MaxValues wrong values would otherwise cost more in
	// words than in bytes.
	ShownProblems = 20
)

// kind is the type of a value.
type kind uint8

const (
	object kind = iota
	array
	text
	number
	boolean
	null
)

// node is one value. A document keeps its nodes in the order in which they
// begin, so the first member of an object or array directly follows it.
type node struct {
	kind kind
	// used says that a reader has asked for the value by its name, and entered that one has asked for a member of it.
	used, entered bool
	// name is the value's name in its object, decoded.
	name []byte
	// text is a string, decoded, or another scalar as it is written.
	text []byte
	// parent is the object or array that holds the value, -1 for the root; next is
	// the first node after the value and everything in it.
	parent, next int
}

// document is what Parse read, and what was found wrong with it since.
type document struct {
	nodes []node
	// problems are the first ones, and more says how many followed.
	problems []string
	more     int
}

// parser reads a document from its first byte to its last.
type parser struct {
	document

	body []byte
	at   int
}

// errSyntax says that a body is not JSON; Parse words why.
var errSyntax = errors.New("not valid JSON")

// Parse reads a body that has to be one JSON object. The result refers to the
// body, which must not change afterwards.
func Parse(body []byte) (Value, error) {
	if len(body) == 0 {
		return Value{}, errors.New("the body is empty; send a JSON object")
	}
	if at := invalidUTF8(body); at >= 0 {
		return Value{}, fmt.Errorf("the body is not valid UTF-8 at byte %d; send JSON in UTF-8", at)
	}
	p := &parser{body: body}
	err := p.value(-1, nil, 0)
	switch {
	case errors.Is(err, errSyntax):
		return Value{}, syntaxError(body)
	case err != nil:
		return Value{}, err
	case p.more():
		return Value{}, fmt.Errorf("the body goes on after its JSON object, at byte %d; send one object only", p.at+1)
	case p.nodes[0].kind != object:
		return Value{}, errors.New("the body must be a JSON object")
	}
	return Value{doc: &p.document}, nil
}

// invalidUTF8 is the number of the first byte, counted from 1, that belongs to no character; -1 if there is none.
func invalidUTF8(body []byte) int {
	if utf8.Valid(body) {
		return -1
	}
	at := 0
	for {
		r, size := utf8.DecodeRune(body[at:])
		if r == utf8.RuneError && size <= 1 {
			return at + 1
		}
		at += size
	}
}

// syntaxError words what makes a body invalid JSON in the words of
// encoding/json.
func syntaxError(body []byte) error {
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(body)).Decode(&value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the body is not valid JSON: %w at byte %d", syntax, syntax.Offset)
	}
	return errors.New("the body is not valid JSON: it ends too early")
}

// more skips white space and reports whether anything follows.
func (p *parser) more() bool {
	for ; p.at < len(p.body); p.at++ {
		if c := p.body[p.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return true
		}
	}
	return false
}

// consume skips white space and reads the byte c, if it follows.
func (p *parser) consume(c byte) bool { return p.more() && p.skip(c) }

// value reads one value, depth levels deep.
func (p *parser) value(parent int, name []byte, depth int) error {
	i := len(p.nodes)
	if i == MaxValues {
		return fmt.Errorf("the body holds more than %d values", MaxValues)
	}
	if i == cap(p.nodes) {
		p.nodes = slices.Grow(p.nodes, max(i, firstNodes)) // append would make more, smaller steps
	}
	p.nodes = append(p.nodes, node{name: name, parent: parent})
	if !p.more() {
		return errSyntax
	}
	var err error
	switch c := p.body[p.at]; c {
	case '{', '[':
		if depth == MaxDepth {
			return fmt.Errorf("the body nests deeper than %d levels", MaxDepth)
		}
		p.at++
		if c == '{' {
			err = p.object(i, depth+1)
		} else {
			err = p.array(i, depth+1)
		}
	case '"':
		err = p.string(i)
	default:
		err = p.scalar(i)
	}
	p.nodes[i].next = len(p.nodes)
	return err
}

// items reads what stands between brackets, up to the closing one: items, separated
// by commas.
func (p *parser) items(closing byte, item func() error) error {
	if p.consume(closing) {
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		switch {
		case p.consume(','):
		case p.consume(closing):
			return nil
		default:
			return errSyntax
		}
	}
}

func (p *parser) array(i, depth int) error {
	p.nodes[i].kind = array
	return p.items(']', func() error { return p.value(i, nil, depth) })
}

func (p *parser) object(i, depth int) error {
	p.nodes[i].kind = object
	count := 0
	return p.items('}', func() error {
		if count == MaxNames {
			return p.refuse(i, fmt.Sprintf("has more than %d names", MaxNames))
		}
		count++
		raw, escaped, ok := p.quoted()
		if !ok {
			return errSyntax
		}
		if escaped {
			raw, _ = unescape(raw) // a name that stands for no text is the name of no field
		}
		if p.repeats(i, raw) {
			p.nodes = append(p.nodes, node{name: raw, parent: i})
			return p.refuse(len(p.nodes)-1, "stands twice in its object")
		}
		if !p.consume(':') {
			return errSyntax
		}
		return p.value(i, raw, depth)
	})
}

// repeats reports whether object i has a member of this name already.
func (p *parser) repeats(i int, name []byte) bool {
	for j := i + 1; j < len(p.nodes); j = p.nodes[j].next {
		if bytes.Equal(p.nodes[j].name, name) {
			return true
		}
	}
	return false
}

func (p *parser) string(i int) error {
	raw, escaped, ok := p.quoted()
	if !ok {
		return errSyntax
	}
	var problem string
	if escaped {
		raw, problem = unescape(raw)
	}
	p.nodes[i].kind, p.nodes[i].text = text, raw
	if problem != "" {
		return p.refuse(i, problem)
	}
	return nil
}

// scalar reads a number, true, false or null.
func (p *parser) scalar(i int) error {
	rest := p.body[p.at:]
	if end := bytes.IndexAny(rest, " \t\r\n,:\"[]{}"); end >= 0 {
		rest = rest[:end]
	}
	if !json.Valid(rest) {
		return errSyntax
	}
	n := &p.nodes[i]
	n.text = rest
	switch rest[0] {
	case 't', 'f':
		n.kind = boolean
	case 'n':
		n.kind = null
	default:
		n.kind = number
	}
	p.at += len(rest)
	return nil
}

// skip reads the byte c, if it follows at once.
func (p *parser) skip(c byte) bool {
	if p.at == len(p.body) || p.body[p.at] != c {
		return false
	}
	p.at++
	return true
}

// refuse is the error of a value that cannot be accepted, with its path.
func (p *parser) refuse(i int, problem string) error {
	path := p.path(i)
	if i == 0 {
		path = "the body"
	}
	return errors.New(path + ": " + problem)
}
