// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// jsonType is the only media type of the API's bodies.
const jsonType = "application/json"

// view is the content of the page.
type view struct {
	Title       string
	Version     string
	Description string
	LicenseName string
	LicenseURL  string
	SiteURL     string
	BaseURL     string
	Groups      []group
	Errors      []problem
	Schemas     []shape
}

// group has the operations of a tag.
type group struct {
	Name, Description string
	Operations        []*call
}

// call is an operation.
type call struct {
	ID, Method, Path     string
	Summary, Description string
	Parameters           []parameter
	// Bodies are the shapes of the body. If there are several, the field Chosen selects one.
	Bodies   []shape
	Chosen   string
	Requests []example
	Answer   answer
	Errors   []problem
}

// example is a code example.
type example struct{ Title, Text string }

// answer is the successful response of an operation.
type answer struct {
	Status, Description string
	Schema              *schema
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
	// Choice is the value of the field that selects this shape.
	Choice string
	schema
}

// Field is a property of an object.
type Field struct {
	Name     string
	Required bool
	Schema   schema
}

// Fields returns the properties of an object.
func (s shape) Fields() []Field {
	out := make([]Field, len(s.Properties))
	for i, p := range s.Properties {
		out[i] = Field{Name: p.Name, Required: slices.Contains(s.Required, p.Name), Schema: p.Value}
	}
	return out
}

// viewer builds the view of a document.
type viewer struct {
	document *document
	siteURL  string
	baseURL  string
	problems []problem
	// inline are the schemas that are shown with their operation.
	inline map[string]bool
}

func (v *viewer) view() (*view, error) {
	d := v.document
	out := &view{
		Title: d.Info.Title, Version: d.Info.Version, Description: d.Info.Description, SiteURL: v.siteURL, BaseURL: v.baseURL,
		LicenseName: d.Info.License.Name, LicenseURL: d.Info.License.URL,
	}
	for _, tag := range d.Tags {
		g := group{Name: tag.Name, Description: tag.Description}
		for i := range d.Paths {
			calls, err := v.calls(&d.Paths[i], tag.Name)
			if err != nil {
				return nil, err
			}
			g.Operations = append(g.Operations, calls...)
		}
		out.Groups = append(out.Groups, g)
	}
	slices.SortStableFunc(v.problems, func(a, b problem) int { return strings.Compare(a.Status, b.Status) })
	out.Errors = v.problems
	for _, s := range d.Components.Schemas {
		if !v.inline[s.Name] {
			out.Schemas = append(out.Schemas, shape{Name: s.Name, schema: s.Value})
		}
	}
	return out, nil
}

// calls returns the operations of a path with a tag.
func (v *viewer) calls(path *entry[pathItem], tag string) ([]*call, error) {
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
		c := &call{
			ID: m.operation.ID, Method: m.method, Path: path.Name,
			Summary: m.operation.Summary, Description: m.operation.Description,
		}
		if err := v.fill(c, m.operation, path.Value.Parameters); err != nil {
			return nil, fmt.Errorf("%s: %w", c.ID, err)
		}
		out = append(out, c)
	}
	return out, nil
}

func (v *viewer) fill(c *call, o *operation, shared []parameter) error {
	for _, p := range slices.Concat(shared, o.Parameters) {
		if p.Ref != "" {
			known, err := v.document.Components.Parameters.named(p.Ref)
			if err != nil {
				return err
			}
			p = *known
		}
		c.Parameters = append(c.Parameters, p)
	}
	body := o.RequestBody.Content[jsonType]
	if err := v.fillBody(c, &body.Schema); err != nil {
		return err
	}
	if err := v.fillRequests(c, &body); err != nil {
		return err
	}
	for i := range o.Responses {
		if err := v.fillResponse(c, &o.Responses[i]); err != nil {
			return fmt.Errorf("response %s: %w", o.Responses[i].Name, err)
		}
	}
	return nil
}

// fillBody sets the shapes of a body.
func (v *viewer) fillBody(c *call, of *schema) error {
	if of.Ref == "" {
		return nil
	}
	body, err := v.document.Components.Schemas.named(of.Ref)
	if err != nil {
		return err
	}
	v.inline[refName(of.Ref)] = true
	choices := body.Discriminator.Mapping
	if len(choices) == 0 {
		c.Bodies = []shape{{Name: refName(of.Ref), schema: *body}}
		return nil
	}
	c.Chosen = body.Discriminator.PropertyName
	for _, choice := range choices {
		chosen, err := v.document.Components.Schemas.named(choice.Value)
		if err != nil {
			return err
		}
		v.inline[refName(choice.Value)] = true
		c.Bodies = append(c.Bodies, shape{Name: refName(choice.Value), Choice: choice.Name, schema: *chosen})
	}
	return nil
}

