// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// pages is the name used for the Markdown files in the root, and the first word of the name for those of a folder. The
// pages of apiserver are generated from the descriptions in its OpenAPI documents.
const pages = "pages"

// limitOf returns a folder's limit, in phrases per 1,000 words.
func limitOf(folder string) float64 {
	if strings.HasPrefix(folder, pages) {
		return goalPages
	}
	return goalComments
}
