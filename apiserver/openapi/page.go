// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package openapi

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
	pageHTML []byte
	//go:embed docs.md
	pageMarkdown []byte
	//go:embed llms.txt
	pageLLMs []byte
)

// placeholder is replaced with the site's address.
const placeholder = "https://site.invalid"

// Page is the page that describes the HTTP API, as HTML and in Markdown, which hack/apidocs generates from the
// document; and llms.txt, which points programs to it (https://llmstxt.org).
type Page struct {
	// HTML is for browsers, Markdown has the same content for programs, and LLMs lists the site's pages for them.
	HTML, Markdown, LLMs []byte
	// Policy is the page's Content-Security-Policy: its own style, its embedded icon, and requests to its own site. The
	// page makes none, but tools that rate pages for search engines request /robots.txt from within it.
	Policy string
}

// PageForSite returns a site's page. siteURL is the site's public address, such as https://herald.example.com, which
// the examples use.
func PageForSite(siteURL string) *Page {
	_, style, _ := bytes.Cut(pageHTML, []byte("<style>"))
	style, _, _ = bytes.Cut(style, []byte("</style>"))
	hash := sha256.Sum256(style)
	return &Page{
		HTML:     bytes.ReplaceAll(pageHTML, []byte(placeholder), []byte(html.EscapeString(siteURL))),
		Markdown: bytes.ReplaceAll(pageMarkdown, []byte(placeholder), []byte(siteURL)),
		LLMs:     bytes.ReplaceAll(pageLLMs, []byte(placeholder), []byte(siteURL)),
		Policy: "default-src 'none'; connect-src 'self'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}
