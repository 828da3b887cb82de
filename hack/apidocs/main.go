// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// apidocs generates the HTTP API page, as HTML for browsers and as Markdown for programs. Both come from the OpenAPI
// document alone, so they cannot disagree with it. The HTML does not need scripts or load anything from other sites.
// `go generate ./apiserver/openapi` runs it.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"regexp"
	"strings"
	texttemplate "text/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"go.yaml.in/yaml/v3"

	"github.com/herald-social/herald/apiserver/openapi"
)

var (
	//go:embed style.css
	style template.CSS
	//go:embed page.html.tmpl
	pageHTML string
	//go:embed page.md.tmpl
	pageMarkdown string
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: apidocs html-file markdown-file site-url")
		os.Exit(2)
	}
	page, text, err := render(openapi.YAML(), os.Args[3])
	if err == nil {
		err = errors.Join(os.WriteFile(os.Args[1], page, 0o644), os.WriteFile(os.Args[2], text, 0o644))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "apidocs:", err)
		os.Exit(1)
	}
}

// render renders both pages of an OpenAPI document. siteURL is used in the examples.
func render(document []byte, siteURL string) (page, markdown []byte, err error) {
	v, err := newView(document, siteURL)
	if err != nil {
		return nil, nil, fmt.Errorf("describe the API: %w", err)
	}
	// The HTML template has line breaks and indentation for those who edit it; the page needs neither.
	source := indentation.ReplaceAllString(pageHTML, "")
	html := template.Must(template.New("").Funcs(template.FuncMap{
		"markdown": toHTML, "reference": refName, "style": func() template.CSS { return style },
	}).Parse(source))
	// Descriptions already are Markdown; some are empty.
	text := texttemplate.Must(texttemplate.New("").Funcs(texttemplate.FuncMap{"join": strings.Join, "item": toItem}).Parse(pageMarkdown))
	var people, programs bytes.Buffer
	if err := errors.Join(html.Execute(&people, v), text.Execute(&programs, v)); err != nil {
		return nil, nil, fmt.Errorf("describe the API: %w", err)
	}
	return people.Bytes(), append(blankLines.ReplaceAll(bytes.TrimSpace(programs.Bytes()), []byte("\n\n")), '\n'), nil
}

var (
	indentation = regexp.MustCompile(`\n\s*`)
	blankLines  = regexp.MustCompile(`\n\n\n+`)
	commonMark  = goldmark.New(goldmark.WithExtensions(extension.Table))
)

// toHTML renders a description. It drops any HTML in it.
func toHTML(markdown string) (template.HTML, error) {
	var out strings.Builder
	err := commonMark.Convert([]byte(markdown), &out)
	return template.HTML(out.String()), err //nolint:gosec // goldmark has omitted HTML
}

// toItem returns a description as the last part of a list item. The other paragraphs follow below it.
func toItem(description string) string {
	description = strings.ReplaceAll(strings.TrimSpace(description), "\n", "\n  ")
	if description == "" {
		return ""
	}
	return ": " + strings.ReplaceAll(description, "\n  \n", "\n\n")
}

func newView(raw []byte, siteURL string) (*view, error) {
	var d document
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if len(d.Servers) != 1 {
		return nil, fmt.Errorf("the document names %d servers, want one", len(d.Servers))
	}
	v := &view{document: &d, SiteURL: siteURL, BaseURL: siteURL + d.Servers[0].URL, inline: map[string]bool{}}
	err := v.fillAll()
	return v, err
}
