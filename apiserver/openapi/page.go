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

//go:generate go run ../../hack/apidocs openapi.yaml /docs docs.html docs.md https://site.invalid
//go:generate go run ../../hack/apidocs openapi-v2.yaml /docs/v2 docs-v2.html docs-v2.md https://site.invalid

var (
	//go:embed docs.html
	pageHTML []byte
	//go:embed docs.md
	pageMarkdown []byte
	//go:embed docs-v2.html
	pageHTMLV2 []byte
	//go:embed docs-v2.md
	pageMarkdownV2 []byte
	//go:embed llms.txt
	pageLLMs []byte
)

// PagePath and PagePathV2 are the paths of the pages that describe the versions of the API. With the extension .md,
// they are the pages in Markdown.
const (
	PagePath   = "/docs"
	PagePathV2 = "/docs/v2"
)

// placeholder is replaced with the site's address.
const placeholder = "https://site.invalid"

// Page is the page that describes a version of the HTTP API. hack/apidocs generates it from the version's document.
type Page struct {
	// HTML is for browsers, and Markdown has the same content for programs.
	HTML, Markdown []byte
	// Policy is the page's Content-Security-Policy. It allows the page's own style, its embedded icon, and requests to its
	// own site. The page itself makes none, but tools that rate pages for search engines request /robots.txt from within
	// it.
	Policy string
}

// PageForSite returns a site's page of version 1. siteURL is the site's public address, such as
// https://herald.example.com, which the examples use.
func PageForSite(siteURL string) *Page { return pageOf(pageHTML, pageMarkdown, siteURL) }

// PageV2ForSite returns a site's page of version 2.
func PageV2ForSite(siteURL string) *Page { return pageOf(pageHTMLV2, pageMarkdownV2, siteURL) }

// LLMs returns a site's llms.txt, which lists its pages for programs (https://llmstxt.org).
func LLMs(siteURL string) []byte {
	return bytes.ReplaceAll(pageLLMs, []byte(placeholder), []byte(siteURL))
}

func pageOf(page, markdown []byte, siteURL string) *Page {
	_, style, _ := bytes.Cut(page, []byte("<style>"))
	style, _, _ = bytes.Cut(style, []byte("</style>"))
	hash := sha256.Sum256(style)
	return &Page{
		HTML:     bytes.ReplaceAll(page, []byte(placeholder), []byte(html.EscapeString(siteURL))),
		Markdown: bytes.ReplaceAll(markdown, []byte(placeholder), []byte(siteURL)),
		Policy: "default-src 'none'; connect-src 'self'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}
