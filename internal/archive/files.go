// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import "strings"

const (
	// headOf is how much of a name is one part of a key between two slashes. A name has up to 253 characters, and stores
	// that keep files on a disk, such as MinIO, take parts of 255 bytes. Versity Gateway adds 28 to the name of a file that
	// it writes again (backend/posix, linkatOTmpfile).
	headOf = 200
	// folded ends the folder that the head of a longer name is. No name has an underscore, so that no file is named like it.
	folded = "_/"
)

// isLong reports whether a name takes two parts of a key.
func isLong(name string) bool { return len(name) > headOf }

// fileOf is the end of the key of a document that is kept by the name of an object.
func fileOf(name string) string {
	if isLong(name) {
		return name[:headOf] + folded + name[headOf:] + extension
	}
	return name + extension
}

// nameOf is the name by which a document is kept; false if no name has that file.
func nameOf(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, extension)
	if head, tail, long := strings.Cut(name, folded); long {
		name = head + tail
	}
	return name, ok && !strings.Contains(name, "/")
}

// CompareKeys compares the names of posts by the keys of their records, which is the order of
// Entries: that of a name comes after those of names that it begins with and a dash follows.
func CompareKeys(a, b string) int { return strings.Compare(fileOf(a), fileOf(b)) }
