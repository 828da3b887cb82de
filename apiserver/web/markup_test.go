// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

func parsed(tb testing.TB, page string) *html.Node {
	tb.Helper()
	document, err := html.Parse(strings.NewReader(page))
	if err != nil {
		tb.Fatal(err)
	}
	return document
}

// attribute returns one of an element's attributes, and whether it exists.
func attribute(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

// elements returns the elements with the given name below a node.
func elements(of *html.Node, name string) (found []*html.Node) {
	for n := range of.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			found = append(found, n)
		}
	}
	return found
}

// textOf returns the text below a node.
func textOf(n *html.Node) string {
	var out strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			out.WriteString(d.Data)
		}
	}
	return out.String()
}

// sent returns the values that a browser submits for an unchanged form (HTML, "constructing the entry list"): checked
// boxes, selected options, and text with two-character line breaks.
func sent(form *html.Node) url.Values {
	values := url.Values{}
	for n := range form.Descendants() {
		name, ok := attribute(n, "name")
		_, disabled := attribute(n, "disabled")
		if n.Type != html.ElementNode || !ok || disabled || inTemplate(n) {
			continue
		}
		value, _ := attribute(n, "value")
		kind, _ := attribute(n, "type")
		_, ticked := attribute(n, "checked")
		switch {
		case n.Data == "textarea":
			value = strings.NewReplacer("\r\n", "\r\n", "\n", "\r\n").Replace(textOf(n))
		case n.Data == "select":
			value = chosen(n)
		case n.Data == "button", kind == "file", (kind == "checkbox" || kind == "radio") && !ticked:
			continue
		}
		values.Add(name, value)
	}
	return values
}

// inTemplate reports whether an element is in a template, whose content is not part of the page.
func inTemplate(n *html.Node) bool {
	for above := range n.Ancestors() {
		if above.Data == "template" {
			return true
		}
	}
	return false
}

// chosen returns a select element's value: the selected option's or, if there is none, the first one's.
func chosen(list *html.Node) string {
	value := ""
	for i, option := range elements(list, "option") {
		of, _ := attribute(option, "value")
		if _, selected := attribute(option, "selected"); selected || i == 0 {
			value = of
		}
	}
	return value
}

// withID returns the element with the given id.
func withID(tb testing.TB, document *html.Node, id string) *html.Node {
	tb.Helper()
	for n := range document.Descendants() {
		if got, ok := attribute(n, "id"); ok && got == id {
			return n
		}
	}
	tb.Fatalf("the page has no element #%s", id)
	return nil
}

// says checks that a page contains some strings and lacks others.
func says(tb testing.TB, reason, page string, want, lack []string) {
	tb.Helper()
	for _, text := range want {
		if !strings.Contains(page, text) {
			tb.Errorf("%s: the page lacks %q: %s", reason, text, page)
		}
	}
	for _, text := range lack {
		if strings.Contains(page, text) {
			tb.Errorf("%s: the page contains %q: %s", reason, text, page)
		}
	}
}
