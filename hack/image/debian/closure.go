// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"bytes"
	"cmp"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/herald-social/herald/hack/image/tree"
)

// triplets are the names of Debian's library folders, by architecture. The loader searches /usr/lib/<triplet> by
// default.
var triplets = map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}

// Base is the package with the system's name, by which scanners identify the distribution, and with the texts of common
// licences that other packages refer to.
const Base = "base-files"

// closure collects a program and the libraries it links to.
type closure struct {
	libraries string
	linkage   linkage
	owner     map[string]*Package
	files     tree.Tree
	used      map[*Package]bool
}

// linkage returns the loader of a program or library, if it has one, and the libraries it links to.
type linkage func(content []byte) (loader string, needed []string, err error)

// Closure returns a program with its loader and its direct and indirect libraries, and the packages that contain them,
// sorted by name. It leaves out libraries that are only opened at run time, such as drivers. Each library is stored
// under the name it is linked by, in the loader's first folder, so neither links nor caches are needed.
func Closure(packages []*Package, architecture, program string) (tree.Tree, []*Package, error) {
	return collect(packages, architecture, program, elfLinkage)
}

func collect(packages []*Package, architecture, program string, read linkage) (tree.Tree, []*Package, error) {
	triplet, known := triplets[architecture]
	if !known {
		return nil, nil, fmt.Errorf("architecture %s is none of %s", architecture, slices.Sorted(maps.Keys(triplets)))
	}
	c := closure{
		libraries: "/usr/lib/" + triplet,
		linkage:   read,
		owner:     map[string]*Package{},
		files:     tree.Tree{},
		used:      map[*Package]bool{},
	}
	for _, p := range packages {
		for name := range p.Files {
			c.owner[name] = p
		}
		for name := range p.Links {
			c.owner[name] = p
		}
	}
	if err := c.addProgram(program); err != nil {
		return nil, nil, err
	}
	for _, p := range packages {
		if c.used[p] || p.Name == Base {
			c.used[p] = true
			c.document(p)
		}
	}
	used := slices.SortedFunc(maps.Keys(c.used), func(a, b *Package) int { return cmp.Compare(a.Name, b.Name) })
	return c.files, used, nil
}

// addProgram adds a program and all its dependencies.
func (c *closure) addProgram(program string) error {
	type need struct{ name, by string }
	content, err := c.addFile(program, program, 0o755)
	if err != nil {
		return err
	}
	loader, needed, err := c.linkage(content)
	if err != nil {
		return fmt.Errorf("read %s: %w", program, err)
	}
	if loader != "" {
		where, found := c.find(path.Base(loader))
		if !found {
			return fmt.Errorf("no package has %s, the loader of %s", loader, program)
		}
		if _, err := c.addFile(where, loader, 0o755); err != nil {
			return err
		}
	}
	var queue []need
	for _, name := range needed {
		queue = append(queue, need{name, program})
	}
	for len(queue) > 0 {
		next := queue[0]
		queue = queue[1:]
		target := path.Join(c.libraries, next.name)
		if _, done := c.files[target]; done {
			continue
		}
		where, found := c.find(next.name)
		if !found {
			return fmt.Errorf("no package has %s, which %s needs", next.name, next.by)
		}
		content, err := c.addFile(where, target, 0o644)
		if err != nil {
			return err
		}
		_, needed, err := c.linkage(content)
		if err != nil {
			return fmt.Errorf("read %s: %w", where, err)
		}
		for _, name := range needed {
			queue = append(queue, need{name, where})
		}
	}
	return nil
}

// find returns the path of a library: the path in the loader's default folders if it exists, otherwise the first other
// path, such as one of the alternatives in /etc/alternatives.
func (c *closure) find(name string) (string, bool) {
	for _, dir := range []string{c.libraries, strings.TrimPrefix(c.libraries, "/usr")} {
		if file := path.Join(dir, name); c.owner[file] != nil {
			return file, true
		}
	}
	var elsewhere []string
	for file := range c.owner {
		// Skip libraries that run only on newer processors.
		if path.Base(file) == name && !strings.Contains(file, "/glibc-hwcaps/") {
			elsewhere = append(elsewhere, file)
		}
	}
	if len(elsewhere) == 0 {
		return "", false
	}
	return slices.Min(elsewhere), true
}

// addFile adds the file at from, or the target if it is a link, to the image and returns its content.
func (c *closure) addFile(from, to string, mode fs.FileMode) ([]byte, error) {
	// Linux's limit on symbolic links.
	const maxLinks = 40
	name := from
	for range maxLinks {
		owner, found := c.resolve(&name)
		if !found {
			return nil, fmt.Errorf("no package has %s, to which %s leads", name, from)
		}
		c.used[owner] = true
		if content, regular := owner.Files[name]; regular {
			c.files.Add(to, mode, content)
			return content, nil
		}
		name = owner.Links[name]
	}
	return nil, fmt.Errorf("the links from %s have no end", from)
}

// resolve returns the package that contains a path. /lib, /bin and similar folders are links into /usr, which no
// package here contains.
func (c *closure) resolve(name *string) (*Package, bool) {
	for _, candidate := range []string{*name, path.Join("/usr", *name), strings.TrimPrefix(*name, "/usr")} {
		if owner, found := c.owner[candidate]; found {
			*name = candidate
			return owner, true
		}
	}
	return nil, false
}

// document adds the files that contain a package's origin and licence.
func (c *closure) document(p *Package) {
	// Scanners look here for the installed packages of images without dpkg.
	c.files.Add("/var/lib/dpkg/status.d/"+p.Name, 0o644, p.Control)
	for name, content := range p.Files {
		if name == "/usr/share/doc/"+p.Name+"/copyright" || strings.HasPrefix(name, "/usr/share/common-licenses/") {
			c.files.Add(name, 0o644, content)
		}
	}
	for name, target := range p.Links {
		if strings.HasPrefix(name, "/usr/share/common-licenses/") {
			c.files.Add(name, 0o644, p.Files[target])
		}
	}
	if release, found := p.Files["/usr/lib/os-release"]; found && p.Name == Base {
		c.files.Add("/etc/os-release", 0o644, release)
	}
}

func elfLinkage(content []byte) (loader string, needed []string, err error) {
	file, err := elf.NewFile(bytes.NewReader(content))
	if err != nil {
		return "", nil, err
	}
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			name, err := io.ReadAll(segment.Open())
			if err != nil {
				return "", nil, err
			}
			loader = string(bytes.TrimRight(name, "\x00"))
		}
	}
	needed, err = file.ImportedLibraries()
	return loader, needed, err
}
