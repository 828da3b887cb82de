// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// jsonType is the only media type of request and response bodies in the API.
const jsonType = "application/json"

// view is the data for the page.
type view struct {
	*document

	Site    site
	BaseURL string
	Groups  []group
	Errors  []problem
	Schemas []shape
	// inline contains the schemas that are shown next to an operation, by the operation's id.
	inline map[string]string
}

// site describes where a version of the API is served: the site's address, for examples, and the paths of the page and
// the OpenAPI document, without their extensions.
type site struct{ URL, Page, Document string }

// group contains the operations with one tag.
type group struct {
	Name, Description string
	Operations        []*call
}

// call is an operation.
type call struct {
	*operation

	Method, Path string
	Parameters   []parameter
	// Bodies are the possible shapes of the body. If there are several, the field Chosen selects one. If an earlier
	// operation has the same body, BodyOf is that operation's id instead.
	Bodies   []shape
	Chosen   string
	BodyOf   string
	Requests []example
	Answer   answer
	Errors   []problem
}

// example is a code example.
type example struct{ Title, Text string }

// answer is the successful response of an operation.
type answer struct {
	Status, Description string
	Schema              schema
	Example             string
}

// problem is an error response.
type problem struct {
	Status, Name, Description string
	Headers                   []entry[header]
	Example                   string
	Calls                     []string
}

// shape is a named schema.
type shape struct {
	Name string
	// Choice is the value of the Chosen field that selects this shape.
	Choice string
	schema
}

// Fields returns an object's properties.
func (s *shape) Fields() []parameter {
	out := make([]parameter, len(s.Properties))
	for i, p := range s.Properties {
		out[i] = parameter{Name: p.Name, Required: slices.Contains(s.Required, p.Name), Schema: p.Value, Description: p.Value.Description}
	}
	return out
}

// fillAll fills the view from its document.
func (v *view) fillAll() error {
	for _, tag := range v.Tags {
		g := group{Name: tag.Name, Description: tag.Description}
		for i := range v.Paths {
			calls, err := v.calls(&v.Paths[i], tag.Name)
			if err != nil {
				return err
			}
			g.Operations = append(g.Operations, calls...)
		}
		v.Groups = append(v.Groups, g)
	}
	slices.SortStableFunc(v.Errors, func(a, b problem) int { return strings.Compare(a.Status, b.Status) })
	for _, s := range v.Components.Schemas {
		if v.inline[s.Name] == "" {
			v.Schemas = append(v.Schemas, shape{Name: s.Name, schema: s.Value})
		}
	}
	return nil
}

