// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"strings"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/mcp"
	"github.com/herald-social/herald/apiserver/oauth"
	"github.com/herald-social/herald/apiserver/rest"
)

// newMCP returns the versions of the MCP server by path, or nothing if it is disabled. Callers present an API key or a token issued by
// authorization, which may be nil. Those tokens are accepted only while the watch of grants is current.
func newMCP(config *Config, service *bridge.Service, api *rest.Handler, authorization *oauth.Server, current func() error) (map[string]http.Handler, error) {
	if !config.MCP {
		return map[string]http.Handler{}, nil
	}
	options := mcp.Options{
		Service: service, REST: api, SiteURL: config.SiteURL, Version: config.Version, Capabilities: config.Capabilities,
		Tokens: func(_ context.Context, token string) (bridge.Caller, error) { return service.Authenticate(token) },
	}
	if authorization != nil {
		options.ResourceMetadata = authorization.ResourceMetadataURL
		options.Tokens = func(ctx context.Context, token string) (bridge.Caller, error) {
			if strings.HasPrefix(token, oauth.TokenPrefix) {
				if err := current(); err != nil { // the grant may have been revoked
					return bridge.Caller{}, err
				}
				return authorization.Caller(ctx, token)
			}
			return service.Authenticate(token)
		}
	}
	v1, err := mcp.New(options)
	if err != nil {
		return nil, err
	}
	v2, err := mcp.NewV2(options)
	if err != nil {
		return nil, err
	}
	return map[string]http.Handler{mcp.Path: v1, mcp.PathV2: v2}, nil
}
