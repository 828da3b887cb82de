// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"context"
	"maps"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

type page[E any] struct {
	Data   []E `json:"data"`
	Paging struct {
		Next    jsondoc.Text `json:"next"`
		Cursors struct {
			After jsondoc.Text `json:"after"`
		} `json:"cursors"`
	} `json:"paging"`
}

// List reads an account's listing from the query's page to the end, up to maxPages pages, and passes each entry to add,
// which reports whether the entry is valid. If List returns an error, the entries passed to add must be discarded.
func List[E any](ctx context.Context, g *Graph, path string, query url.Values, token platforms.Token, maxPages int, add func(E) bool) *platforms.Error {
	for range maxPages {
		page, bad := Get[page[E]](ctx, g, "list", path+"?"+query.Encode(), token)
		if bad != nil {
			return bad.Error
		}
		if page.Data == nil {
			return g.NoList()
		}
		for _, entry := range page.Data {
			if !add(entry) {
				return g.NoList()
			}
		}
		if query = page.following(query); query == nil {
			return nil
		}
	}
	return g.TooManyPages()
}

// following returns the next page's query, or nil after the last one. Not every listing links to its next page: Threads
// documents only cursors for its listings (Threads API, "Retrieve a list of all a user's threads"), so a full page is
// followed by its cursor.
func (p *page[E]) following(query url.Values) url.Values {
	if next := nextPage(p.Paging.Next.String()); next != nil {
		return next
	}
	limit, err := strconv.Atoi(query.Get("limit"))
	if after := p.Paging.Cursors.After; err == nil && len(p.Data) >= limit && after != "" && after.String() != query.Get("after") {
		query = maps.Clone(query)
		query.Set("after", after.String())
		return query
	}
	return nil
}

// secrets are query parameters that a graph adds to the next page's URL, but that Herald must not send in a URL.
var secrets = []string{"access_token", "appsecret_proof"}

// nextPage returns the next page's query without the token that the graph adds. It is nil on the last page and never
// nil before it. Only the link's query is used, so the token is never sent to the link's host.
func nextPage(next string) url.Values {
	if next == "" {
		return nil
	}
	address, err := url.Parse(next)
	if err != nil {
		return url.Values{}
	}
	query := address.Query()
	for _, secret := range secrets {
		query.Del(secret)
	}
	return query
}

// ParseTime parses a graph's time, with or without a colon in the offset, to the second. It returns zero if the time is
// malformed.
func ParseTime(s jsondoc.Text) time.Time {
	for _, layout := range []string{"2006-01-02T15:04:05-0700", time.RFC3339} {
		if at, err := time.Parse(layout, s.String()); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// SameText reports whether a listed text equals the one that was sent. Graphs may trim it, change whitespace, and
// compose letters.
func SameText(sent string, listed jsondoc.Text) bool {
	want := text.Fold(sent)
	return want != "" && want == text.Fold(listed.String())
}

// SameCaption is like SameText, for a post with files, whose text may be empty.
func SameCaption(sent string, listed jsondoc.Text) bool {
	return SameText(sent, listed) || strings.TrimSpace(sent+listed.String()) == ""
}

// ValidID reports whether a string can be a graph's id and a path segment: digits, and the "_" between the ids of a
// Page and its post.
func ValidID(id string) bool { return text.Consists(id, 1, 64, text.Digits+"_") }

// IsObjectID reports whether user input may be the id of an Instagram or Threads post: a number with too many digits to
// have been typed by accident.
func IsObjectID(id string) bool { return text.Consists(id, 10, 20, text.Digits) }
