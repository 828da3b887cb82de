// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// apidocs generates the page of one version of the HTTP API, as HTML for browsers and as Markdown for programs. Both
// are generated only from the OpenAPI document, so they cannot disagree with it. The HTML does not need scripts or load
// anything from other sites. `go generate ./apiserver/openapi` runs it.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	texttemplate "text/template"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"go.yaml.in/yaml/v3"
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
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: apidocs document.yaml page-path html-file markdown-file site-url")
		os.Exit(2)
	}
	if err := generate(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]); err != nil {
		fmt.Fprintln(os.Stderr, "apidocs:", err)
		os.Exit(1)
	}
}

func generate(document, pagePath, htmlFile, markdownFile, siteURL string) error {
	raw, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	page, text, err := render(raw, site{URL: siteURL, Page: pagePath, Document: "/" + strings.TrimSuffix(filepath.Base(document), ".yaml")})
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(htmlFile, page, 0o644), os.WriteFile(markdownFile, text, 0o644))
}

// render renders both pages of an OpenAPI document.
func render(document []byte, at site) (page, markdown []byte, err error) {
	v, err := newView(document, at)
	if err != nil {
		return nil, nil, fmt.Errorf("describe the API: %w", err)
	}
	// The line breaks and indentation in the HTML template are only for its editors; the page does not need them.
	source := indentation.ReplaceAllString(pageHTML, "")
	html := template.Must(template.New("").Funcs(template.FuncMap{
		"markdown": toHTML, "reference": refName, "style": func() template.CSS { return style },
	}).Parse(source))
	// Descriptions are already Markdown; some are empty.
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

func newView(raw []byte, at site) (*view, error) {
	var d document
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if len(d.Servers) != 1 {
		return nil, fmt.Errorf("the document names %d servers, want one", len(d.Servers))
	}
	v := &view{document: &d, Site: at, BaseURL: at.URL + d.Servers[0].URL, inline: map[string]string{}}
	err := v.fillAll()
	return v, err
}
