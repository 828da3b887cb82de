// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"

	"github.com/herald-social/herald/platforms"
)

// Confirm reads a post by its id and compares its account.
func (p *Platform) Confirm(ctx context.Context, account platforms.Account, externalID string) (platforms.Ownership, error) {
	return p.graph.Confirm(ctx, account, externalID)
}
