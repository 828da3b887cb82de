// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// apidocs writes the page that describes the HTTP API, for people and, in Markdown,
// for programs that read. Both are made of the OpenAPI document alone, so that they
// say nothing else; the one for people needs neither scripts nor anything from
// another site. `go generate ./apiserver/docs` runs it.
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

// render makes both pages of an OpenAPI document. siteURL stands in the examples.
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
