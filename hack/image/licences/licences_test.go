// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package licences

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

// mit is a complete licence apart from its copyright holders.
const mit = `MIT License

Copyright (c) 2026 A. Person

Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated documentation files (the
"Software"), to deal in the Software without restriction, including without limitation the rights to use, copy, modify, merge, publish,
distribute, sublicense, and/or sell copies of the Software, and to permit persons to whom the Software is furnished to do so, subject to the
following conditions:

The above copyright notice and this permission notice shall be included in all copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY
CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE
SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.
`

// licence returns one of the classifier's licence texts.
func licence(t *testing.T, name string) string {
	t.Helper()
	out, err := run("", "list", "-m", "-f", "{{.Dir}}", "github.com/google/licenseclassifier/v2")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(out)), "assets", "License", name, "license.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestOf(t *testing.T) {
	t.Parallel()
	agpl := licence(t, "AGPL-3.0")
	for name, c := range map[string]struct {
		why   string
		files map[string]string
		want  []string
		err   string
	}{
		"one":           {"most modules have one file", map[string]string{"LICENSE": mit, "main.go": "package a"}, []string{"MIT"}, ""},
		"below":         {"third-party code has its own licence", map[string]string{"LICENSE": mit, "third_party/b/COPYING.txt": mit, "NOTICE": "by B"}, []string{"MIT"}, ""},
		"none":          {"without a licence, no use is permitted", map[string]string{"README.md": "free"}, nil, "no licence was found"},
		"too much":      {"its terms would apply to Herald", map[string]string{"LICENSE": agpl}, nil, "AGPL-3.0 is not among those allowed"},
		"too much, too": {"an allowed licence does not cover other files", map[string]string{"LICENSE": mit, "x/LICENSE": agpl}, nil, "AGPL-3.0 is not among those allowed"},
		"test data":     {"test data is not linked", map[string]string{"LICENSE": mit, "testdata/LICENSE": agpl}, []string{"MIT"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cache := t.TempDir()
			for file, text := range c.files {
				file = filepath.Join(cache, "example.com", "!a@v1.2.3", filepath.FromSlash(file))
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			got, err := Of(debug.Module{Path: "example.com/A", Version: "v1.2.3"}, cache, "")
			if c.err != "" {
				if err == nil || !strings.Contains(err.Error(), c.err) {
					t.Fatalf("%s: %v", c.why, err)
				}
				return
			}
			if err != nil || !slices.Equal(got.Licences, c.want) {
				t.Errorf("%s: %v, %v", c.why, got.Licences, err)
			}
		})
	}
}

func TestTextsAreUnique(t *testing.T) {
	t.Parallel()
	texts := string(Texts([]Module{
		{Path: "example.com/a", Version: "v1.0.0", Files: []File{{"LICENSE", []byte(mit)}}},
		{Path: "example.com/b", Version: "v2.0.0", Files: []File{{"LICENSE.txt", []byte(mit + "\n")}, {"NOTICE", []byte("by B")}}},
	}))
	if strings.Count(texts, "MIT License") != 1 || !strings.Contains(texts, "by B") {
		t.Errorf("a text appears twice:\n%s", texts)
	}
	for _, user := range []string{"example.com/a v1.0.0 (LICENSE)", "example.com/b v2.0.0 (LICENSE.txt)", "example.com/b v2.0.0 (NOTICE)"} {
		if !strings.Contains(texts, user) {
			t.Errorf("%s is missing:\n%s", user, texts)
		}
	}
}
