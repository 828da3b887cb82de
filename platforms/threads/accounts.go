// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"

	"github.com/herald-social/herald/platforms"
)

var _ platforms.AccountInspector = (*Platform)(nil)

// Identify asks Threads whose token this is.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	return p.graph.Identify(ctx, "/me?fields=id,username,name,threads_profile_picture_url", token)
}

// Refresh renews an access token by itself.
func (p *Platform) Refresh(ctx context.Context, token platforms.Token) (platforms.Token, error) {
	return p.graph.Renew(ctx, token, "th_refresh_token")
}

// Inspect asks how many posts the account may still make (Threads API,
// "threads_publishing_limit"). How many replies is told only to apps that manage
// replies, and not asked.
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	return p.graph.Quota(ctx, account, "threads_publishing_limit"), nil
}
