// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"regexp"
	"strings"
	"testing"
)

// maxTerms limits the glossary to the terms that only Herald has.
const maxTerms = 50

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

// TestGlossary limits the number of terms in the glossary.
func TestGlossary(t *testing.T) {
	text, terms := pages(t)["docs/glossary.md"], 0
	for line := range strings.SplitSeq(text, "\n") {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| term |") && !strings.HasPrefix(line, "| --- |") {
			terms++
		}
	}
	if terms == 0 || terms > maxTerms {
		t.Errorf("docs/glossary.md has %d terms, want at most %d: use the field's own terms, which need no definition", terms, maxTerms)
	}
}
