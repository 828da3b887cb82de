// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// icon is the page's inline icon.
const icon = "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%234f46e5'/%3E" +
	"%3Cpath d='M8 13v6h4l9 5V8l-9 5z' fill='%23fff'/%3E%3C/svg%3E"

// markdown renders descriptions as HTML, without HTML in them. It keeps the first error.
type markdown struct {
	goldmark.Markdown
	err error
}

func newMarkdown() *markdown {
	return &markdown{Markdown: goldmark.New(goldmark.WithExtensions(extension.Table))}
}

func (m *markdown) text(text string) g.Node {
	var out strings.Builder
	if err := m.Convert([]byte(text), &out); err != nil && m.err == nil {
		m.err = err
	}
	return g.Raw(out.String())
}

// page returns the whole page.
func (v *view) page(m *markdown) g.Node {
	return h.Doctype(h.HTML(
		h.Lang("en"),
		h.Head(
			h.Meta(h.Charset("utf-8")),
			h.Meta(h.Name("viewport"), h.Content("width=device-width, initial-scale=1")),
			h.Meta(h.Name("color-scheme"), h.Content("light dark")),
			h.Meta(h.Name("description"), h.Content("The HTTP API of "+v.Title+": operations, fields, limits and errors.")),
			h.TitleEl(g.Text(v.Title+" API "+v.Version)),
			h.Link(h.Rel("icon"), h.Href(icon)),
			h.Link(h.Rel("alternate"), h.Type("text/markdown"), h.Href("/docs.md")),
			h.StyleEl(g.Raw(style)),
		),
		h.Body(v.contents(), v.main(m)),
	))
}

// contents returns the table of contents.
func (v *view) contents() g.Node {
	return h.Nav(
		h.Aria("label", "Contents"),
		h.A(h.Class("brand"), h.Href("#top"), g.Text(v.Title+" "), h.Span(g.Text("API "+v.Version))),
		g.Map(v.Groups, func(tag group) g.Node {
			return g.Group{h.H2(g.Text(tag.Name)), h.Ul(g.Map(tag.Operations, func(c *call) g.Node {
				return h.Li(h.A(h.Href("#"+c.ID), method(c.Method), g.Text(" "+c.Summary)))
			}))}
		}),
		h.H2(g.Text("Reference")),
		h.Ul(
			h.Li(h.A(h.Href("#errors"), g.Text("Errors"))), h.Li(h.A(h.Href("#schemas"), g.Text("Schemas"))),
			h.Li(h.A(h.Href("/openapi.yaml"), g.Text("openapi.yaml"))), h.Li(h.A(h.Href("/openapi.json"), g.Text("openapi.json"))),
			h.Li(h.A(h.Href("/docs.md"), g.Text("This page in Markdown"))), h.Li(h.A(h.Href("/llms.txt"), g.Text("llms.txt"))),
		),
	)
}

func (v *view) main(m *markdown) g.Node {
	return h.Main(
		h.ID("top"),
		h.Header(
			h.H1(g.Text(v.Title+" API "), h.Small(g.Text(v.Version))),
			h.P(h.Class("base"), h.Span(g.Text("Base address")), g.Text(" "), h.Code(g.Text(v.BaseURL))),
			m.text(v.Description),
		),
		g.Map(v.Groups, func(tag group) g.Node {
			return h.Section(h.Class("group"), h.H2(h.ID("tag-"+tag.Name), g.Text(tag.Name)), m.text(tag.Description),
				g.Map(tag.Operations, func(c *call) g.Node { return c.article(m) }))
		}),
		h.Section(h.Class("group"), h.H2(h.ID("errors"), g.Text("Errors")), g.Map(v.Errors, func(p problem) g.Node { return p.article(m) })),
		h.Section(h.Class("group"), h.H2(h.ID("schemas"), g.Text("Schemas")), g.Map(v.Schemas, func(s shape) g.Node {
			return h.Article(h.H3(h.ID(s.Name), g.Text(s.Name+" "), anchor(s.Name)), s.describe(m))
		})),
		h.Footer(h.P(
			g.Text("Made from "), h.A(h.Href("/openapi.yaml"), g.Text("the OpenAPI document")), g.Text(". "),
			g.If(v.LicenseName != "", h.A(h.Href(v.LicenseURL), h.Rel("noreferrer"), g.Text(v.LicenseName))),
		)),
	)
}

func method(name string) g.Node { return h.B(h.Class("method "+name), g.Text(name)) }

func anchor(id string) g.Node {
	return h.A(h.Class("anchor"), h.Href("#"+id), h.Aria("label", "Link to "+id), g.Text("#"))
}

// code returns a code block to copy.
func code(text string) g.Node { return h.Pre(h.TabIndex("0"), h.Code(g.Text(text))) }