// fillRequests adds a command for each example of a body, or one without a body.
func (v *viewer) fillRequests(c *call, body *media) error {
	if !body.Example.IsZero() {
		text, err := toJSON(&body.Example)
		if err != nil {
			return err
		}
		c.Requests = append(c.Requests, example{"Request", v.curl(c, text)})
	}
	for i := range body.Examples {
		e := &body.Examples[i].Value
		text, err := toJSON(&e.Value)
		if err != nil {
			return err
		}
		c.Requests = append(c.Requests, example{e.Summary, v.curl(c, text)})
	}
	if len(c.Requests) == 0 {
		c.Requests = []example{{"Request", v.curl(c, "")}}
	}
	return nil
}

// curl returns the command for a call.
func (v *viewer) curl(c *call, body string) string {
	path := c.Path
	for _, p := range c.Parameters {
		if p.In == "path" {
			path = strings.ReplaceAll(path, "{"+p.Name+"}", p.Example)
		}
	}
	command := "curl "
	if c.Method != http.MethodGet && body == "" {
		command += "-X " + c.Method + " "
	}
	command += quote(v.baseURL+path) + " \\\n  -H \"Authorization: Bearer $HERALD_API_KEY\""
	if body != "" {
		command += " \\\n  -H 'Content-Type: " + jsonType + "' \\\n  -d " + quote(body)
	}
	return command
}

// quote quotes a text for a shell.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (v *viewer) fillResponse(c *call, of *entry[response]) error {
	known := &of.Value
	if known.Ref != "" {
		var err error
		if known, err = v.document.Components.Responses.named(known.Ref); err != nil {
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
		c.Answer = answer{Status: of.Name, Description: known.Description, Schema: &body.Schema, Example: text}
		return nil
	}
	p := problem{Status: of.Name, Name: refName(of.Value.Ref), Description: known.Description, Example: text}
	for _, h := range known.Headers {
		if h.Value.Ref != "" {
			named, err := v.document.Components.Headers.named(h.Value.Ref)
			if err != nil {
				return err
			}
			h.Value = *named
		}
		p.Headers = append(p.Headers, h)
	}
	c.Errors = append(c.Errors, p)
	i := slices.IndexFunc(v.problems, func(other problem) bool { return other.Name == p.Name })
	if i < 0 {
		i = len(v.problems)
		v.problems = append(v.problems, p)
	}
	v.problems[i].Calls = append(v.problems[i].Calls, c.ID)
	return nil
}

// typeOf renders the type of a value, with a link to its schema if it has a name.
func typeOf(s *schema) g.Node {
	if s != nil && s.Ref != "" {
		return h.A(h.Href("#"+refName(s.Ref)), g.Text(refName(s.Ref)))
	}
	if s != nil && s.Type == "array" && s.Items != nil {
		nullable := g.If(s.Nullable, g.Text(orNull))
		return g.Group{g.Text("array of "), typeOf(s.Items), nullable}
	}
	return g.Text(typeName(s))
}

const orNull = ", or null"

// typeName returns the name of a value's type.
func typeName(s *schema) string {
	if s == nil {
		return ""
	}
	text := s.Type
	switch {
	case s.Ref != "":
		return refName(s.Ref)
	case s.Type == "array" && s.Items != nil:
		text = "array of " + typeName(s.Items)
	case s.Type == "":
		text = "any"
	case s.Format != "":
		text += ", " + s.Format
	}
	if s.Nullable {
		text += orNull
	}
	return text
}

// bounds returns the limits of a value.
func bounds(s *schema) []string {
	var out []string
	for _, b := range []struct{ least, most, unit string }{
		{s.MinLength, s.MaxLength, " characters"},
		{s.MinItems, s.MaxItems, " items"},
		{s.Minimum, s.Maximum, ""},
	} {
		switch {
		case b.least != "" && b.most != "":
			out = append(out, b.least+" to "+b.most+b.unit)
		case b.least != "":
			out = append(out, "at least "+b.least+strings.TrimSuffix(b.unit, "s")+plural(b.least, b.unit))
		case b.most != "":
			out = append(out, "at most "+b.most+b.unit)
		}
	}
	if !s.Default.IsZero() {
		out = append(out, "default "+s.Default.Value)
	}
	return out
}

func plural(count, unit string) string {
	if count == "1" || unit == "" {
		return ""
	}
	return "s"
}
