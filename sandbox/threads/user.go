// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package threads

import (
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// user is GET /me, and GET /{id} for the account itself.
func (p *Platform) user(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic)
	if bad != nil {
		return nil, bad
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	return result(graph.Node{
		Type: "ThreadsUser",
		Values: map[string]any{
			"id": account.ID, "username": account.Username, "name": account.DisplayName, "is_verified": false,
			"threads_profile_picture_url": p.SiteURL(c.Request.Request) + "/_assets/avatar/" + Name + "/" + account.ID + ".svg",
		},
		Known: []string{
			"id", "username", "name", "threads_profile_picture_url", "threads_biography", "is_verified",
			"is_eligible_for_geo_gating", "recently_searched_keywords",
		},
		Default: []string{"id"},
	}.Select(fields))
}

// result is what a handler returns of a selected node.
func result(body map[string]any, bad *graph.Error) (any, *graph.Error) {
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

// The documented quotas of a profile in any 24 hours. Posts beyond are refused only where the control API sets a quota.
const (
	postQuota  = 250
	replyQuota = 1000
)

// limit is GET /{id}/threads_publishing_limit.
func (p *Platform) limit(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Owner(scopeBasic, scopePublish)
	if bad != nil {
		return nil, bad
	}
	fields := c.Params.Fields()
	if bad := c.Params.End(); bad != nil {
		return nil, bad
	}
	for _, field := range fields {
		if field.Name == "reply_quota_usage" || field.Name == "reply_config" {
			if _, bad := c.Account(scopeManageReplies); bad != nil {
				return nil, bad
			}
		}
	}
	posts, replies := p.Store.QuotaUsed(account.Key)
	total := postQuota
	if account.Settings.Quota != nil {
		total = *account.Settings.Quota
	}
	body, bad := graph.Node{
		Type: "ThreadsPublishingLimit",
		Values: map[string]any{
			"quota_usage": posts, "config": quotaConfig(total), "reply_quota_usage": replies, "reply_config": quotaConfig(replyQuota),
		},
		Known: []string{
			"quota_usage", "config", "reply_quota_usage", "reply_config", "delete_quota_usage", "delete_config",
			"location_search_quota_usage", "location_search_config",
		},
		Default: []string{"quota_usage"},
	}.Select(fields)
	if bad != nil {
		return nil, bad
	}
	return map[string]any{"data": []any{body}}, nil
}

func quotaConfig(total int) map[string]int {
	return map[string]int{"quota_total": total, "quota_duration": int(state.QuotaWindow.Seconds())}
}