func (c *call) article(m *markdown) g.Node {
	return h.Article(
		h.Class("operation"),
		h.H3(h.ID(c.ID), g.Text(c.Summary+" "), anchor(c.ID)),
		h.P(h.Class("route"), method(c.Method), g.Text(" "), h.Code(g.Text(c.Path)), g.Text(" "), h.Span(g.Text(c.ID))),
		h.Div(
			h.Class("columns"),
			h.Div(
				m.text(c.Description),
				g.If(len(c.Parameters) > 0, g.Group{h.H4(g.Text("Parameters")), table("Name", g.Map(c.Parameters, func(p parameter) g.Node {
					return h.Tr(h.Td(named(p.Name, p.Required), h.Small(g.Text(p.In))), h.Td(typeOf(&p.Schema), limits(&p.Schema)), h.Td(m.text(p.Description)))
				}))}),
				g.If(len(c.Bodies) > 0, h.H4(g.Text("Body"))),
				g.If(c.Chosen != "", h.P(g.Text("One of these shapes, chosen by "), h.Code(g.Text(c.Chosen)), g.Text("."))),
				g.Map(c.Bodies, func(s shape) g.Node { return c.body(s, m) }),
				h.H4(g.Text("Answer")),
				h.P(h.B(h.Class("status ok"), g.Text(c.Answer.Status)), g.Text(" "), typeOf(c.Answer.Schema)),
				m.text(c.Answer.Description),
				h.H4(g.Text("Errors")),
				h.Ul(h.Class("errors"), g.Map(c.Errors, func(p problem) g.Node {
					return h.Li(h.A(h.Href("#"+p.Name), h.B(h.Class("status"), g.Text(p.Status)), g.Text(" "+p.Name)))
				})),
			),
			h.Div(
				h.Class("examples"),
				g.Map(c.Requests, func(e example) g.Node { return h.Figure(h.FigCaption(g.Text(e.Title)), code(e.Text)) }),
				g.If(c.Answer.Example != "", h.Figure(h.FigCaption(g.Text("Answer")), code(c.Answer.Example))),
			),
		),
	)
}

// body renders one of the shapes of a call's body.
func (c *call) body(s shape, m *markdown) g.Node {
	if c.Chosen == "" {
		return h.Div(h.ID(s.Name), s.describe(m))
	}
	return h.Details(g.Attr("open"), h.ID(s.Name),
		h.Summary(h.Code(g.Text(c.Chosen+": "+s.Choice)), g.Text(" "), h.Span(g.Text(s.Name))), s.describe(m))
}

func (p problem) article(m *markdown) g.Node {
	calls := make(g.Group, 0, 2*len(p.Calls))
	for i, id := range p.Calls {
		calls = append(calls, g.If(i > 0, g.Text(", ")), h.A(h.Href("#"+id), g.Text(id)))
	}
	return h.Article(
		h.Class("error"),
		h.H3(h.ID(p.Name), h.Span(h.Class("status"), g.Text(p.Status)), g.Text(" "+p.Name+" "), anchor(p.Name)),
		m.text(p.Description),
		g.If(len(p.Headers) > 0, h.Dl(h.Class("headers"), g.Map(p.Headers, func(e entry[header]) g.Node {
			return g.Group{h.Dt(h.Code(g.Text(e.Name))), h.Dd(m.text(e.Value.Description))}
		}))),
		g.If(p.Example != "", code(p.Example)),
		h.P(h.Class("calls"), g.Text("Answered by "), calls),
	)
}

// describe renders the description of a schema.
func (s shape) describe(m *markdown) g.Node {
	return g.Group{
		g.If(s.Description != "", m.text(s.Description)),
		g.If(len(s.Properties) > 0, table("Field", g.Map(s.Fields(), func(f Field) g.Node {
			return h.Tr(h.Td(named(f.Name, f.Required)), h.Td(typeOf(&f.Schema), limits(&f.Schema)), h.Td(m.text(f.Schema.Description), values(&f.Schema)))
		}))),
		values(&s.schema),
	}
}

// table renders a table of names, types and meanings.
func table(what string, rows g.Node) g.Node {
	return h.Table(h.THead(h.Tr(h.Th(g.Text(what)), h.Th(g.Text("Type")), h.Th(g.Text("Meaning")))), h.TBody(rows))
}

func named(name string, required bool) g.Node {
	return g.Group{h.Code(g.Text(name)), g.If(required, g.Group{g.Text(" "), h.Em(g.Text("required"))})}
}

func limits(s *schema) g.Node {
	return g.Map(bounds(s), func(text string) g.Node { return h.Small(g.Text(text)) })
}

// values renders the permitted values.
func values(s *schema) g.Node {
	return g.If(len(s.Enum) > 0, h.P(h.Class("enum"), g.Map(s.Enum, func(v string) g.Node { return g.Group{h.Code(g.Text(v)), g.Text(" ")} })))
}
