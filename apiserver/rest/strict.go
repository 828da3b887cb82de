// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/go-faster/jx"
	"github.com/ogen-go/ogen/middleware"
	"github.com/ogen-go/ogen/openapi"

	"github.com/herald-social/herald/apiserver/bridge"
)

const (
	// maxDepth is how deep a body may nest. The deepest that the API describes,
	// a media id of a card, lies in four; what is ignored may lie deeper.
	maxDepth = 64
	// fewNames is up to how many names of one object are compared one by one,
	// which is faster than a map for as many as the API describes.
	fewNames = 16
	// maxName is how many characters of a name a message tells.
	maxName = 64
)

// notUTF8 is said to a body that is JSON in all but its encoding.
const notUTF8 = "the body is not valid UTF-8"

// strictly refuses what the generated server would let through and understand
// in one of several ways.
func strictly(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	problem := checkQuery(&req)
	if problem == "" && len(req.RawBody) > 0 {
		problem = checkJSON(req.RawBody)
	}
	if problem != "" {
		return middleware.Response{}, &bridge.Error{Code: bridge.CodeValidation, Message: problem}
	}
	return next(req)
}

// checkQuery says what is wrong with the query of an operation that has one.
// What net/url cannot read it leaves out, which would drop a filter.
func checkQuery(req *middleware.Request) (problem string) {
	raw := req.Raw.URL.RawQuery
	// Without these characters there is one parameter at most, as it is read.
	if !strings.ContainsAny(raw, "&;%") || !hasQuery(req.Params) {
		return ""
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return "the query cannot be read: " + err.Error()
	}
	for param := range req.Params {
		if param.In == openapi.LocationQuery && len(values[param.Name]) > 1 {
			return twice(param.Name)
		}
	}
	return ""
}

func hasQuery(params middleware.Parameters) bool {
	for param := range params {
		if param.In == openapi.LocationQuery {
			return true
		}
	}
	return false
}

func twice(parameter string) string { return parameter + ": stands in the query more than once" }

// checkJSON says what makes a body ambiguous or unfit to be stored although it
// is JSON: names that stand twice in an object, halves of surrogate pairs and
// bytes that are no UTF-8, of which decoders make different things (RFC 7493),
// the NUL character, and more nesting than anybody needs. It says nothing about
// a body that is no JSON.
func checkJSON(body []byte) (problem string) {
	if !utf8.Valid(body) {
		return notUTF8
	}
	d := jx.GetDecoder()
	defer jx.PutDecoder(d)
	d.ResetBytes(body)
	c := jsonCheck{}
	_ = c.value(d) // what is no JSON is the generated decoder's to refuse
	return c.problem
}

// jsonCheck walks through a JSON value.
type jsonCheck struct {
	// path leads to the value that is looked at.
	path []step
	// problem is what was found; it ends the walk.
	problem string
}

// step is the index of an item, or below zero the name of a field.
type step struct {
	index int
	name  string
}

var errFound = errors.New("found a problem")

func (c *jsonCheck) value(d *jx.Decoder) error {
	switch d.Next() {
	case jx.Object:
		return c.object(d)
	case jx.Array:
		return c.array(d)
	case jx.String:
		raw, err := d.Raw()
		if err != nil {
			return err
		}
		if what := badEscape(raw); what != "" {
			return c.found(what)
		}
		return nil
	case jx.Number, jx.Null, jx.Bool, jx.Invalid:
		return d.Skip()
	default:
		return d.Skip()
	}
}

func (c *jsonCheck) object(d *jx.Decoder) error {
	if err := c.enter(); err != nil {
		return err
	}
	var seen names
	err := d.ObjBytes(func(d *jx.Decoder, key []byte) error {
		last := &c.path[len(c.path)-1]
		last.name = string(key)
		if !seen.add(last.name) {
			return c.found("stands twice in its object")
		}
		return c.value(d)
	})
	return c.leave(err)
}

func (c *jsonCheck) array(d *jx.Decoder) error {
	if err := c.enter(); err != nil {
		return err
	}
	last := len(c.path) - 1
	err := d.Arr(func(d *jx.Decoder) error {
		c.path[last].index++
		return c.value(d)
	})
	return c.leave(err)
}

func (c *jsonCheck) enter() error {
	if len(c.path) == maxDepth {
		c.problem = fmt.Sprintf("the body nests deeper than %d levels", maxDepth)
		return errFound
	}
	c.path = append(c.path, step{index: -1})
	return nil
}

// leave steps out of an object or array, unless the walk ends in it.
func (c *jsonCheck) leave(err error) error {
	if err == nil {
		c.path = c.path[:len(c.path)-1]
	}
	return err
}

func (c *jsonCheck) found(what string) error {
	var path strings.Builder
	for i, s := range c.path {
		switch {
		case s.index >= 0:
			path.WriteString("[" + strconv.Itoa(s.index) + "]")
		case i > 0:
			path.WriteString("." + short(s.name))
		default:
			path.WriteString(short(s.name))
		}
	}
	c.problem = path.String() + ": " + what
	return errFound
}

// short keeps a message short that tells a name of the client's making.
func short(name string) string {
	if runes := []rune(name); len(runes) > maxName {
		return string(runes[:maxName]) + "…"
	}
	return name
}

// names are those that an object has.
type names struct {
	few  []string
	many map[string]struct{}
}

// add takes a name in; false means that it was there already.
func (n *names) add(name string) bool {
	if n.many == nil && len(n.few) < fewNames {
		if slices.Contains(n.few, name) {
			return false
		}
		n.few = append(n.few, name)
		return true
	}
	if n.many == nil {
		n.many = make(map[string]struct{}, 4*fewNames)
		for _, known := range n.few {
			n.many[known] = struct{}{}
		}
	}
	before := len(n.many)
	n.many[name] = struct{}{}
	return len(n.many) > before
}

// badEscape says which escape of a JSON string, as it is written, stands for no
// character that can be stored and published.
func badEscape(raw []byte) string {
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 || i+1 == len(raw) {
			return ""
		}
		raw = raw[i:]
		if raw[1] != 'u' {
			raw = raw[2:]
			continue
		}
		unit := codeUnit(raw)
		raw = raw[2:]
		switch {
		case unit == 0:
			return `must not hold the NUL character (\u0000)`
		case utf16.IsSurrogate(unit):
			low := raw[min(4, len(raw)):]
			if utf16.DecodeRune(unit, codeUnit(low)) == utf8.RuneError {
				return fmt.Sprintf(`holds half a surrogate pair (\u%04x); send the whole character`, unit)
			}
			raw = low[2:]
		}
	}
}

// codeUnit reads the escape, such as \u00e4, that a text begins with; -1 if it
// begins with none.
func codeUnit(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
