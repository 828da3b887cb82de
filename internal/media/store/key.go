// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// fileKey matches the keys of Herald's files: a media file, namespace/UID, or a derived one, namespace/UID.name.
var fileKey = regexp.MustCompile(`^([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)/([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})(\.[0-9a-z]+)?$`)

// ParseKey parses the key of a Media's file or, if derived is true, of a file made from it. ok is false for other keys.
func ParseKey(key string) (namespace, uid string, derived, ok bool) {
	parts := fileKey.FindStringSubmatch(key)
	if parts == nil {
		return "", "", false, false
	}
	return parts[1], parts[2], parts[3] != "", true
}

// UIDKey returns a Media's own key, namespace/UID. Its file is never stored under another key.
func UIDKey(m metav1.Object) string { return m.GetNamespace() + "/" + string(m.GetUID()) }

// Key returns the key of a Media's file, given the Media or its metadata: the key in its annotation, if it may have
// been restored from a backup, and otherwise UIDKey. It ignores an annotation whose key is in another namespace or is
// not that of a media file.
func Key(m metav1.Object) string {
	recorded := m.GetAnnotations()[v1alpha1.FileAnnotation]
	if namespace, _, derived, ok := ParseKey(recorded); ok && !derived && namespace == m.GetNamespace() {
		return recorded
	}
	return UIDKey(m)
}

// Restored reports whether a Media's file was stored for another object that the Media was restored or copied from.
func Restored(m metav1.Object) bool { return Key(m) != UIDKey(m) }

// UIDOf returns the UID in a file's key.
func UIDOf(key string) string { return key[strings.LastIndexByte(key, '/')+1:] }
