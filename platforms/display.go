// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

// Display is how a platform shows a text, as far as platforms publish it or have shown it for years. Only previews use
// it: a platform may change it at any time without any effect on delivery.
type Display struct {
	// Links returns the parts of a text that the platform shows as links, in order and without overlaps. It is nil on a
	// platform that shows none.
	Links func(text string) []Link
	// FoldAfter and FoldLines are the number of characters and lines that readers see before they ask for more; zero
	// means that there is no such limit.
	FoldAfter, FoldLines int
}

// Link is a part of a text that a platform shows as a link: an address, a hashtag, a mention or a cashtag.
type Link struct {
	// Start and End are byte offsets: text[Start:End].
	Start, End int
	// Shown replaces the text on the platform; empty if the platform shows the text itself.
	Shown string
}
