// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tree holds an image's files in memory, and writes them as a tar archive or to a folder.
package tree

import (
	"archive/tar"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a regular file or a folder, depending on its mode. Root owns all files, so the image's user cannot change
// them.
type File struct {
	Mode    fs.FileMode
	Content []byte
}

// Tree maps absolute paths, without a trailing slash, to files. Folders that contain files do not need an entry.
type Tree map[string]File

// Add adds a regular file.
func (t Tree) Add(name string, mode fs.FileMode, content []byte) {
	t[path.Clean(name)] = File{Mode: mode, Content: content}
}

// AddScratch adds a folder with the sticky bit: every user may write to it, but only delete files that they own.
func (t Tree) AddScratch(name string) {
	t[path.Clean(name)] = File{Mode: fs.ModeDir | fs.ModeSticky | 0o777}
}

// complete adds missing parent folders, and returns all names in writing order: folders precede their contents.
func (t Tree) complete() (Tree, []string) {
	all := maps.Clone(t)
	for name := range t {
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if _, there := all[dir]; !there {
				all[dir] = File{Mode: fs.ModeDir | 0o755}
			}
		}
	}
	return all, slices.Sorted(maps.Keys(all))
}

// WriteTar writes the tree reproducibly: the same tree and time always give the same bytes.
func (t Tree) WriteTar(w io.Writer, modified time.Time) error {
	out := tar.NewWriter(w)
	all, names := t.complete()
	for _, name := range names {
		file := all[name]
		header := &tar.Header{
			Name:     strings.TrimPrefix(name, "/"),
			Typeflag: tar.TypeReg,
			Mode:     tarMode(file.Mode),
			Size:     int64(len(file.Content)),
			ModTime:  modified.UTC().Truncate(time.Second),
			Format:   tar.FormatPAX,
		}
		if file.Mode.IsDir() {
			header.Typeflag = tar.TypeDir
			header.Name += "/"
		}
		if err := out.WriteHeader(header); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
		if _, err := out.Write(file.Content); err != nil {
			return fmt.Errorf("write %s: %w", name, err)
		}
	}
	return out.Close()
}

// tarMode returns a mode's bits as tar stores them.
func tarMode(mode fs.FileMode) int64 {
	bits := int64(mode.Perm())
	if mode&fs.ModeSticky != 0 {
		bits |= 0o1000
	}
	return bits
}

// WriteDir writes the tree to a folder.
func (t Tree) WriteDir(root string) error {
	all, names := t.complete()
	for _, name := range names {
		file, target := all[name], filepath.Join(root, filepath.FromSlash(name))
		var err error
		if file.Mode.IsDir() {
			err = os.MkdirAll(target, 0o755)
		} else {
			err = os.MkdirAll(filepath.Dir(target), 0o755)
			if err == nil {
				err = os.WriteFile(target, file.Content, 0o644)
			}
		}
		if err == nil {
			// Set the mode regardless of the umask.
			err = os.Chmod(target, file.Mode.Perm()|file.Mode&fs.ModeSticky)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
