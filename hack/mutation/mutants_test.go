// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMutate(t *testing.T) {
	for _, tt := range []struct {
		reason, statement string
		want              []string
	}{
		{"a comparison is negated, and its bound moved", "return n < 3", []string{"return n <= 3", "return n >= 3"}},
		{"&& becomes ||", "return a && b", []string{"return a || b"}},
		{"plus becomes minus", "return n + 1", []string{"return n - 1"}},
		{"a condition without a comparison", "if a { panic(n) }", []string{"if !a { panic(n) }", "if a { }"}},
		{"a negated condition", "if !a { return }", []string{"if a { return }"}},
		{
			"conditions of a switch, which coverage does not count", "switch { case a: return; case n == 3: return }",
			[]string{"switch { case !a: return; case n == 3: return }", "switch { case a: return; case n != 3: return }"},
		},
		{"a boolean constant", "return true", []string{"return false"}},
		{"an assignment is removed", "s.n = 3", []string{""}},
		{"a declaration cannot be removed", "x := 3", nil},
		{"a jump is removed", "for { break }", []string{"for { }"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			found, err := mutate("a/b.go", []byte("package a\n\nfunc (s *T) f() {\n\t"+tt.statement+"\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found.functions[0].mutants {
				got = append(got, m.after)
				if m.before != tt.statement || m.function != "T.f" || m.line != 4 {
					t.Errorf("got line %d of %s with %q", m.line, m.function, m.before)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

// TestMutateAll runs the whole command on a module with one package.
func TestMutateAll(t *testing.T) {
	root := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module example.org/m\n\ngo 1.26\n")
	// The label and the named result would clash if the mutants were not in separate functions. Without its jump the
	// label is unused, and strings cannot be subtracted, so these mutants do not compile.
	write("a/a.go", `// Package a counts.
package a

func Upper(limit int) (n int) {
count:
	for i := 0; ; i++ {
		if i >= limit {
			break count
		}
		n++
	}
	return
}

func Join(s string) { said = "so: " + s }

var said string
`)
	const test = "package a\n\nimport \"testing\"\n\nfunc TestUpper(t *testing.T) {\n\tif Join(\"x\"); %s {\n\t\tt.Error(\"wrong\")\n\t}\n}\n"
	const survivor = "a/a.go Upper: if i >= limit { => if i > limit {"
	for _, tt := range []struct {
		reason, condition, explained string
		least                        float64
		problem                      string
	}{
		{"the tests detect every mutant", `Upper(3) != 3 || said != "so: x"`, "", 100, ""},
		{"a survivor without an explanation", `Upper(3) < 3 || said != "so: x"`, "", 50, "1 mutants survived"},
		{"an explained survivor", `Upper(3) < 3 || said != "so: x"`, survivor, 50, ""},
		{"too many survivors, although they are explained", `Upper(3) < 3 || said != "so: x"`, survivor, 90, "want at least 90 % detected"},
		{"an explanation without a survivor", `Upper(3) != 3 || said != "so: x"`, survivor, 50, "remove it: " + survivor},
		{"tests that fail without a mutant", `Upper(3) == 3`, "", 50, "the tests of a fail without a mutant"},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			write("a/a_test.go", fmt.Sprintf(test, tt.condition))
			explained := ""
			if tt.explained != "" {
				explained = "# Nothing.\n" + tt.explained + "\n"
			}
			write("hack/mutation/survivors.txt", explained)
			err := mutateAll(t.Context(), root, []string{"a/"}, tt.least)
			if (err == nil) != (tt.problem == "") || err != nil && !strings.Contains(err.Error(), tt.problem) {
				t.Errorf("got %v, want %q", err, tt.problem)
			}
		})
	}
}

func TestReadExplanations(t *testing.T) {
	path := filepath.Join(t.TempDir(), "survivors.txt")
	for _, tt := range []struct {
		reason, text string
		want         int
		fails        bool
	}{
		{"no survivor", "", 0, false},
		{"two survivors with a two-line reason", "# It changes\n# nothing.\na.go f: x => y\na.go f: x => z\n", 2, false},
		{"a reason applies to its paragraph only", "# Nothing.\na.go f: x => y\n\na.go f: x => z\n", 0, true},
	} {
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := readExplanations(path)
		if len(got) != tt.want || (err != nil) != tt.fails {
			t.Errorf("%s: got %v, %v", tt.reason, got, err)
		}
		if tt.want == 2 && got["a.go f: x => z"] != "It changes nothing." {
			t.Errorf("%s: got %q", tt.reason, got)
		}
	}
}
