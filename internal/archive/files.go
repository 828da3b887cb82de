// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive

import "strings"

const (
	// headOf is the maximum length of one segment of a key, between two slashes. A name has up to 253 characters, and
	// stores that keep files on disk, such as MinIO, accept segments of 255 bytes. Versity Gateway adds 28 bytes to the
	// name of a file that it overwrites (backend/posix, linkatOTmpfile).
	headOf = 200
	// folded is the suffix of the folder for the first part of a longer name. Names do not contain underscores.
	folded = "_/"
)

func isLong(name string) bool { return len(name) > headOf }

func fileOf(name string) string {
	if isLong(name) {
		return name[:headOf] + folded + name[headOf:] + extension
	}
	return name + extension
}

// nameOf returns the name that a document is stored under, or false if file does not belong to any name.
func nameOf(file string) (name string, ok bool) {
	name, ok = strings.CutSuffix(file, extension)
	if head, tail, long := strings.Cut(name, folded); long {
		name = head + tail
	}
	return name, ok && !strings.Contains(name, "/")
}

// CompareKeys compares two post names in the order of their records' keys, which is the order of Entries. "a-b" sorts
// before "a", because the extension follows the name.
func CompareKeys(a, b string) int { return strings.Compare(fileOf(a), fileOf(b)) }
