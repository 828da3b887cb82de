// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/url"
	"time"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// secrets are the parameters that a graph writes into the address of the next
// page and that do not belong into an address.
var secrets = []string{"access_token", "appsecret_proof"}

// NextPage returns the query of the page that follows a listing's page, without
// the token that the graph puts there; nil on the last page, and never nil
// before it. Only the query is taken: the host that the graph names is not to
// be trusted with a token.
func NextPage(page jsondoc.Object) url.Values {
	next := page.Object("paging").Text("next")
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

// ParseTime reads a time as graphs write it, with or without a colon in the
// offset, to the second; zero if it is none.
func ParseTime(s string) time.Time {
	for _, layout := range []string{"2006-01-02T15:04:05-0700", time.RFC3339} {
		if at, err := time.Parse(layout, s); err == nil {
			return at.UTC()
		}
	}
	return time.Time{}
}

// SameText tells whether a listed text is the one that was sent: graphs may
// trim it, change blanks, and compose letters.
func SameText(sent, listed string) bool {
	want := text.Fold(sent)
	return want != "" && want == text.Fold(listed)
}

// ValidID tells whether this can be an id of a graph's, and a part of an
// address: digits, and "_" between those of a Page and of its post.
func ValidID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for _, c := range id {
		if (c < '0' || c > '9') && c != '_' {
			return false
		}
	}
	return true
}
