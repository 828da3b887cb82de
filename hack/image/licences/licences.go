// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package licences finds the licences of a program's modules. Most of them require their text to be distributed with
// the program, and none may have requirements that Herald's own licence cannot meet.
package licences

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/google/licenseclassifier/v2/assets"
	"golang.org/x/mod/module"
)

// Allowed lists the SPDX identifiers of the licences that a module may have. A program that includes their text can be
// distributed under the Apache License. MPL-2.0 also requires the source of the module's files, which the module's
// address provides.
var Allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0", "Unlicense", "0BSD", "Zlib"}

// confidence is the classifier's minimum score. Its own tools use 0.8.
const confidence = 0.8

// standard is Go's name for the standard library's path.
const standard = "std"

// File is a licence text, or a notice that belongs to one.
type File struct {
	// Name is its path in the module.
	Name string
	Text []byte
}

// Module is a module with its licences.
type Module struct {
	Path, Version string
	// Licences are their SPDX identifiers, sorted.
	Licences []string
	Files    []File
}

// file matches the file names of licences and notices.
var file = regexp.MustCompile(`(?i)^(licen[cs]e|copying|unlicense|notice|patents|copyright)([-_.].*)?$`)

// Of returns the licences of a module in the module cache or, for the standard library, in goroot. It fails if there is
// none, or if one is not allowed.
func Of(m debug.Module, cache, goroot string) (Module, error) {
	found := Module{Path: m.Path, Version: m.Version}
	folder := goroot
	if m.Path != standard {
		name, err := module.EscapePath(m.Path)
		if err != nil {
			return found, err
		}
		version, err := module.EscapeVersion(m.Version)
		if err != nil {
			return found, err
		}
		folder = filepath.Join(cache, filepath.FromSlash(name)+"@"+version)
	}
	var err error
	if found.Files, err = files(folder, m.Path == standard); err != nil {
		return found, fmt.Errorf("%s: %w", m.Path, err)
	}
	if found.Licences, err = identify(found.Files); err != nil {
		return found, fmt.Errorf("%s %s in %s: %w", m.Path, m.Version, folder, err)
	}
	return found, nil
}

// files returns the licences and notices in a folder and its subfolders, where some modules keep other projects' code.
func files(root string, topOnly bool) ([]File, error) {
	folder, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer func() { _ = folder.Close() }()
	var out []File
	err = fs.WalkDir(folder.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch name := entry.Name(); {
		case entry.IsDir() && path != "." && (topOnly || slices.Contains([]string{"testdata", "vendor", "node_modules"}, name)):
			return fs.SkipDir
		case entry.IsDir(), !file.MatchString(name), strings.HasSuffix(name, ".go"):
			return nil
		}
		text, err := fs.ReadFile(folder.FS(), path)
		out = append(out, File{Name: path, Text: text})
		return err
	})
	return out, err
}

// classifier identifies licence texts. Loading it takes most of a second.
var classifier = sync.OnceValues(assets.DefaultClassifier)

// identify returns the licences that the texts contain.
func identify(texts []File) ([]string, error) {
	classify, err := classifier()
	if err != nil {
		return nil, err
	}
	var found []string
	for _, text := range texts {
		for _, match := range classify.Match(text.Text).Matches {
			if match.MatchType == "License" && match.Confidence >= confidence {
				found = append(found, match.Name)
			}
		}
	}
	slices.Sort(found)
	found = slices.Compact(found)
	if len(found) == 0 {
		return nil, errors.New("no licence was found; without one it must not be used")
	}
	for _, name := range found {
		if !slices.Contains(Allowed, name) {
			return nil, fmt.Errorf("the licence %s is not among those allowed (%s)", name, strings.Join(Allowed, ", "))
		}
	}
	return found, nil
}

// Texts returns every text that the modules require to be distributed with a program, each once.
func Texts(modules []Module) []byte {
	var out bytes.Buffer
	out.WriteString("What this program is made of, and the licences of it.\n")
	type work struct {
		text  string
		users []string
	}
	var works []*work
	known := map[string]*work{}
	for i := range modules {
		m := &modules[i]
		for _, f := range m.Files {
			text := strings.TrimSpace(string(f.Text))
			if known[text] == nil {
				known[text] = &work{text: text}
				works = append(works, known[text])
			}
			known[text].users = append(known[text].users, fmt.Sprintf("%s %s (%s)", m.Path, m.Version, f.Name))
		}
	}
	for _, w := range works {
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(w.users, "\n"), strings.Repeat("-", 80), w.text)
	}
	return out.Bytes()
}
