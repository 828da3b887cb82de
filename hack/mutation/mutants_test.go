// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestMutate(t *testing.T) {
	for _, tt := range []struct {
		reason, statement string
		want              []string
	}{
		{"a bound is moved, and the comparison turned round", "return n < 3", []string{"return n <= 3", "return n >= 3"}},
		{"both and either", "return a && b", []string{"return a || b"}},
		{"sums", "return n + 1", []string{"return n - 1"}},
		{"a condition that compares nothing", "if a { panic(n) }", []string{"if !a { panic(n) }", "if a { }"}},
		{"a negated one", "if !a { return }", []string{"if a { return }"}},
		{
			"the conditions of a switch, which Go's coverage does not count", "switch { case a: return; case n == 3: return }",
			[]string{"switch { case !a: return; case n == 3: return }", "switch { case a: return; case n != 3: return }"},
		},
		{"truth", "return true", []string{"return false"}},
		{"what can be left out", "s.n = 3", []string{""}},
		{"what declares cannot", "x := 3", nil},
		{"jumps", "for { break }", []string{"for { }"}},
	} {
		t.Run(tt.reason, func(t *testing.T) {
			found, err := mutate("a/b.go", []byte("package a\n\nfunc (s *T) f() {\n\t"+tt.statement+"\n}\n"))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, m := range found {
				got = append(got, m.after)
				if m.before != tt.statement || m.function != "T.f" || m.line != 4 {
					t.Errorf("it stands in line %d of %s as %q", m.line, m.function, m.before)
				}
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %q, want %q", got, tt.want)
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
		{"a reason of two lines for two of them", "# It changes\n# nothing.\na.go f: x => y\na.go f: x => z\n", 2, false},
		{"a reason holds for its paragraph only", "# Nothing.\na.go f: x => y\n\na.go f: x => z\n", 0, true},
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
