// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/checkout"
)

// quotedSpec matches the name of a spec in the last column of a table, such as *is removed completely*.
var quotedSpec = regexp.MustCompile(`\*([^*|]{8,})\*`)

// TestQuotedSpecs finds each spec that SECURITY.md names as the proof of a property.
func TestQuotedSpecs(t *testing.T) {
	root := checkout.Root()
	page, err := os.ReadFile(filepath.Join(root, "SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	quoted := quotedSpec.FindAllStringSubmatch(string(page), -1)
	if len(quoted) == 0 {
		t.Fatal("SECURITY.md names no specs; a property without a proof is a claim")
	}
	tests := testSources(t, root)
	for _, name := range quoted {
		if !strings.Contains(tests, name[1]) {
			t.Errorf("SECURITY.md names the spec %q, which no test has", name[1])
		}
	}
}

// testSources returns the text of all test files.
func testSources(t *testing.T, root string) string {
	t.Helper()
	var all strings.Builder
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := entry.Name(); entry.IsDir() && path != "." && (strings.HasPrefix(name, ".") || name == "bin" || name == "node_modules") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		all.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
