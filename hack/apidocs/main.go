// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// apidocs generates the page about the HTTP API, as HTML for people and as Markdown for programs. Both come from the
// OpenAPI document alone, so they cannot differ from it. The HTML needs no scripts and nothing from other sites. `go
// generate ./apiserver/docs` runs it.
package main

import (
	"bytes"
	_ "embed"
	"errors"
	"fmt"
	"os"

	"go.yaml.in/yaml/v3"

	"github.com/herald-social/herald/apiserver/openapi"
)

//go:embed style.css
var style string

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
func render(document []byte, siteURL string) (page, text []byte, err error) {
	v, err := newView(document, siteURL)
	if err != nil {
		return nil, nil, fmt.Errorf("describe the API: %w", err)
	}
	m := newMarkdown()
	people := v.page(m)
	var out bytes.Buffer
	if err := errors.Join(m.err, people.Render(&out)); err != nil {
		return nil, nil, fmt.Errorf("describe the API: %w", err)
	}
	return out.Bytes(), []byte(v.markdown()), nil
}

func newView(raw []byte, siteURL string) (*view, error) {
	var d document
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if len(d.Servers) != 1 {
		return nil, fmt.Errorf("the document names %d servers, want one", len(d.Servers))
	}
	b := &viewer{document: &d, siteURL: siteURL, baseURL: siteURL + d.Servers[0].URL, inline: map[string]bool{}}
	return b.view()
}
