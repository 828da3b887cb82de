// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"errors"
	"net/url"
	"strings"
	"time"

	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// What keeps a search from telling what a listing holds.
var (
	// ErrNoList says that a page is no list of things that have ids.
	ErrNoList = errors.New("the graph did not answer a list")
	// ErrTooManyPages says that the listing is longer than was read of it.
	ErrTooManyPages = errors.New("the list has more pages than are read")
)

// Search reads a listing from the page of a query to its end, maxPages of it
// at most, and returns what fits. read gets the page of a query. Nothing is
// returned of a listing that was not read whole: the error is ErrNoList,
// ErrTooManyPages, or read's own.
func Search(query url.Values, maxPages int, read func(url.Values) (jsondoc.Object, error), fits func(entry jsondoc.Object) bool) (Found, error) {
	found := Found{}
	for range maxPages {
		page, err := read(query)
		if err != nil {
			return nil, err
		}
		entries, ok := page.List("data")
		if !ok {
			return nil, ErrNoList
		}
		for _, entry := range entries {
			if !ValidID(entry.Text("id")) {
				return nil, ErrNoList
			}
			if fits(entry) {
				found[entry.Text("id")] = entry
			}
		}
		if query = NextPage(page); query == nil {
			return found, nil
		}
	}
	return nil, ErrTooManyPages
}

// Found is what fits of a listing, by id: pages may overlap.
type Found map[string]jsondoc.Object

// Earliest returns the oldest of what was found, by the time in a field.
func (f Found) Earliest(field string) (id string, entry jsondoc.Object, at time.Time) {
	for other, e := range f {
		when := ParseTime(e.Text(field))
		if id == "" || when.Before(at) || when.Equal(at) && other < id {
			id, entry, at = other, e, when
		}
	}
	return id, entry, at
}

// SameCaption tells whether the text of a listed post is the one that was sent
// with files, which need none.
func SameCaption(sent, listed string) bool {
	return SameText(sent, listed) || strings.TrimSpace(sent) == "" && strings.TrimSpace(listed) == ""
}
