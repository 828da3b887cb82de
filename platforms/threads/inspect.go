// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"context"
	"net/url"
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

var _ platforms.AccountInspector = (*Platform)(nil)

// quotaPause is how long an account is left alone that has used up its posts.
// They are counted within any 24 hours, and Threads does not say when the
// earliest of them falls out.
const quotaPause = 30 * time.Minute

// Inspect asks how many posts the account may still make (Threads API,
// "threads_publishing_limit"). How many replies is told only to apps that manage
// replies, and not asked.
func (p *Platform) Inspect(ctx context.Context, account platforms.Account) (platforms.AccountInfo, error) {
	resp, failed := p.read(ctx, "survey", p.path("/"+url.PathEscape(account.ID)+"/threads_publishing_limit?fields=quota_usage,config"), account.Token)
	if failed != nil {
		return platforms.AccountInfo{}, nil
	}
	doc, _ := jsondoc.Parse(resp.Body)
	entries, _ := doc.List("data")
	if len(entries) == 0 {
		return platforms.AccountInfo{}, nil
	}
	told := platforms.QuotaUsed(entries[0].Object("config").Text("quota_total"), entries[0].Text("quota_usage"), p.config.Clock.Now().Add(quotaPause))
	return platforms.AccountInfo{RateLimits: told}, nil
}
