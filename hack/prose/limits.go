// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

// pages is the name used for all Markdown files.
const pages = "pages"

// limitOf returns a folder's limit, in phrases per 1,000 words.
func limitOf(folder string) float64 {
	if folder == pages {
		return goalPages
	}
	return goalComments
}
