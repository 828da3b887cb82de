// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"net/http"
	"strings"

	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/openapi"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
)

// site serves all paths. http.ServeMux would redirect unclean paths and respond with plain text.
type site struct {
	// api and apiV2 serve the versions of the API.
	api, apiV2 http.Handler
	// mcp serves agents, by path; empty if MCP is disabled.
	mcp   map[string]http.Handler
	pages map[string]page
	// open returns the handler for a path that does not need a session and is open to all origins, or nil.
	open func(path string) http.Handler
	// web serves all other paths, with its own limit for unauthenticated requests; nil if it is disabled.
	web http.Handler
	// guard limits unauthenticated requests to pages and unknown paths.
	guard    *limits.AnonymousGuard
	signedIn func(*http.Request) bool
}

// healthPath is the health endpoint, which is not rate-limited.
const healthPath = "/health"

type page struct {
	operation   string
	contentType string
	body        request.Fixed
	policy      string
}

func newSite(api *rest.Handler, agents map[string]http.Handler, web *web, siteURL string, capabilities openapi.Capabilities) (*site, error) {
	document, err := openapi.JSON(openapi.YAML())
	if err != nil {
		return nil, err
	}
	version2 := openapi.YAMLV2With(capabilities)
	documentV2, err := openapi.JSON(version2)
	if err != nil {
		return nil, err
	}
	v1, v2 := openapi.PageForSite(siteURL), openapi.PageV2ForSite(siteURL)
	const nothing = "default-src 'none'; frame-ancestors 'none'"
	return &site{
		api: api, apiV2: api.V2(), mcp: agents, web: web.site(), open: web.open, guard: api.Guard(), signedIn: web.signedIn,
		pages: map[string]page{
			healthPath:                 fixed("health", "application/json; charset=utf-8", []byte(`{"status":"ok"}`+"\n"), nothing),
			"/openapi.yaml":            fixed("openapi", "application/yaml; charset=utf-8", openapi.YAML(), nothing),
			"/openapi.json":            fixed("openapi", "application/json; charset=utf-8", document, nothing),
			openapi.PathV2 + ".yaml":   fixed("openapi", "application/yaml; charset=utf-8", version2, nothing),
			openapi.PathV2 + ".json":   fixed("openapi", "application/json; charset=utf-8", documentV2, nothing),
			openapi.PagePath:           fixed("docs", "text/html; charset=utf-8", v1.HTML, v1.Policy),
			openapi.PagePath + ".md":   fixed("docs", "text/markdown; charset=utf-8", v1.Markdown, nothing),
			openapi.PagePathV2:         fixed("docs", "text/html; charset=utf-8", v2.HTML, v2.Policy),
			openapi.PagePathV2 + ".md": fixed("docs", "text/markdown; charset=utf-8", v2.Markdown, nothing),
			"/llms.txt":                fixed("llms", "text/plain; charset=utf-8", openapi.LLMs(siteURL), nothing),
		},
	}, nil
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if api := s.version(path); api != nil {
		w.Header().Set("Cache-Control", "no-store")
		api.ServeHTTP(w, r)
		return
	}
	if agents := s.mcp[strings.TrimSuffix(path, "/")]; agents != nil { // users paste the path with a slash
		agents.ServeHTTP(w, r)
		return
	}
	if handler := s.open(path); handler != nil {
		handler.ServeHTTP(w, r)
		return
	}
	p, ok := s.pages[path]
	if !ok && s.web != nil {
		s.web.ServeHTTP(w, r)
		return
	}
	// Load balancers check the health endpoint, all from one address.
	if path != healthPath && !s.signedIn(r) {
		if allowed, wait := s.guard.Allow(r, limits.SurfacePages); !allowed {
			rest.WriteTooMany(w, r, wait)
			return
		}
	}
	switch {
	case !ok:
		rest.WriteNotFound(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		rest.WriteMethodNotAllowed(w, r, "GET, HEAD")
	default:
		request.From(r.Context()).Operation = p.operation
		p.serve(w, r)
	}
}

// version returns the API at a path, or nil.
func (s *site) version(path string) http.Handler {
	switch {
	case path == rest.Prefix || strings.HasPrefix(path, rest.Prefix+"/"):
		return s.api
	case path == rest.PrefixV2 || strings.HasPrefix(path, rest.PrefixV2+"/"):
		return s.apiV2
	default:
		return nil
	}
}
