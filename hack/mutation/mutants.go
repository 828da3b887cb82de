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

// mutant is one small change to a function.
type mutant struct {
	// file is the path from the module's root; line is the changed line, counted from 1.
	file string
	line int
	// function is the changed function, with its receiver's type: "Client.Do".
	function string
	// before and after are the changed lines, each joined into one.
	before, after string
	// body is the changed function body, including its braces.
	body string
}

// key identifies a mutant regardless of its position in the file, until its line or its function's name changes.
func (m *mutant) key() string {
	return m.file + " " + m.function + ": " + m.before + " => " + cmp.Or(m.after, "(nothing)")
}

// source is a file whose functions have mutants.
type source struct {
	// path is relative to the module's root.
	path      string
	text      []byte
	functions []function
}

// function is a function with mutants.
type function struct {
	name string
	// results is the text of its results; begin and end are the offsets of its body in the file.
	results    string
	begin, end int
	mutants    []mutant
}

// opposites are the replacements for each operator: a bound shifted by one, and the negated comparison.
var opposites = map[token.Token][]token.Token{
	token.EQL: {token.NEQ}, token.NEQ: {token.EQL}, token.LSS: {token.LEQ, token.GEQ}, token.LEQ: {token.LSS, token.GTR},
	token.GTR: {token.GEQ, token.LEQ}, token.GEQ: {token.GTR, token.LSS}, token.LAND: {token.LOR}, token.LOR: {token.LAND},
	token.ADD: {token.SUB}, token.SUB: {token.ADD}, token.MUL: {token.QUO}, token.QUO: {token.MUL},
}

// mutator finds the mutants of a function.
type mutator struct {
	*function

	path    string
	fileSet *token.FileSet
	text    []byte
}

// sourcesOf returns a package's files with the mutants of their functions, in source order. dir is the package's
// folder, relative to root.
func sourcesOf(root, dir string) ([]source, error) {
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		return nil, err
	}
	var all []source
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(filepath.Base(file), "zz_generated") {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s, err := mutate(filepath.ToSlash(filepath.Join(dir, filepath.Base(file))), text)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// mutate finds the mutants of one file.
func mutate(path string, text []byte) (source, error) {
	s := source{path: path, text: text}
	fileSet := token.NewFileSet()
	tree, err := parser.ParseFile(fileSet, path, text, parser.SkipObjectResolution)
	if err != nil {
		return s, err
	}
	for _, declaration := range tree.Decls {
		f, ok := declaration.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		m := mutator{path: path, fileSet: fileSet, text: text, function: &function{name: nameOf(f)}}
		m.begin, m.end = m.offset(f.Body.Pos()), m.offset(f.Body.End())
		if r := f.Type.Results; r != nil {
			m.results = string(text[m.offset(r.Pos()):m.offset(r.End())])
		}
		ast.Inspect(f.Body, m.visit)
		s.functions = append(s.functions, *m.function)
	}
	return s, nil
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

func (m *mutator) offset(pos token.Pos) int { return m.fileSet.Position(pos).Offset }

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
		m.removeStatements(n.List)
	}
	if clause, ok := node.(*ast.CaseClause); ok {
		m.removeStatements(clause.Body)
	}
	return true
}

// negate negates a condition, unless it is a comparison or a combination of comparisons, which have their own mutants.
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

// removeStatements removes, one at a time, each statement that can be left out: an assignment, a call, a jump.
func (m *mutator) removeStatements(statements []ast.Stmt) {
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
	begin, end := m.offset(from), m.offset(to)
	first := bytes.LastIndexByte(m.text[:begin], '\n') + 1
	last := len(m.text)
	if next := bytes.IndexByte(m.text[end:], '\n'); next >= 0 {
		last = end + next
	}
	m.mutants = append(m.mutants, mutant{
		file: m.path, line: m.fileSet.Position(from).Line, function: m.name,
		before: oneLine(string(m.text[first:last])),
		after:  oneLine(string(m.text[first:begin]) + instead + string(m.text[end:last])),
		body:   string(m.text[m.begin:begin]) + instead + string(m.text[end:m.end]),
	})
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
