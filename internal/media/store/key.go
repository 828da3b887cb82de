// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// fileKey matches the key of a media file, namespace/UID, and of what was made of it,
// namespace/UID.name. Other files in the bucket are not Herald's.
var fileKey = regexp.MustCompile(`^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(\.[0-9a-z]+)?$`)

// ParseKey takes apart the key of a file: of the one that was stored for a Media of a
// namespace, or, if derived, of what was made of that. It reports false for all that is no
// file of a Media.
func ParseKey(key string) (namespace, uid string, derived, ok bool) {
	parts := fileKey.FindStringSubmatch(key)
	if parts == nil {
		return "", "", false, false
	}
	return parts[1], parts[2], parts[3] != "", true
}

// UIDKey returns the key under which the file of a Media is stored: namespace/UID. Nothing
// is ever stored under another one.
func UIDKey(m metav1.Object) string { return m.GetNamespace() + "/" + string(m.GetUID()) }

// Key returns the key of the file of a Media, or of its metadata: that of its annotation, if
// a backup may have brought it, and otherwise its own. A file of another namespace, or of no
// Media, is nobody's by an annotation.
func Key(m metav1.Object) string {
	noted := m.GetAnnotations()[v1alpha1.FileAnnotation]
	if namespace, _, derived, ok := ParseKey(noted); ok && !derived && namespace == m.GetNamespace() {
		return noted
	}
	return UIDKey(m)
}

// Restored reports whether the file of a Media was stored for another object: it is a copy,
// as one is that a backup brought back.
func Restored(m metav1.Object) bool { return Key(m) != UIDKey(m) }

// UIDOf returns the UID in the key of a file.
func UIDOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }
