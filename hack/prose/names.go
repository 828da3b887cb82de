// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// exceptions.txt lists functions that may keep an everyday verb, one per line: FOLDER NAME REASON. NAME includes the
// receiver, if any.
//
//go:embed exceptions.txt
var exceptions string

// everyday matches a name that starts with a verb for which there is a technical term. Only whole words count: lookup
// is a term.
var everyday = regexp.MustCompile(`^(?i:takes?|taking|taken|took|tells?|telling|told|asks?|asking|asked|leaves?|leaving|left|looks?|looking|looked|` +
	`notes?|noting|noted|keeps?|keeping|kept|holds?|holding|held|judges?|judging|judged|counts?|counting|counted)([\p{Lu}\d_]|$)`)

// number matches a result type that is a number or whose name ends in count, so "count" is the right verb.
var number = regexp.MustCompile(`(^|[^\w])(u?int(8|16|32|64)?|(\w+\.)?(c|\w*C)ounts?)$`)

// funcName is a function whose name is checked. exempt is true if it returns a count.
type funcName struct {
	folder, name string
	exempt       bool
}

// checkNames prints the functions whose name starts with an everyday verb and that are not exceptions, and the
// exceptions that do not match a function. It reports whether there are none.
func checkNames(out io.Writer, paths []string, exceptions string) (ok bool, err error) {
	allowed, err := parseExceptions(exceptions)
	if err != nil {
		return false, err
	}
	ok = true
	matched := map[string]bool{}
	for _, path := range paths {
		if filepath.Ext(path) != ".go" || strings.Contains(path, "/testdata/") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		found, err := namesIn(path, source)
		if err != nil {
			return false, err
		}
		for _, f := range found {
			key := f.folder + " " + f.name
			switch {
			case allowed[key] != "":
				matched[key] = true
			case !f.exempt:
				fmt.Fprintf(out, "%s: %s is named by an everyday verb: use the field's term\n", path, f.name)
				ok = false
			}
		}
	}
	for key := range allowed {
		if !matched[key] {
			fmt.Fprintf(out, "hack/prose/exceptions.txt: %s does not match a function\n", key)
			ok = false
		}
	}
	return ok, nil
}

// parseExceptions returns the reasons by folder and name.
func parseExceptions(list string) (map[string]string, error) {
	reasons := map[string]string{}
	for line := range strings.Lines(list) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.SplitN(line, " ", 3)
		if len(words) < 3 {
			return nil, fmt.Errorf("hack/prose/exceptions.txt: %q has no reason", line)
		}
		reasons[words[0]+" "+words[1]] = words[2]
	}
	return reasons, nil
}

// namesIn returns the file's functions and methods, including interface methods, whose name starts with an everyday
// verb.
func namesIn(path string, source []byte) ([]funcName, error) {
	if generated.Match(firstLines(source)) {
		return nil, nil
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var found []funcName
	add := func(receiver string, name *ast.Ident, of *ast.FuncType) {
		if !everyday.MatchString(name.Name) {
			return
		}
		if receiver != "" {
			receiver += "."
		}
		found = append(found, funcName{filepath.ToSlash(filepath.Dir(path)), receiver + name.Name, returnsCount(source, files, name.Name, of)})
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			add(receiverOf(node), node.Name, node.Type)
		case *ast.TypeSpec:
			if of, isInterface := node.Type.(*ast.InterfaceType); isInterface {
				for _, method := range of.Methods.List {
					if signature, isMethod := method.Type.(*ast.FuncType); isMethod {
						add(node.Name.Name, method.Names[0], signature)
					}
				}
			}
		}
		return true
	})
	return found, nil
}

// receiverOf returns the name of a method's type, or "".
func receiverOf(f *ast.FuncDecl) (name string) {
	if f.Recv == nil {
		return ""
	}
	ast.Inspect(f.Recv.List[0].Type, func(node ast.Node) bool {
		if id, isIdent := node.(*ast.Ident); isIdent && name == "" {
			name = id.Name
		}
		return name == ""
	})
	return name
}

// returnsCount reports whether a name starts with "count" and the function returns a number.
func returnsCount(source []byte, files *token.FileSet, name string, of *ast.FuncType) bool {
	if !strings.HasPrefix(strings.ToLower(name), "count") || of.Results == nil {
		return false
	}
	first := of.Results.List[0].Type
	at := func(p token.Pos) int { return files.Position(p).Offset }
	return number.Match(bytes.TrimSpace(source[at(first.Pos()):at(first.End())]))
}