// calls returns the path's operations that have the tag.
func (v *view) calls(path *entry[pathItem], tag string) ([]*call, error) {
	var out []*call
	for _, m := range []struct {
		method    string
		operation *operation
	}{
		{http.MethodGet, path.Value.Get},
		{http.MethodPost, path.Value.Post},
		{http.MethodPut, path.Value.Put},
		{http.MethodPatch, path.Value.Patch},
		{http.MethodDelete, path.Value.Delete},
	} {
		if m.operation == nil || !slices.Contains(m.operation.Tags, tag) {
			continue
		}
		c := &call{operation: m.operation, Method: m.method, Path: path.Name}
		if err := v.fill(c, path.Value.Parameters); err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func (v *view) fill(c *call, shared []parameter) error {
	for _, p := range slices.Concat(shared, c.operation.Parameters) {
		if p.Ref != "" {
			known, err := v.Components.Parameters.named(p.Ref)
			if err != nil {
				return err
			}
			p = *known
		}
		c.Parameters = append(c.Parameters, p)
	}
	body := c.RequestBody.Content[jsonType]
	if err := v.fillBody(c, &body.Schema); err != nil {
		return err
	}
	if err := v.fillRequests(c, &body); err != nil {
		return err
	}
	for i := range c.Responses {
		if err := v.fillResponse(c, &c.Responses[i]); err != nil {
			return fmt.Errorf("response %s: %w", c.Responses[i].Name, err)
		}
	}
	return nil
}

// fillBody sets the shapes of the call's body.
func (v *view) fillBody(c *call, of *schema) error {
	if of.Ref == "" {
		return nil
	}
	body, err := v.Components.Schemas.named(of.Ref)
	if err != nil {
		return err
	}
	if c.BodyOf = v.inline[refName(of.Ref)]; c.BodyOf != "" {
		return nil
	}
	v.inline[refName(of.Ref)] = c.ID
	choices := body.Discriminator.Mapping
	if len(choices) == 0 {
		c.Bodies = []shape{{Name: refName(of.Ref), schema: *body}}
		return nil
	}
	c.Chosen = body.Discriminator.PropertyName
	for _, choice := range choices {
		chosen, err := v.Components.Schemas.named(choice.Value)
		if err != nil {
			return err
		}
		v.inline[refName(choice.Value)] = c.ID
		c.Bodies = append(c.Bodies, shape{Name: refName(choice.Value), Choice: choice.Name, schema: *chosen})
	}
	return nil
}

// fillRequests adds a command for each example of the body, or one command if there is no body.
func (v *view) fillRequests(c *call, body *media) error {
	examples := body.Examples
	if !body.Example.IsZero() {
		examples = append(ordered[sample]{{Value: sample{Summary: "Request", Value: body.Example}}}, examples...)
	}
	for i := range examples {
		text, err := toJSON(&examples[i].Value.Value)
		if err != nil {
			return err
		}
		c.Requests = append(c.Requests, example{examples[i].Value.Summary, v.curl(c, text)})
	}
	if len(c.Requests) == 0 {
		c.Requests = []example{{"Request", v.curl(c, "")}}
	}
	return nil
}

// curl returns the curl command for a call.
func (v *view) curl(c *call, body string) string {
	path := c.Path
	for _, p := range c.Parameters {
		if p.In == "path" {
			path = strings.ReplaceAll(path, "{"+p.Name+"}", p.Example)
		}
	}
	command := "curl "
	usual := http.MethodGet // what curl sends
	if body != "" {
		usual = http.MethodPost
	}
	if c.Method != usual {
		command += "-X " + c.Method + " "
	}
	command += quote(v.BaseURL+path) + " \\\n  -H \"Authorization: Bearer $HERALD_API_KEY\""
	if body != "" {
		command += " \\\n  -H 'Content-Type: " + jsonType + "' \\\n  -d " + quote(body)
	}
	return command
}

// quote quotes text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (v *view) fillResponse(c *call, of *entry[response]) error {
	known := &of.Value
	if known.Ref != "" {
		var err error
		if known, err = v.Components.Responses.named(known.Ref); err != nil {
			return err
		}
	}
	body, text := known.Content[jsonType], ""
	if !body.Example.IsZero() {
		var err error
		if text, err = toJSON(&body.Example); err != nil {
			return err
		}
	}
	if strings.HasPrefix(of.Name, "2") {
		c.Answer = answer{Status: of.Name, Description: known.Description, Schema: body.Schema, Example: text}
		return nil
	}
	p := problem{Status: of.Name, Name: refName(of.Value.Ref), Description: known.Description, Example: text}
	for _, h := range known.Headers {
		if h.Value.Ref != "" {
			named, err := v.Components.Headers.named(h.Value.Ref)
			if err != nil {
				return err
			}
			h.Value = *named
		}
		p.Headers = append(p.Headers, h)
	}
	c.Errors = append(c.Errors, p)
	i := slices.IndexFunc(v.Errors, func(other problem) bool { return other.Name == p.Name })
	if i < 0 {
		i = len(v.Errors)
		v.Errors = append(v.Errors, p)
	}
	v.Errors[i].Calls = append(v.Errors[i].Calls, c.ID)
	return nil
}

// TypeName returns the name of the value's type.
func (s *schema) TypeName() string {
	text := s.Type
	switch {
	case s.Ref != "":
		return refName(s.Ref)
	case s.Items != nil:
		text = "array of " + s.Items.TypeName()
	case s.Type == "":
		text = "any"
	case s.Format != "":
		text += ", " + s.Format
	}
	if s.Nullable {
		text += ", or null"
	}
	return text
}

// Bounds returns the value's limits.
func (s *schema) Bounds() []string {
	var out []string
	for _, b := range []struct{ least, most, unit string }{
		{s.MinLength, s.MaxLength, " characters"},
		{s.MinItems, s.MaxItems, " items"},
		{s.Minimum, s.Maximum, ""},
	} {
		switch {
		case b.least != "" && b.most != "":
			out = append(out, b.least+" to "+b.most+b.unit)
		case b.least == "1":
			out = append(out, "at least 1"+strings.TrimSuffix(b.unit, "s"))
		case b.least != "":
			out = append(out, "at least "+b.least+b.unit)
		case b.most != "":
			out = append(out, "at most "+b.most+b.unit)
		}
	}
	if !s.Default.IsZero() {
		out = append(out, "default "+s.Default.Value)
	}
	return out
}
