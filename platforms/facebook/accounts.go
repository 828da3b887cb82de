// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"

	"github.com/herald-social/herald/platforms"
)

// Identify returns the Page that a token belongs to.
func (p *Platform) Identify(ctx context.Context, token platforms.Token) (platforms.Identity, error) {
	return p.graph.Identify(ctx, "/me?fields=id,name,username,picture%7Burl%7D", token)
}

// Refresh always fails: a Page token does not expire and cannot be renewed.
func (p *Platform) Refresh(context.Context, platforms.Token) (platforms.Token, error) {
	return platforms.Token{}, platforms.Errorf(platforms.ClassReconnect, "Facebook's Page tokens cannot be renewed").Advise("connect the Page again")
}
