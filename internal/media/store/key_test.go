// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
)

// TestKey checks which annotations are honored.
func TestKey(t *testing.T) {
	const own, other = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
	for _, row := range []struct{ name, annotation, want string }{
		{"no key: the file is stored for this object", "", "acme/" + own},
		{"its own, as the manager writes it", "acme/" + own, "acme/" + own},
		{"the key of a restored object's original", "acme/" + other, "acme/" + other},
		{"another namespace's file is not this team's", "rival/" + other, "acme/" + own},
		{"a namespace with the same prefix", "acme-rival/" + other, "acme/" + own},
		{"a rendition of a file is not a file", "acme/" + other + ".cdb3cdf6469460b4634db3443e1a596e", "acme/" + own},
		{"a key of Herald's own files", "_herald/installation.json", "acme/" + own},
		{"a path out of the namespace", "acme/../rival/" + other, "acme/" + own},
		{"a name that is not a UID", "acme/film.mp4", "acme/" + own},
		{"more than a key", "acme/" + other + "\n", "acme/" + own},
	} {
		m := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", UID: own}}
		if row.annotation != "" {
			m.Annotations = map[string]string{v1alpha1.FileAnnotation: row.annotation}
		}
		if got := store.Key(m); got != row.want {
			t.Errorf("%s: %s, want %s", row.name, got, row.want)
		}
		if got, want := store.Restored(m), row.want != "acme/"+own; got != want {
			t.Errorf("%s: restored is %v", row.name, got)
		}
		if got := store.UIDKey(m); got != "acme/"+own {
			t.Errorf("%s: stored under %s", row.name, got)
		}
		if store.UIDOf(row.want) != row.want[len("acme/"):] {
			t.Errorf("%s: UID %s", row.name, store.UIDOf(row.want))
		}
	}
	source := &v1alpha1.Media{ObjectMeta: metav1.ObjectMeta{Namespace: "acme", UID: own}, Spec: v1alpha1.MediaSpec{Source: &v1alpha1.MediaSource{}}}
	if store.Overwritable(source) {
		t.Error("a file fetched by Herald counts as overwritable")
	}
	source.Annotations = map[string]string{v1alpha1.FileAnnotation: "acme/" + other}
	if !store.Overwritable(source) {
		t.Error("a client may be able to replace another object's file")
	}
}
