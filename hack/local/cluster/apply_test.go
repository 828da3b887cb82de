// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestReadFolder(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.yaml":             "# only a comment\n---\nkind: Namespace\nmetadata: {name: one}\n---\nkind: Role\nmetadata: {name: two}\n",
		"deep/b.yaml":        "kind: Role\nmetadata: {name: three}\n",
		"kustomization.yaml": "kind: Kustomization\n",
		"notes.md":           "kind: Nothing\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	objects, err := readFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	if want := []string{"one", "two", "three"}; !slices.Equal(names, want) {
		t.Errorf("read %v, want %v", names, want)
	}
	broken := filepath.Join(dir, "broken.yaml")
	if err := os.WriteFile(broken, []byte("kind: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readFolder(dir); err == nil || !strings.Contains(err.Error(), broken) {
		t.Errorf("got %v, want an error with the file's name", err)
	}
}
