// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"

	"github.com/herald-social/herald/apiserver/bridge"
)

// CallerOf returns the caller behind an agent's access token.
func (s *Server) CallerOf(ctx context.Context, token string) (bridge.Caller, error) {
	return s.web.agents.server().Caller(ctx, token)
}
