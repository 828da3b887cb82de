// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms

// Display describes how a platform shows text, as documented or as observed for years. Only previews use it, so a
// change on the platform has no effect on delivery.
type Display struct {
	// Links returns the parts of text that the platform shows as links, in order and without overlaps. It is nil
	// on a platform that does not show links.
	Links func(text string) []Link
	// FoldAfter and FoldLines are the number of characters and lines shown before the text is folded; zero means
	// that there is no such limit.
	FoldAfter, FoldLines int
}

// Link is a part of text that a platform shows as a link: an address, a hashtag, a mention or a cashtag.
type Link struct {
	// Start and End are byte offsets: text[Start:End].
	Start, End int
	// Shown is what the platform shows instead of the text; empty if it shows the text itself.
	Shown string
}
