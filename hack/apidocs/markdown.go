// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// text collects the page for programs that read: the same view as that for people, in Markdown.
type text struct{ strings.Builder }

// block writes a paragraph, a heading or a table, with an empty line behind it. Descriptions are Markdown already.
func (t *text) block(format string, values ...any) {
	if paragraph := strings.TrimSpace(fmt.Sprintf(format, values...)); paragraph != "" {
		t.WriteString(paragraph + "\n\n")
	}
}

// item writes a line of a list. A description of several paragraphs goes on below it.
func (t *text) item(head, description string) {
	description = strings.ReplaceAll(strings.TrimSpace(description), "\n", "\n  ")
	if description != "" {
		head += ": " + strings.ReplaceAll(description, "\n  \n", "\n\n")
	}
	t.WriteString("- " + head + "\n")
}

func (t *text) endList() { t.WriteByte('\n') }

func (t *text) code(language, content string) {
	t.block("```%s\n%s\n```", language, strings.TrimSpace(content))
}

// markdown is the whole page.
func (v *view) markdown() string {
	var t text
	t.block("# %s API %s", v.Title, v.Version)
	t.block("Base address: `%s`. The same for programs: [openapi.yaml](%s/openapi.yaml), [openapi.json](%[2]s/openapi.json).", v.BaseURL, v.SiteURL)
	t.block("%s", v.Description)
	for _, group := range v.Groups {
		t.block("## %s", group.Name)
		t.block("%s", group.Description)
		for _, c := range group.Operations {
			c.markdown(&t)
		}
	}
	t.block("## Errors")
	for i := range v.Errors {
		v.Errors[i].markdown(&t)
	}
	t.block("## Schemas")
	for i := range v.Schemas {
		t.block("### %s", v.Schemas[i].Name)
		v.Schemas[i].markdown(&t)
	}
	return strings.TrimRight(t.String(), "\n") + "\n"
}

func (c *call) markdown(t *text) {
	t.block("### %s", c.Summary)
	t.block("`%s %s`, operation `%s`", c.Method, c.Path, c.ID)
	t.block("%s", c.Description)
	if len(c.Parameters) > 0 {
		t.block("Parameters:")
		for i := range c.Parameters {
			p := &c.Parameters[i]
			t.item(fmt.Sprintf("`%s` (%s, in the %s)", p.Name, traits(&p.Schema, p.Required), p.In), p.Description)
		}
		t.endList()
	}
	if c.Chosen != "" {
		t.block("Body: One of these shapes, chosen by `%s`.", c.Chosen)
	}
	for i := range c.Bodies {
		if c.Chosen != "" {
			t.block("#### `%s: %s`", c.Chosen, c.Bodies[i].Choice)
		} else {
			t.block("Body:")
		}
		c.Bodies[i].markdown(t)
	}
	for _, request := range c.Requests {
		t.block("%s:", request.Title)
		t.code("sh", request.Text)
	}
	t.block("Answer %s %s: %s", c.Answer.Status, typeName(c.Answer.Schema), c.Answer.Description)
	if c.Answer.Example != "" {
		t.code("json", c.Answer.Example)
	}
	t.block("Errors:")
	for i := range c.Errors {
		t.item(c.Errors[i].Status+" "+c.Errors[i].Name, "")
	}
	t.endList()
}

func (p *problem) markdown(t *text) {
	t.block("### %s %s", p.Status, p.Name)
	t.block("%s", p.Description)
	for i := range p.Headers {
		t.item("header `"+p.Headers[i].Name+"`", p.Headers[i].Value.Description)
	}
	if len(p.Headers) > 0 {
		t.endList()
	}
	if p.Example != "" {
		t.code("json", p.Example)
	}
	t.block("Answered by %s.", strings.Join(p.Calls, ", "))
}

// markdown says what a schema holds.
func (s *shape) markdown(t *text) {
	t.block("%s", s.Description)
	t.block("%s", choices(&s.schema))
	fields := s.Fields()
	for i := range fields {
		f := &fields[i]
		t.item(fmt.Sprintf("`%s` (%s)", f.Name, traits(&f.Schema, f.Required)), f.Schema.Description)
	}
	if len(fields) > 0 {
		t.endList()
	}
}

// traits are what is known of a value in short: its type, what it is held to, and whether it has to be there.
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

// choices are the values that a value may have.
func choices(s *schema) string {
	if len(s.Enum) == 0 {
		return ""
	}
	return "one of `" + strings.Join(s.Enum, "`, `") + "`"
}
