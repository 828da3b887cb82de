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
	// Name, Version, Source and Architecture are what its control file says. Source is the package of the sources.
	Name, Version, Source, Architecture string
	// Control is the control file.
	Control []byte
	// Files are its regular files by absolute path.
	Files map[string][]byte
	// Links are its symbolic links by absolute path, each with the absolute path that it leads to.
	Links map[string]string
	// Pin says where it came from; it is empty for a package that was not fetched by a lock.
	Pin Pin
}

// Unpack reads a package, with all that it holds in memory.
func Unpack(file string) (*Package, error) {
	control, err := run("dpkg-deb", "--field", file)
	if err != nil {
		return nil, err
	}
	p := &Package{Control: control, Files: map[string][]byte{}, Links: map[string]string{}}
	p.Name, p.Version, p.Architecture = field(control, "Package"), field(control, "Version"), field(control, "Architecture")
	// Without one, the package is called as its sources are. A version in parentheses is that of the sources.
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

// read takes in the files of a tar.
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
		name := path.Join("/", header.Name) //nolint:gosec // a key of a map; nothing is written there
		switch header.Typeflag {
		case tar.TypeReg:
			data, err := io.ReadAll(files)
			if err != nil {
				return err
			}
			p.Files[name] = data
		case tar.TypeLink:
			p.Files[name] = p.Files[path.Join("/", header.Linkname)] //nolint:gosec // a key of a map
		case tar.TypeSymlink:
			target := header.Linkname
			if !path.IsAbs(target) {
				target = path.Join(path.Dir(name), target) //nolint:gosec // a key of a map
			}
			p.Links[name] = path.Clean(target)
		}
	}
}

// field returns a field of a control file that has one line.
func field(control []byte, name string) string {
	for line := range strings.Lines(string(control)) {
		if value, found := strings.CutPrefix(line, name+":"); found {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
