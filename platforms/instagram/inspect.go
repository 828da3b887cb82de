// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"net/url"
	"time"

	"github.com/herald-social/herald/platforms"
)

var _ platforms.AccountInspector = (*Platform)(nil)

// quotaPause is how long an account is left alone that has used up its posts.
// They are counted within any 24 hours, and Instagram does not say when the
// earliest of them falls out.
const quotaPause = 30 * time.Minute

// Inspect asks how many posts the account may still make (Instagram Platform,
// "content_publishing_limit"). Instagram's pages name three different totals, so
// that only this answer counts.
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	doc, failed := p.hostOf(account.Token).read(ctx, "survey", "/"+url.PathEscape(account.ID)+"/content_publishing_limit?fields=quota_usage,config", account.Token)
	if failed != nil {
		return platforms.AccountInfo{}, nil // limits that cannot be read are no error
	}
	entries, _ := doc.List("data")
	if len(entries) == 0 {
		return platforms.AccountInfo{}, nil
	}
	told := platforms.QuotaUsed(entries[0].Object("config").Text("quota_total"), entries[0].Text("quota_usage"), p.config.Clock.Now().Add(quotaPause))
	return platforms.AccountInfo{RateLimits: told}, nil
}
