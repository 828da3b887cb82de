// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// pages is the name under which all Markdown counts.
const pages = "pages"

// unrevised are the folders whose language has not been revised yet, with the rate that none of them may exceed meanwhile. A folder
// that has been revised leaves the list.
var unrevised = map[string]float64{
	"docs": 10, pages: 4.5,
}

// limitOf is the limit of a folder in phrases per 1,000 words.
func limitOf(folder string) float64 {
	if limit, found := unrevised[folder]; found {
		return limit
	}
	if folder == pages {
		return goalPages
	}
	return goalComments
}
