// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"hash/fnv"
	"strconv"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// userFields are the simulated account fields, for both login flows. The response omits fields without a value.
var userFields = []string{
	"id", "username", "name", "profile_picture_url", "followers_count", "follows_count", "media_count", "account_type", "biography",
	"website",
}

// me handles GET /me: the account, or its linked Page.
func (l *login) me(c *graph.Call) (any, *graph.Error) {
	if !l.linked {
		return l.user(c)
	}
	account, bad := c.Account()
	if bad != nil {
		return nil, bad
	}
	page, bad := l.page(c, account)
	if bad != nil {
		return nil, bad
	}
	return c.Show(page)
}

// user handles GET /{id} for an account.
func (l *login) user(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.read)
	if bad != nil {
		return nil, bad
	}
	return c.Show(l.userNode(c, account))
}

// userNode renders an account.
func (l *login) userNode(c *graph.Call, account state.Account) graph.Node {
	node := graph.Node{
		Type: "IGUser",
		Values: map[string]any{
			"id": account.ID, "username": account.Username, "name": account.DisplayName, "followers_count": 0, "follows_count": 0,
			"media_count": l.Store.PostCount(account.Key), "profile_picture_url": l.Avatar(c.Request.Request, account),
		},
		Known: userFields, Default: []string{"id"},
	}
	if !l.linked {
		// The app-scoped ID differs from the account's own ID, which paths need.
		node.Values["id"], node.Values["user_id"] = scopedID(account.ID), account.ID
		node.Values["account_type"] = "BUSINESS"
		node.Known = append([]string{"user_id"}, userFields...)
	}
	return node
}

// pages handles GET /me/accounts: the Pages that the token's owner may use, with their tokens. In the sandbox there is
// one Page, and one token represents both the user and the Page.
func (l *login) pages(c *graph.Call) (any, *graph.Error) {
	account, bad := c.Account(scopePageList)
	if bad != nil {
		return nil, bad
	}
	c.Params.Integer("limit", 1, 1, 100)
	page, bad := l.page(c, account)
	if bad != nil {
		return nil, bad
	}
	if page.Values["access_token"], bad = c.PageToken(account); bad != nil {
		return nil, bad
	}
	return c.ShowListed(page)
}

// page renders an account's linked Page.
func (l *login) page(c *graph.Call, account state.Account) (graph.Node, *graph.Error) {
	token, bad := c.Token()
	if bad != nil {
		return graph.Node{}, bad
	}
	return graph.Node{
		Type: "Page",
		Values: map[string]any{
			"id": scopedID("page " + account.ID), "name": account.DisplayName, "username": account.Username, "access_token": token,
			"tasks":                      []string{"ADVERTISE", "ANALYZE", "CREATE_CONTENT", "MESSAGING", "MODERATE", "MANAGE"},
			"instagram_business_account": l.userNode(c, account),
		},
		Known: []string{"id", "name", "username", "access_token", "tasks", "instagram_business_account"}, Default: []string{"name", "id"},
	}, nil
}

// scopedID returns an account's fictitious, constant ID of 17 digits.
func scopedID(id string) string {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(id)) // a hash never fails
	return strconv.FormatUint(10_000_000_000_000_000+sum.Sum64()%10_000_000_000_000_000, 10)
}
