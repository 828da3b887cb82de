// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the page that describes the HTTP API, for people and in
// Markdown, which hack/apidocs makes of apiserver/openapi; and llms.txt, which leads
// programs that read to it (https://llmstxt.org).
package docs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
)

//go:generate go run ../../hack/apidocs docs.html docs.md https://site.invalid

var (
	//go:embed docs.html
	page []byte
	//go:embed docs.md
	markdown []byte
	//go:embed llms.txt
	llms []byte
)

// placeholder stands in all of them for the address of the site.
const placeholder = "https://site.invalid"

// Page is what clients get.
type Page struct {
	// HTML is for a browser, Markdown the same for programs that read, and LLMs
	// tells those what the site has.
	HTML, Markdown, LLMs []byte
	// Policy is the Content-Security-Policy of the page: its own style, the icon
	// that it carries in itself, and requests to its own site. The page makes none, but what
	// judges pages for search engines asks for /robots.txt from within it.
	Policy string
}

// ForSite returns the page of a site. siteURL is where clients find it, such as
// https://herald.example.com, and stands in the examples.
func ForSite(siteURL string) *Page {
	_, style, _ := bytes.Cut(page, []byte("<style>"))
	style, _, _ = bytes.Cut(style, []byte("</style>"))
	hash := sha256.Sum256(style)
	return &Page{
		HTML:     bytes.ReplaceAll(page, []byte(placeholder), []byte(html.EscapeString(siteURL))),
		Markdown: bytes.ReplaceAll(markdown, []byte(placeholder), []byte(siteURL)),
		LLMs:     bytes.ReplaceAll(llms, []byte(placeholder), []byte(siteURL)),
		Policy: "default-src 'none'; connect-src 'self'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}
