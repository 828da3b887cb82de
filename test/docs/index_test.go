// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"flag"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/oddfiles"
)

const (
	// index is the list of all pages in docs/. The pages of a folder below it are listed in the folder's own README.md.
	index = "docs/README.md"
	// maxWords limits a page to a length that readers can take in, not counting code blocks and generated parts.
	maxWords = 3500
	// maxDecisionWords limits a decision record to the decision and its reasons; tables do not count either. The
	// details belong on the page about the subject.
	maxDecisionWords = 700
)

var (
	// generatedPart matches the text between two markers that a generator fills in, such as "<!-- odd files -->".
	generatedPart = regexp.MustCompile(`(?s)<!-- ([a-z: ]+) -->\n.*?<!-- end of ([a-z: ]+) -->`)
	generatedPage = regexp.MustCompile(`(?m)^/(docs/\S+\.md)\s+linguist-generated$`)
	decisionPage  = regexp.MustCompile(`^docs/adr/\d{4}-`)
	tableRow      = regexp.MustCompile(`(?m)^\|.*$`)
)

// TestIndex compares the pages of docs/ with the indexes: each page is listed exactly once.
func TestIndex(t *testing.T) {
	all := pages(t)
	listed := map[string]int{}
	for page, text := range all {
		if !isIndex(page) {
			continue
		}
		for _, link := range target.FindAllStringSubmatch(text, -1) {
			file, anchor, ok := inRepository(page, link[1])
			if ok && anchor == "" && indexOf(file) == page {
				listed[file]++
			}
		}
	}
	for page := range all {
		if !strings.HasPrefix(page, "docs/") || page == index {
			continue
		}
		if listed[page] != 1 {
			t.Errorf("%s lists %s %d times, want once", indexOf(page), page, listed[page])
		}
	}
	for heading := range anchors(all[index]) {
		if link := "](" + index + "#" + heading + ")"; heading != "documentation" && !strings.Contains(all["README.md"], link) {
			t.Errorf("README.md does not link to the part %q of %s", heading, index)
		}
	}
}

func isIndex(page string) bool {
	return strings.HasPrefix(page, "docs/") && path.Base(page) == "README.md"
}

// indexOf returns the index that lists a page. The index of a folder is itself listed in the main index.
func indexOf(page string) string {
	folder := path.Dir(page)
	if isIndex(page) {
		folder = path.Dir(folder)
	}
	return folder + "/README.md"
}

// TestFolders requires docs/testing.md to list each folder of test/.
func TestFolders(t *testing.T) {
	_, table, _ := strings.Cut(pages(t)["docs/testing.md"], "### The folders of `test`")
	table, _, _ = strings.Cut(table, "\n#")
	folders, err := os.ReadDir(filepath.Join(root, "test"))
	must.Succeed(t, err)
	for _, folder := range folders {
		if folder.IsDir() && !strings.Contains(table, "`"+folder.Name()+"`") {
			t.Errorf("docs/testing.md does not list the folder test/%s", folder.Name())
		}
	}
}

// TestPageLengths limits the length of pages that are not generated.
func TestPageLengths(t *testing.T) {
	attributes, err := os.ReadFile(filepath.Join(root, ".gitattributes"))
	must.Succeed(t, err)
	generated := map[string]bool{}
	for _, line := range generatedPage.FindAllStringSubmatch(string(attributes), -1) {
		generated[line[1]] = true
	}
	for page, text := range pages(t) {
		if !strings.HasPrefix(page, "docs/") || generated[page] {
			continue
		}
		if n := words(text); n > maxWords {
			t.Errorf("%s has %d words, more than %d: split it by subject", page, n, maxWords)
		}
	}
}

// words counts the words of a page: everything that contains a letter or a digit, outside of generated parts.
func words(text string) int {
	n := 0
	for field := range strings.FieldsSeq(generatedPart.ReplaceAllString(text, "")) {
		if strings.ContainsFunc(field, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
			n++
		}
	}
	return n
}

func TestWords(t *testing.T) {
	for text, want := range map[string]int{
		"# A page\n\n| a | 2 |\n| --- | – |":                                          4,
		"before\n<!-- odd files -->\n\nmany rows\n\n<!-- end of odd files -->\nafter": 2,
	} {
		if got := words(text); got != want {
			t.Errorf("%q has %d words, want %d", text, got, want)
		}
	}
}

// TestDecisions requires all decision records to start in the same way, with title, status and the decision in one
// paragraph, and limits their length.
func TestDecisions(t *testing.T) {
	found := 0
	for page, text := range pages(t) {
		if !decisionPage.MatchString(page) {
			continue
		}
		found++
		blocks := strings.SplitN(strings.TrimSpace(text), "\n\n", 4)
		if len(blocks) < 4 || !strings.HasPrefix(blocks[1], "Status: ") || !strings.HasPrefix(blocks[2], "**Decision:** ") {
			t.Errorf("%s does not start with its status and decision", page)
		}
		if n := words(tableRow.ReplaceAllString(text, "")); n > maxDecisionWords {
			t.Errorf("%s has %d words, more than %d: move details to the page about the subject", page, n, maxDecisionWords)
		}
	}
	if found < 20 {
		t.Errorf("only %d decision records were found", found)
	}
}

//go:generate go test . -count=1 -run ^TestOddFiles$ -args -update

var update = flag.Bool("update", false, "write the table of odd files into docs/odd-files.md")

// leastOddFiles is the minimum number of files in the table.
const leastOddFiles = 120

// TestOddFiles compares the table of docs/odd-files.md with the files of test/oddfiles.
func TestOddFiles(t *testing.T) {
	rows, names := oddfiles.Rows(), map[string]bool{}
	for i := range rows {
		row := &rows[i]
		if names[row.Name] || row.Reason == "" || row.Declares() == "" {
			t.Errorf("%s: the file is listed twice, or has no reason or no type", row.Name)
		}
		names[row.Name] = true
	}
	if len(names) < leastOddFiles {
		t.Errorf("got %d files", len(names))
	}
	file := filepath.Join(root, "docs", "odd-files.md")
	page, err := os.ReadFile(file)
	must.Succeed(t, err)
	const begin, end = "<!-- odd files -->\n", "<!-- end of odd files -->\n"
	before, rest, started := strings.Cut(string(page), begin)
	table, after, ended := strings.Cut(rest, end)
	switch want := oddfiles.Table(); {
	case !started || !ended:
		t.Fatalf("docs/odd-files.md has no part between %q and %q", begin, end)
	case *update:
		must.Succeed(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o600))
	case table != want:
		t.Error("the table of docs/odd-files.md differs from the rows of test/oddfiles: run `make generate`")
	}
}
