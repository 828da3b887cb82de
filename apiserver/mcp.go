// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/mcp"
	"github.com/herald-social/herald/apiserver/rest"
)

// newMCP returns the server for agents; nil if it is not wanted.
func newMCP(config *Config, service *bridge.Service, api *rest.Handler) (http.Handler, error) {
	if !config.MCP {
		return nil, nil //nolint:nilnil // nil serves none
	}
	handler, err := mcp.New(mcp.Options{
		Service: service, REST: api, SiteURL: config.SiteURL, Version: config.Version, Capabilities: config.Capabilities,
		Tokens: func(_ context.Context, token string) (bridge.Caller, error) { return service.Authenticate(token) },
	})
	if err != nil {
		return nil, err
	}
	return handler, nil
}
