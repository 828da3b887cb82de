// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// fileKey matches the key of a media file, namespace/UID, and of files derived from it, namespace/UID.name. Other files
// in the bucket are not Herald's.
var fileKey = regexp.MustCompile(`^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(\.[0-9a-z]+)?$`)

// ParseKey parses the key of the file of a Media in a namespace, or, if derived, of a file that was made from it. ok is
// false for other keys.
func ParseKey(key string) (namespace, uid string, derived, ok bool) {
	parts := fileKey.FindStringSubmatch(key)
	if parts == nil {
		return "", "", false, false
	}
	return parts[1], parts[2], parts[3] != "", true
}

// UIDKey returns the key that the file of a Media is stored under: namespace/UID. It is never stored under another key.
func UIDKey(m metav1.Object) string { return m.GetNamespace() + "/" + string(m.GetUID()) }

// Key returns the key of the file of a Media, or of its metadata: the key in its annotation, if a backup may have
// restored it, and otherwise UIDKey. An annotation with a key in another namespace, or with a key that is not a media
// file's, is ignored.
func Key(m metav1.Object) string {
	noted := m.GetAnnotations()[v1alpha1.FileAnnotation]
	if namespace, _, derived, ok := ParseKey(noted); ok && !derived && namespace == m.GetNamespace() {
		return noted
	}
	return UIDKey(m)
}

// Restored reports whether the file of a Media was stored for another object: the Media is a copy, such as one that was
// restored from a backup.
func Restored(m metav1.Object) bool { return Key(m) != UIDKey(m) }

// UIDOf returns the UID in the key of a file.
func UIDOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }
