// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// text builds the Markdown page from the same view as the HTML page.
type text struct{ strings.Builder }

// blockf writes a paragraph, a heading or a table, followed by an empty line. Descriptions are Markdown already.
func (t *text) blockf(format string, values ...any) {
	if paragraph := strings.TrimSpace(fmt.Sprintf(format, values...)); paragraph != "" {
		t.WriteString(paragraph + "\n\n")
	}
}

// item writes a list item. A description of several paragraphs continues below it.
func (t *text) item(head, description string) {
	description = strings.ReplaceAll(strings.TrimSpace(description), "\n", "\n  ")
	if description != "" {
		head += ": " + strings.ReplaceAll(description, "\n  \n", "\n\n")
	}
	t.WriteString("- " + head + "\n")
}

func (t *text) endList() { t.WriteByte('\n') }

func (t *text) code(language, content string) {
	t.blockf("```%s\n%s\n```", language, strings.TrimSpace(content))
}

// markdown returns the whole page.
func (v *view) markdown() string {
	var t text
	t.blockf("# %s API %s", v.Title, v.Version)
	t.blockf("Base address: `%s`. The same for programs: [openapi.yaml](%s/openapi.yaml), [openapi.json](%[2]s/openapi.json).", v.BaseURL, v.SiteURL)
	t.blockf("%s", v.Description)
	for _, group := range v.Groups {
		t.blockf("## %s", group.Name)
		t.blockf("%s", group.Description)
		for _, c := range group.Operations {
			c.markdown(&t)
		}
	}
	t.blockf("## Errors")
	for i := range v.Errors {
		v.Errors[i].markdown(&t)
	}
	t.blockf("## Schemas")
	for i := range v.Schemas {
		t.blockf("### %s", v.Schemas[i].Name)
		v.Schemas[i].markdown(&t)
	}
	return strings.TrimRight(t.String(), "\n") + "\n"
}

func (c *call) markdown(t *text) {
	t.blockf("### %s", c.Summary)
	t.blockf("`%s %s`, operation `%s`", c.Method, c.Path, c.ID)
	t.blockf("%s", c.Description)
	if len(c.Parameters) > 0 {
		t.blockf("Parameters:")
		for i := range c.Parameters {
			p := &c.Parameters[i]
			t.item("`"+p.Name+"` ("+traits(&p.Schema, p.Required)+", in the "+p.In+")", p.Description)
		}
		t.endList()
	}
	if c.Chosen != "" {
		t.blockf("Body: One of these shapes, chosen by `%s`.", c.Chosen)
	}
	for i := range c.Bodies {
		if c.Chosen != "" {
			t.blockf("#### `%s: %s`", c.Chosen, c.Bodies[i].Choice)
		} else {
			t.blockf("Body:")
		}
		c.Bodies[i].markdown(t)
	}
	for _, request := range c.Requests {
		t.blockf("%s:", request.Title)
		t.code("sh", request.Text)
	}
	t.blockf("Answer %s %s: %s", c.Answer.Status, typeName(c.Answer.Schema), c.Answer.Description)
	if c.Answer.Example != "" {
		t.code("json", c.Answer.Example)
	}
	t.blockf("Errors:")
	for i := range c.Errors {
		t.item(c.Errors[i].Status+" "+c.Errors[i].Name, "")
	}
	t.endList()
}

func (p problem) markdown(t *text) {
	t.blockf("### %s %s", p.Status, p.Name)
	t.blockf("%s", p.Description)
	for i := range p.Headers {
		t.item("header `"+p.Headers[i].Name+"`", p.Headers[i].Value.Description)
	}
	if len(p.Headers) > 0 {
		t.endList()
	}
	if p.Example != "" {
		t.code("json", p.Example)
	}
	t.blockf("Answered by %s.", strings.Join(p.Calls, ", "))
}

// markdown writes the description of a schema.
func (s shape) markdown(t *text) {
	t.blockf("%s", s.Description)
	t.blockf("%s", choices(&s.schema))
	fields := s.Fields()
	for i := range fields {
		f := &fields[i]
		t.item("`"+f.Name+"` ("+traits(&f.Schema, f.Required)+")", f.Schema.Description)
	}
	if len(fields) > 0 {
		t.endList()
	}
}

// traits returns a short description of a value: its type, its limits, and whether it is required.
func traits(s *schema, required bool) string {
	parts := append([]string{typeName(s)}, bounds(s)...)
	if values := choices(s); values != "" {
		parts = append(parts, values)
	}
	if required {
		parts = append(parts, "required")
	}
	return strings.Join(parts, "; ")
}

// choices returns the permitted values.
func choices(s *schema) string {
	if len(s.Enum) == 0 {
		return ""
	}
	return "one of `" + strings.Join(s.Enum, "`, `") + "`"
}
