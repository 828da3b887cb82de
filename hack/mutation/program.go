// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

// variable is the environment variable that selects the active mutant; if it is not set, there is none.
const variable = "HERALD_MUTANT"

// chooser is a file added to the mutated package. The package's functions read it to determine which mutant is active.
const chooser = `

import (
	"os"
	"strconv"
)

var mutantAtWork, _ = strconv.Atoi(os.Getenv("` + variable + `"))
`

// program is a package together with all of its mutants, so it is built only once: each function starts with a switch
// over its mutants.
type program struct {
	root, dir string
	sources   []source
	// mutants are counted from 1. notBuilt are the mutants that do not compile.
	mutants  []*mutant
	notBuilt map[int]bool
	// scratch is the folder with the changed files and the tests; overlay is the overlay file that passes them to the
	// go command.
	scratch, overlay string
}

func newProgram(root, dir, scratch string) (*program, error) {
	sources, err := sourcesOf(root, dir)
	if err != nil {
		return nil, err
	}
	p := &program{
		root: root, dir: dir, sources: sources, mutants: []*mutant{nil}, notBuilt: map[int]bool{},
		scratch: scratch, overlay: filepath.Join(scratch, "overlay.json"),
	}
	for i := range sources {
		for j := range sources[i].functions {
			for k := range sources[i].functions[j].mutants {
				p.mutants = append(p.mutants, &sources[i].functions[j].mutants[k])
			}
		}
	}
	if len(p.mutants) == 1 {
		return nil, fmt.Errorf("%s has nothing to mutate", dir)
	}
	return p, nil
}

// build builds a package's tests against the program, without the mutants that do not compile.
func (p *program) build(ctx context.Context, tests string) (binary string, err error) {
	binary = filepath.Join(p.scratch, strings.ReplaceAll(tests, "/", "_")+".test")
	for {
		if err := p.write(); err != nil {
			return "", err
		}
		command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-gcflags=-e", "-overlay", p.overlay, "-o", binary, "./"+tests)
		command.Dir = p.root
		out, err := command.CombinedOutput()
		if err == nil {
			return binary, nil
		}
		if !p.excludeBroken(out) {
			return "", errors.Join(context.Cause(ctx), fmt.Errorf("build the tests of %s: %w\n%s", tests, err, out))
		}
	}
}

var mutantInError = regexp.MustCompile(`mutant(\d+):\d+`)

// excludeBroken excludes the mutants that the compiler's errors name, and reports whether there were any.
func (p *program) excludeBroken(out []byte) bool {
	before := len(p.notBuilt)
	for _, match := range mutantInError.FindAllSubmatch(out, -1) {
		if number, err := strconv.Atoi(string(match[1])); err == nil {
			p.notBuilt[number] = true
		}
	}
	return len(p.notBuilt) > before
}

// write writes the changed files.
func (p *program) write() error {
	replaced := map[string]string{}
	put := func(path string, text []byte) error {
		changed := filepath.Join(p.scratch, strings.ReplaceAll(path, "/", "_"))
		replaced[filepath.Join(p.root, filepath.FromSlash(path))] = changed
		return os.WriteFile(changed, text, 0o600)
	}
	number := 0
	for i := range p.sources {
		if err := put(p.sources[i].path, p.sources[i].withMutants(&number, p.notBuilt)); err != nil {
			return err
		}
	}
	clause, err := packageClause(p.sources[0].text)
	if err != nil {
		return err
	}
	if err := put(p.dir+"/zz_mutant.go", []byte(clause+chooser)); err != nil {
		return err
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return err
	}
	return os.WriteFile(p.overlay, overlay, 0o600)
}

// packageClause returns the line of a file that contains the package clause.
func packageClause(text []byte) (string, error) {
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("package ")) {
			return string(line), nil
		}
	}
	return "", errors.New("a file without a package")
}

// withMutants returns the text of a file whose functions include their mutants. number is the number of the last mutant
// before this file, and is increased.
func (s *source) withMutants(number *int, notBuilt map[int]bool) []byte {
	var text bytes.Buffer
	done := 0
	for i := range s.functions {
		f := &s.functions[i]
		text.Write(s.text[done : f.begin+1])
		text.WriteString("\nswitch mutantAtWork {\n")
		for j := range f.mutants {
			*number++
			if notBuilt[*number] {
				continue
			}
			// With the line directive, compiler errors identify the mutant. A separate function keeps the body's labels
			// and return statements valid.
			call := fmt.Sprintf("func() %s {\n//line mutant%d:1\n%s\n}()", f.results, *number, f.mutants[j].body[1:len(f.mutants[j].body)-1])
			if f.results == "" {
				fmt.Fprintf(&text, "case %d:\n%s\nreturn\n", *number, call)
			} else {
				fmt.Fprintf(&text, "case %d:\nreturn %s\n", *number, call)
			}
		}
		fmt.Fprintf(&text, "}\n//line %s:%d\n", filepath.Base(s.path), 1+bytes.Count(s.text[:f.begin], []byte("\n")))
		done = f.begin + 1
	}
	text.Write(s.text[done:])
	return text.Bytes()
}
