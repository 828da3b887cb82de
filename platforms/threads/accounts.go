// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"

	"github.com/herald-social/herald/platforms"
)

var _ platforms.AccountInspector = (*Platform)(nil)

// Identify returns the account that a token belongs to.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	return p.graph.Identify(ctx, "/me?fields=id,username,name,threads_profile_picture_url", token)
}

// Refresh renews an access token. This does not require a refresh token.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	return p.graph.Renew(ctx, token, "th_refresh_token")
}

// Inspect returns the account's remaining posting quota (Threads API, "threads_publishing_limit"). It does not read the
// reply quota, which Threads returns only to apps with a permission for replies.
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	return p.graph.Quota(ctx, account, "threads_publishing_limit"), nil
}
