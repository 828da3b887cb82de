// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/herald-social/herald/hack/image/licences"
)

// shipped are the programs in the published images, with the paths of their packages.
var shipped = []struct{ program, folder, packages string }{
	{"herald", ".", "./cmd/herald"},
	{"herald-sandbox", ".", "./cmd/herald-sandbox"},
	{"herald-store", "hack/store", "."},
}

// writeLicences writes docs/licences.md in the repository at o.out, and prints the number of modules listed.
func writeLicences(o options, stdout io.Writer) error {
	store, err := openLicences()
	if err != nil {
		return err
	}
	type use struct {
		licences.Module
		programs []string
	}
	var uses []*use
	known := map[string]*use{}
	for _, s := range shipped {
		modules, err := store.Packages(filepath.Join(o.out, s.folder), s.packages)
		if err != nil {
			return fmt.Errorf("%s: %w", s.program, err)
		}
		for _, m := range modules {
			key := m.Path + "@" + m.Version
			if known[key] == nil {
				known[key] = &use{Module: m}
				uses = append(uses, known[key])
			}
			known[key].programs = append(known[key].programs, s.program)
		}
	}
	slices.SortFunc(uses, func(a, b *use) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Version, b.Version))
	})
	var page bytes.Buffer
	page.WriteString(licencesHead)
	for _, u := range uses {
		fmt.Fprintf(&page, "| %s | %s | %s | %s |\n", u.Path, u.Version, strings.Join(u.Licences, ", "), strings.Join(u.programs, ", "))
	}
	file := filepath.Join(o.out, "docs", "licences.md")
	if err := os.WriteFile(file, page.Bytes(), 0o644); err != nil {
		return err
	}
	fmt.Fprintf(stdout, "%s names %d modules\n", file, len(uses))
	return nil
}

// licencesHead is the first part of docs/licences.md.
const licencesHead = `# Licences

<!-- Written by make generate (hack/image/licences.go). Do not edit. -->

Herald is under the Apache License 2.0. Its programs contain Go's standard library (BSD-3-Clause) and the modules below, under the listed licences.
Each image contains the licence texts of its program in ` + "`" + licencesPath + "`" + `. The image with ffmpeg also contains Debian
packages, with their licences in ` + "`/usr/share/doc`" + `. The build fails if a module has no licence, or one that ` + "`hack/image/licences`" + ` does not
allow.

| module | version | licences | part of |
| --- | --- | --- | --- |
`
