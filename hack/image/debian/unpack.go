// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Package is an unpacked package.
type Package struct {
	// Name, Version, Source and Architecture come from its control file. Source is the source package.
	Name, Version, Source, Architecture string
	// Control is the control file.
	Control []byte
	// Files are its regular files, by absolute path.
	Files map[string][]byte
	// Links are its symbolic links, by absolute path, with the absolute paths of their targets.
	Links map[string]string
	// Pin is the package's pin, or empty if the package is not from a lock file.
	Pin Pin
}

// Unpack reads a package into memory.
func Unpack(file string) (*Package, error) {
	control, err := run("dpkg-deb", "--field", file)
	if err != nil {
		return nil, err
	}
	p := &Package{Control: control, Files: map[string][]byte{}, Links: map[string]string{}}
	p.Name, p.Version, p.Architecture = field(control, "Package"), field(control, "Version"), field(control, "Architecture")
	// If the field is missing, the source package has the same name. A version in parentheses is the source package's
	// version.
	p.Source, _, _ = strings.Cut(field(control, "Source"), " ")
	if p.Source == "" {
		p.Source = p.Name
	}
	content, err := run("dpkg-deb", "--fsys-tarfile", file)
	if err != nil {
		return nil, err
	}
	if err := p.read(bytes.NewReader(content)); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	return p, nil
}

// read reads the files in a tar archive.
func (p *Package) read(content io.Reader) error {
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name := path.Join("/", header.Name) //nolint:gosec // a map key; no file is written there
		switch header.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(files)
			if err != nil {
				return err
			}
			p.Files[name] = data
		case tar.TypeLink:
			p.Files[name] = p.Files[path.Join("/", header.Linkname)] //nolint:gosec // a map key
		case tar.TypeSymlink:
			target := header.Linkname
			if !path.IsAbs(target) {
				target = path.Join(path.Dir(name), target) //nolint:gosec // a map key
			}
			p.Links[name] = path.Clean(target)
		}
	}
}

// field returns a single-line field of a control file.
func field(control []byte, name string) string {
	for line := range strings.Lines(string(control)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
