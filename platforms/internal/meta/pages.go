// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"net/url"
	"slices"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

const (
	// pagesPerCall and maxPageCalls limit the number of Pages that are read for one user to 1000.
	pagesPerCall = "100"
	maxPageCalls = 10
)

// Page is one of a user's Pages, with its token.
type Page struct {
	Account

	Token     jsondoc.Text              `json:"access_token"`
	Tasks     []jsondoc.Text            `json:"tasks"`
	Instagram jsondoc.Optional[Account] `json:"instagram_business_account"`
}

// mayPost reports whether the user has one of the tasks that allow posting as the Page (Pages API, "Overview", Tasks).
// A Page is accepted if the response omits its tasks.
func (p *Page) mayPost() bool {
	return len(p.Tasks) == 0 || slices.Contains(p.Tasks, "CREATE_CONTENT") || slices.Contains(p.Tasks, "MANAGE")
}

// Pages lists the Pages that a user may post to, with their tokens. fields are the fields to request for each Page.
// readOnly is the number of Pages that the user cannot post to.
func (g *Graph) Pages(ctx context.Context, token platforms.Token, fields string) (pages []Page, readOnly int, err error) {
	query := url.Values{"fields": {fields}, "limit": {pagesPerCall}}
	for range maxPageCalls {
		found, bad := Get[page[Page]](ctx, g, "identify", "/me/accounts?"+query.Encode(), token)
		switch {
		case bad != nil:
			return nil, 0, g.NotIdentified(bad)
		case found.Data == nil:
			return nil, 0, g.NoIdentity(nil)
		}
		for _, p := range found.Data {
			switch {
			case !ValidID(p.ID.String()) || p.Token == "":
				continue
			case p.mayPost():
				pages = append(pages, p)
			default:
				readOnly++
			}
		}
		if query = found.following(query); query == nil {
			break
		}
	}
	return pages, readOnly, nil
}

// pageToken returns the Page's token. It was derived from a long-lived token, so it does not expire (Facebook Login,
// "Long-Lived Access Tokens").
func (p *Page) pageToken(scopes string) platforms.Token {
	return platforms.Token{Access: p.Token.String(), Scopes: scopes}
}

// Choices returns the accounts of the given Pages, with the Pages' tokens. accountOf returns a Page's account, or nil
// if it has none. none is the error to return if no Page has one.
func (g *Graph) Choices(pages []Page, token platforms.Token, accountOf func(*Page) *Account, none *platforms.Error) ([]platforms.Choice, error) {
	var choices []platforms.Choice
	for i := range pages {
		account := accountOf(&pages[i])
		if account == nil {
			continue
		}
		identity, bad := g.Identity(*account)
		if bad != nil {
			return nil, bad.Error
		}
		choices = append(choices, platforms.Choice{Identity: identity, Token: pages[i].pageToken(token.Scopes)})
	}
	if len(choices) == 0 {
		return nil, none
	}
	return choices, nil
}
