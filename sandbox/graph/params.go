// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package graph

import (
	"bytes"
	"encoding/json"
	"maps"
	"mime"
	"mime/multipart"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
)

// tokenParam is the parameter that carries an access token when the Authorization header does not.
const tokenParam = "access_token"

// Params are a call's parameters, from the query and a form. The first invalid parameter is stored for Validate.
type Params struct {
	values map[string]string
	read   []string
	// lenient ignores unread parameters.
	lenient bool
	bad     *Error
}

// readParams collects a request's parameters. Besides urlencoded forms, the platform accepts multipart forms, which its
// own samples use (curl -F), and JSON, which its own SDK for Node.js sends.
func (a *API) readParams(r *faults.Request) (*Params, *Error) {
	p := &Params{values: map[string]string{}, read: []string{tokenParam, "appsecret_proof", "locale"}, lenient: a.Lenient}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, BadParam("The query string cannot be read.")
	}
	if bad := p.add(query); bad != nil {
		return nil, bad
	}
	if len(r.Content) == 0 {
		return p, nil
	}
	form, ok := simulator.ReadForm(r)
	if !ok {
		form, ok = readTextParts(r)
	}
	if !ok {
		form, ok = readObject(r)
	}
	if !ok {
		return nil, BadParam("The form cannot be read.")
	}
	if bad := p.add(form); bad != nil {
		return nil, bad
	}
	return p, nil
}

// readObject reads the fields of a JSON object: strings unquoted, other values in their JSON form.
func readObject(r *faults.Request) (url.Values, bool) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil, false
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(r.Content, &fields); err != nil {
		return nil, false
	}
	values := url.Values{}
	for name, content := range fields {
		values.Set(name, textOf(content))
	}
	return values, true
}

// textOf returns a JSON value as a parameter.
func textOf(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) != nil {
		return string(value)
	}
	return text
}

// readTextParts reads a multipart form. It keeps only the names of files, so that they can be rejected.
func readTextParts(r *faults.Request) (url.Values, bool) {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return nil, false
	}
	form, err := multipart.NewReader(bytes.NewReader(r.Content), params["boundary"]).ReadForm(maxText)
	if err != nil {
		return nil, false
	}
	defer func() { _ = form.RemoveAll() }() // the whole form is in memory, so there is no file to remove
	values := url.Values(form.Value)
	for name := range form.File {
		values.Add(name, "")
	}
	return values, true
}

func (p *Params) add(values url.Values) *Error {
	for name, all := range values {
		if before, found := p.values[name]; found && before != all[0] || len(all) > 1 {
			return BadParam("Param %s was given more than once.", name)
		}
		if !utf8.ValidString(all[0]) {
			return BadParam("Param %s must be valid UTF-8.", name)
		}
		p.values[name] = all[0]
	}
	return nil
}

// Rejectf records an error about a parameter, unless there is an earlier error.
func (p *Params) Rejectf(format string, args ...any) {
	if p.bad == nil {
		p.bad = BadParam(format, args...)
	}
}

// Reject records an error, unless there is an earlier error.
func (p *Params) Reject(with *Error) {
	if p.bad == nil {
		p.bad = with
	}
}

// maxAltText is the maximum length of an alt text on Threads and Instagram, in characters. Facebook does not document one;
// the sandbox assumes the same.
const maxAltText = 1000

// AltText returns an alt text, and rejects one that is too long.
func (p *Params) AltText(name string) string {
	text := p.Text(name)
	if utf8.RuneCountInString(text) > maxAltText {
		p.Rejectf("Param %s must be at most %d characters long.", name, maxAltText)
	}
	return text
}

// Has reports whether a parameter is present, even if it is empty.
func (p *Params) Has(name string) bool {
	_, found := p.values[name]
	return found
}

// Text returns a parameter; "" if it is missing.
func (p *Params) Text(name string) string {
	p.read = append(p.read, name)
	return p.values[name]
}

// List returns a list parameter. Like Graph, it accepts comma-separated items and a JSON array, which SDKs send.
func (p *Params) List(name string) []string {
	value := p.Text(name)
	if value == "" {
		return nil
	}
	if !strings.HasPrefix(value, "[") {
		return strings.Split(value, ",")
	}
	var items []json.RawMessage
	if err := json.Unmarshal([]byte(value), &items); err != nil {
		p.Rejectf("Param %s must be an array.", name)
	}
	out := make([]string, len(items))
	for i, item := range items {
		out[i] = textOf(item)
	}
	return out
}

// Required returns a parameter and rejects the call if it is missing.
func (p *Params) Required(name string) string {
	value := p.Text(name)
	if value == "" {
		p.Rejectf("The parameter %s is required.", name)
	}
	return value
}

// Bool returns a boolean parameter.
func (p *Params) Bool(name string, otherwise bool) bool {
	switch p.Text(name) {
	case "":
		return otherwise
	case "true", "1":
		return true
	case "false", "0":
		return false
	default:
		p.Rejectf("Param %s must be a boolean.", name)
		return otherwise
	}
}

// Unsimulated rejects unsupported parameters that affect when or whether an object becomes visible, even in a lenient sandbox.
func (p *Params) Unsimulated(names ...string) {
	for _, name := range names {
		if p.Has(name) {
			p.Rejectf("Param %s is not simulated.", name)
		}
	}
}

// OneOf returns a parameter and rejects values other than the allowed ones; "" if it is missing.
func (p *Params) OneOf(name string, allowed ...string) string {
	value := p.Text(name)
	if value != "" && !slices.Contains(allowed, value) {
		p.Rejectf("Param %s must be one of {%s} - got unexpected value %q.", name, strings.Join(allowed, ", "), value)
	}
	return value
}

// Integer returns an integer parameter within a range.
func (p *Params) Integer(name string, otherwise, minimum, maximum int) int {
	value := p.Text(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < minimum || n > maximum {
		p.Rejectf("Param %s must be an integer from %d to %d.", name, minimum, maximum)
		return otherwise
	}
	return n
}

// Time returns a time parameter in Unix seconds; zero if it is missing.
func (p *Params) Time(name string) time.Time {
	value := p.Text(name)
	if value == "" {
		return time.Time{}
	}
	seconds, err := strconv.ParseInt(value, 10, 64)
	if err != nil {
		p.Rejectf("Param %s must be a Unix timestamp.", name)
		return time.Time{}
	}
	return time.Unix(seconds, 0)
}

// Validate returns the parameters' first error. It also rejects unread parameters, unless the sandbox is lenient. The platform itself
// ignores those: clients send format=json, a node's ID or a redirect with any call.
func (p *Params) Validate() *Error {
	if p.bad != nil || p.lenient {
		return p.bad
	}
	for _, name := range slices.Sorted(maps.Keys(p.values)) {
		if !slices.Contains(p.read, name) {
			p.Rejectf("Param %s is not known to this request.", name)
		}
	}
	return p.bad
}
