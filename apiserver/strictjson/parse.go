// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package strictjson parses JSON objects from untrusted clients. It rejects input that two parsers could interpret
// differently (RFC 7493): duplicate names in an object, invalid UTF-8, and unpaired surrogates. It also rejects the NUL
// character, which cannot be stored. Its limits apply during parsing, so a document takes at most a few times its size
// in memory.
//
// Parse parses a document in one pass. The methods of Value then convert it to the expected types and collect problems,
// with their paths. All errors and problems are worded for the client. The package is independent of HTTP.
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
	// MaxDepth limits how deeply objects and arrays in a document are nested. The API's deepest value, a media id on a
	// card, is at level four; ignored values may be deeper.
	MaxDepth = 64
	// MaxValues limits the number of values in a document, including objects and arrays. The API's largest post, a tree
	// of 100 cards with 100 media ids each to 100 targets, has 10,506.
	MaxValues = 1 << 14
	// MaxNames limits the members of an object. It is low enough to compare each name with all previous ones without a
	// map. The API's objects have at most ten.
	MaxNames = 256
	// firstNodes is the initial capacity in nodes; a typical post has about ten.
	firstNodes = 16
	// ShownProblems limits how many of a document's problems are formatted, to the number that a response shows
	// (bridge.JoinFirst). The others are only counted. Otherwise the messages for a document of MaxValues invalid
	// values would be larger than the document.
	ShownProblems = 20
)

type kind uint8

const (
	object kind = iota
	array
	text
	number
	boolean
	null
)

// node is one value. Nodes are stored in the order in which they start, so an object's or array's first member directly
// follows it.
type node struct {
	kind kind
	// used is set when a reader requests the value by its name, and entered when it requests one of its members.
	used, entered bool
	// name is the value's decoded name in its object.
	name []byte
	// text is the decoded string, or the source text of any other scalar.
	text []byte
	// parent is the index of the enclosing object or array, -1 for the root; next is the index of the first node after the
	// value and its content.
	parent, next int
}

// document is the parsed input, with the problems found so far.
type document struct {
	nodes []node
	// problems are the first problems, and more is the number of others.
	problems []string
	more     int
}

type parser struct {
	document

	body []byte
	at   int
}

// errSyntax means that a body is not JSON; Parse adds the details.
var errSyntax = errors.New("not valid JSON")

// Parse parses a body, which must be one JSON object and must not be modified afterwards.
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
		return Value{}, fmt.Errorf("the body continues after its JSON object, at byte %d; send only one object", p.at+1)
	case p.nodes[0].kind != object:
		return Value{}, errors.New("the body must be a JSON object")
	}
	return Value{doc: &p.document}, nil
}

// invalidUTF8 returns the position of the first invalid byte, counted from 1, or -1 if there is none.
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

// syntaxError returns a body's syntax error, in encoding/json's words.
func syntaxError(body []byte) error {
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(body)).Decode(&value)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("the body is not valid JSON: %w at byte %d", syntax, syntax.Offset)
	}
	return errors.New("the body is not valid JSON: it ends unexpectedly")
}

// more skips white space and reports whether there is more input.
func (p *parser) more() bool {
	for ; p.at < len(p.body); p.at++ {
		if c := p.body[p.at]; c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			return true
		}
	}
	return false
}

// consume skips white space and consumes the byte c if it is next.
func (p *parser) consume(c byte) bool { return p.more() && p.skip(c) }

// value parses one value, at level depth.
func (p *parser) value(parent int, name []byte, depth int) error {
	i := len(p.nodes)
	if i == MaxValues {
		return fmt.Errorf("the body contains more than %d values", MaxValues)
	}
	if i == cap(p.nodes) {
		p.nodes = slices.Grow(p.nodes, max(i, firstNodes)) // append would grow in more and smaller steps
	}
	p.nodes = append(p.nodes, node{name: name, parent: parent})
	if !p.more() {
		return errSyntax
	}
	var err error
	switch c := p.body[p.at]; c {
	case '{', '[':
		if depth == MaxDepth {
			return fmt.Errorf("the body is nested deeper than %d levels", MaxDepth)
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

// items parses a comma-separated list of items, up to and including the closing bracket.
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
			raw, _ = unescape(raw) // a name with invalid escapes matches no field
		}
		if p.repeats(i, raw) {
			p.nodes = append(p.nodes, node{name: raw, parent: i})
			return p.refuse(len(p.nodes)-1, "appears twice in its object")
		}
		if !p.consume(':') {
			return errSyntax
		}
		return p.value(i, raw, depth)
	})
}

// repeats reports whether object i already has a member with this name.
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

func (p *parser) skip(c byte) bool {
	if p.at == len(p.body) || p.body[p.at] != c {
		return false
	}
	p.at++
	return true
}

func (p *parser) refuse(i int, problem string) error {
	path := p.path(i)
	if i == 0 {
		path = "the body"
	}
	return errors.New(path + ": " + problem)
}
