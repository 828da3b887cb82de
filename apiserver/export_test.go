// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"

	"github.com/herald-social/herald/apiserver/bridge"
)

// CallerOf returns the caller behind an agent's access token.
func (s *Server) CallerOf(ctx context.Context, token string) (bridge.Caller, error) {
	return s.web.agents.server().Caller(ctx, token)
}

// Handler returns the handler of all requests, with authentication, limits and metrics.
func (s *Server) Handler() http.Handler { return s.api.Handler }
