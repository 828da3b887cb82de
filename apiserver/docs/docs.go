// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs holds the page for people that describes the HTTP API.
// hack/apidocs makes it of apiserver/openapi.
package docs

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"html"
)

//go:generate go run ../../hack/apidocs docs.html https://site.invalid

//go:embed docs.html
var page []byte

// placeholder stands in the page for the address of the site.
const placeholder = "https://site.invalid"

// Page is what a browser gets.
type Page struct {
	HTML []byte
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
		HTML: bytes.ReplaceAll(page, []byte(placeholder), []byte(html.EscapeString(siteURL))),
		Policy: "default-src 'none'; connect-src 'self'; img-src data:; style-src 'sha256-" + base64.StdEncoding.EncodeToString(hash[:]) +
			"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	}
}
