// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/oddfiles"
)

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
			t.Errorf("%s: it is there twice, or lacks its reason or its type", row.Name)
		}
		names[row.Name] = true
	}
	if len(names) < leastOddFiles {
		t.Errorf("there are %d files", len(names))
	}
	file := filepath.Join(root, "docs", "odd-files.md")
	page, err := os.ReadFile(file)
	do(t, err)
	const begin, end = "<!-- odd files -->\n", "<!-- end of odd files -->\n"
	before, rest, begun := strings.Cut(string(page), begin)
	table, after, ended := strings.Cut(rest, end)
	switch want := oddfiles.Table(); {
	case !begun || !ended:
		t.Fatalf("docs/odd-files.md has no part between %q and %q", begin, end)
	case *update:
		do(t, os.WriteFile(file, []byte(before+begin+want+end+after), 0o600))
	case table != want:
		t.Error("the table of docs/odd-files.md differs from the rows of test/oddfiles: run `make generate`")
	}
}
