// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// symbolLink matches links whose label is a symbol in code, such as [`delivery.Decide`](decide.go).
var symbolLink = regexp.MustCompile("\\[`([^`]+)`\\]\\(([^)\\s]+\\.go)(#[^)\\s]*)?\\)")

// goLink matches every link to a Go file.
var goLink = regexp.MustCompile(`\]\([^)\s]+\.go(#[^)\s]*)?\)`)

// TestSymbols resolves links to code: the linked file must declare the symbol. Links must not have line numbers, since
// lines move.
func TestSymbols(t *testing.T) {
	declared := map[string]map[string]bool{}
	found := 0
	for page, text := range pages(t) {
		for _, link := range goLink.FindAllStringSubmatch(text, -1) {
			if link[1] != "" {
				t.Errorf("%s: %s names a line; name the symbol: [`name`](file.go)", page, link[0])
			}
		}
		for _, link := range symbolLink.FindAllStringSubmatch(text, -1) {
			file, _, ok := inRepository(page, link[2])
			if !ok || strings.HasSuffix(link[1], ".go") {
				continue // a path, which TestLinks checks
			}
			found++
			if declared[file] == nil {
				declared[file] = declarations(t, file)
			}
			if !declared[file][nameOf(link[1])] {
				t.Errorf("%s: %s declares no %s", page, file, link[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("only %d links to symbols were found", found)
	}
}

// nameOf returns the name in an expression such as `pkg.Name`, `r.method` or `Name()`.
func nameOf(expression string) string {
	name := strings.TrimSuffix(expression, "()")
	return strings.TrimPrefix(path.Ext("."+name), ".")
}

// declarations returns the names that a Go file declares: functions, methods, types, constants, variables and fields.
func declarations(t *testing.T, file string) map[string]bool {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	must.Succeed(t, err)
	parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.SkipObjectResolution)
	must.Succeed(t, err)
	names := map[string]bool{}
	for _, declaration := range parsed.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			names[d.Name.Name] = true
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				add(names, spec)
			}
		}
	}
	return names
}

func add(names map[string]bool, spec ast.Spec) {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		names[s.Name.Name] = true
		ast.Inspect(s.Type, func(node ast.Node) bool {
			if field, ok := node.(*ast.Field); ok {
				for _, name := range field.Names {
					names[name.Name] = true
				}
			}
			return true
		})
	case *ast.ValueSpec:
		for _, name := range s.Names {
			names[name.Name] = true
		}
	}
}

func TestNameOf(t *testing.T) {
	for expression, want := range map[string]string{"Decide": "Decide", "delivery.Decide": "Decide", "r.work()": "work"} {
		if got := nameOf(expression); got != want {
			t.Errorf("%s: %q, want %q", expression, got, want)
		}
	}
}
