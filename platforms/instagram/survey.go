// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"context"
	"net/url"
	"time"

	"github.com/herald-social/herald/internal/graph"
	"github.com/herald-social/herald/internal/jsondoc"
	"github.com/herald-social/herald/platforms"
)

var _ platforms.Surveyor = (*Platform)(nil)

// quotaPause is how long an account is left alone that has used up its posts.
// They are counted within any 24 hours, and Instagram does not say when the
// earliest of them falls out.
const quotaPause = 30 * time.Minute

// Survey asks how many posts the account may still make (Instagram Platform,
// "content_publishing_limit"). Instagram's pages name three different totals, so
// that only this answer counts.
func (p *Platform) Survey(ctx context.Context, account platforms.Account) (platforms.Survey, error) {
	resp, err := p.ask(ctx, graph.Call{
		Action: "survey", Token: account.Token.Access, Timeout: readTimeout,
		Path: "/" + p.config.Version + "/" + url.PathEscape(account.ID) + "/content_publishing_limit?fields=quota_usage,config",
	}, msgNoIdentity, platforms.ClassUnknown)
	if err != nil {
		return platforms.Survey{}, nil //nolint:nilerr // limits that cannot be read are no error
	}
	doc, _ := jsondoc.Parse(resp.Body)
	entries, _ := doc.List("data")
	if len(entries) == 0 {
		return platforms.Survey{}, nil
	}
	told := platforms.QuotaUsed(entries[0].Object("config").Text("quota_total"), entries[0].Text("quota_usage"), p.config.Clock.Now().Add(quotaPause))
	return platforms.Survey{Allowances: told}, nil
}
