// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	_ "embed"
	"sort"
	"strings"
	"sync"
)

// Both tables are written by gen, sorted by bytes, with spaces between the entries. Names added to the root zone later,
// and newer Unicode sequences, are left out on purpose: X's client does not recognize them either.
var (
	// tldNames are the top-level domains of twitter-text 3.1.0 (https://www.npmjs.com/package/twitter-text; Copyright
	// 2018 Twitter, Inc.; Apache License 2.0), in the case that fold gives.
	//
	//go:embed tlds.txt
	tldNames string

	// emojiNames are the emoji sequences of two and more code points of twemoji-parser 11.0.2
	// (https://www.npmjs.com/package/twemoji-parser), the parser that twitter-text 3.1.0 counts with. Its license
	// (MIT):
	//
	// Copyright (c) 2018 Twitter, Inc.
	//
	// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
	// documentation files (the "Software"), to deal in the Software without restriction, including without limitation
	// the rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
	// permit persons to whom the Software is furnished to do so, subject to the following conditions:
	//
	// The above copyright notice and this permission notice shall be included in all copies or substantial portions of
	// the Software.
	//
	// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO
	// THE WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
	// AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT,
	// TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
	// SOFTWARE.
	//
	//go:embed emoji.txt
	emojiNames string

	// The tables are parsed on first use, because many processes never count text.
	tlds  = sync.OnceValue(func() table { return strings.Fields(tldNames) })
	emoji = sync.OnceValue(func() table { return strings.Fields(emojiNames) })
)

type table []string

// find reports whether the table contains the text, and whether it contains a longer one with this prefix.
func (t table) find(text string) (known, more bool) {
	at := sort.SearchStrings(t, text)
	known = at < len(t) && t[at] == text
	if known {
		at++
	}
	return known, at < len(t) && strings.HasPrefix(t[at], text)
}
