// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs makes the page for people that describes the HTTP API. It is
// made of the OpenAPI document alone, so that it says nothing else, and needs
// neither scripts nor anything from another site.
package docs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"

	"go.yaml.in/yaml/v3"
)

//go:embed style.css
var style string

// Page is what a browser gets.
type Page struct {
	HTML []byte
	// Policy is the Content-Security-Policy of the page: its own style, the icon
	// that it carries in itself, and nothing else.
	Policy string
}

// Render makes the page of an OpenAPI document. siteURL is where clients find
// the site, such as https://herald.example.com, and stands in the examples.
func Render(document []byte, siteURL string) (*Page, error) {
	v, err := newView(document, siteURL)
	if err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	m := newMarkdown()
	page := v.page(m)
	var out bytes.Buffer
	if err := errors.Join(m.err, page.Render(&out)); err != nil {
		return nil, fmt.Errorf("describe the API: %w", err)
	}
	hash := sha256.Sum256([]byte(style))
	return &Page{
		HTML: out.Bytes(),
		Policy: "default-src 'none'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}, nil
}

func newView(raw []byte, siteURL string) (*view, error) {
	var d document
	if err := yaml.Unmarshal(raw, &d); err != nil {
		return nil, err
	}
	if len(d.Servers) != 1 {
		return nil, fmt.Errorf("the document names %d servers, want one", len(d.Servers))
	}
	b := &viewer{document: &d, baseURL: siteURL + d.Servers[0].URL, inline: map[string]bool{}}
	return b.view()
}
