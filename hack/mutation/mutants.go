// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// mutant is one small change of one file.
type mutant struct {
	// file is its path from the root of the module, and line where the change stands, counted from 1.
	file string
	line int
	// function is the one that is changed, with its receiver's type: "Client.Do".
	function string
	// source is the whole file with the change.
	source []byte
	// before and after are the changed lines, in one line each.
	before, after string
}

// key names a mutant for as long as its line and its function are called the same, wherever they move in their file.
func (m *mutant) key() string {
	return m.file + " " + m.function + ": " + m.before + " => " + cmp.Or(m.after, "(nothing)")
}

// opposites are the operators that each operator is replaced by: the bound of a comparison is moved, and what a comparison
// says turned round.
var opposites = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

// mutator finds the mutants of a file.
type mutator struct {
	path, function string
	fileSet        *token.FileSet
	source         []byte
	found          []mutant
}

// mutantsOf returns the mutants of the functions of a package, in the order of its text. dir is its folder below root.
func mutantsOf(root, dir string) ([]mutant, error) {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_generated") {
			continue
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := mutate(filepath.ToSlash(filepath.Join(dir, filepath.Base(file))), source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mutate returns the mutants of one file.
func mutate(path string, source []byte) ([]mutant, error) {
	m := &mutator{path: path, fileSet: token.NewFileSet(), source: source}
	tree, err := parser.ParseFile(m.fileSet, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, declaration := range tree.Decls {
		if f, ok := declaration.(*ast.FuncDecl); ok && f.Body != nil {
			m.function = nameOf(f)
			ast.Inspect(f.Body, m.visit)
		}
	}
	return m.found, nil
}

func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil || len(f.Recv.List) == 0 {
		return f.Name.Name
	}
	of := f.Recv.List[0].Type
	if pointer, ok := of.(*ast.StarExpr); ok {
		of = pointer.X
	}
	if name, ok := of.(*ast.Ident); ok {
		return name.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func (m *mutator) visit(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.BinaryExpr:
		for _, other := range opposites[n.Op] {
			m.add(n.OpPos, n.OpPos+token.Pos(len(n.Op.String())), other.String())
		}
	case *ast.IfStmt:
		m.negate(n.Cond)
	case *ast.CaseClause:
		for _, e := range n.List {
			m.negate(e)
		}
	case *ast.Ident:
		switch n.Name {
		case "true":
			m.add(n.Pos(), n.End(), "false")
		case "false":
			m.add(n.Pos(), n.End(), "true")
		}
	case *ast.BlockStmt:
		m.leaveOut(n.List)
	}
	if clause, ok := node.(*ast.CaseClause); ok {
		m.leaveOut(clause.Body)
	}
	return true
}

// negate turns a condition round that is no comparison and no combination of such: those have mutants of their own.
func (m *mutator) negate(condition ast.Expr) {
	switch c := condition.(type) {
	case *ast.CallExpr, *ast.Ident, *ast.SelectorExpr:
		m.add(c.Pos(), c.Pos(), "!")
	case *ast.UnaryExpr:
		if c.Op == token.NOT {
			m.add(c.OpPos, c.OpPos+1, "")
		}
	}
}

// leaveOut removes each statement that something else can do without: an assignment, a call, a jump.
func (m *mutator) leaveOut(statements []ast.Stmt) {
	for _, s := range statements {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.BranchStmt:
		default:
			continue
		}
		m.add(s.Pos(), s.End(), "")
	}
}

func (m *mutator) add(from, to token.Pos, instead string) {
	begin, end := m.fileSet.Position(from), m.fileSet.Position(to)
	source := bytes.Join([][]byte{m.source[:begin.Offset], []byte(instead), m.source[end.Offset:]}, nil)
	first := bytes.LastIndexByte(m.source[:begin.Offset], '\n') + 1
	last := len(m.source)
	if next := bytes.IndexByte(m.source[end.Offset:], '\n'); next >= 0 {
		last = end.Offset + next
	}
	m.found = append(m.found, mutant{
		file: m.path, line: begin.Line, function: m.function, source: source,
		before: oneLine(m.source[first:last]), after: oneLine(source[first : last+len(source)-len(m.source)]),
	})
}

func oneLine(text []byte) string { return strings.Join(strings.Fields(string(text)), " ") }
