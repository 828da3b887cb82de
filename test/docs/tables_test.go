// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

var (
	code = regexp.MustCompile("`[^`]*`")
	// bar separates cells, unless it is escaped.
	bar = regexp.MustCompile(`(^|[^\\])\|`)
)

// TestTables checks that each row of a table has as many cells as the table's header. Renderers drop or shift the others.
func TestTables(t *testing.T) {
	for at, text := range pages(t) {
		header := 0
		for line := range strings.SplitSeq(text, "\n") {
			if !strings.HasPrefix(line, "|") {
				header = 0
				continue
			}
			bars := len(bar.FindAllString(code.ReplaceAllString(line, ""), -1))
			switch {
			case header == 0:
				header = bars
			case bars != header:
				t.Errorf("%s: a row has %d cells, and its table's header %d: %.80s", at, bars-1, header-1, line)
			}
		}
	}
}
