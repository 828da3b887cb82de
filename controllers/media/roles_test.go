// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// A Media contains its upload URL, which is a bearer token for writing the file. A user with view access to a namespace
// must not be able to read it.
func TestUploadAddressesAreNotForViewers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "config", "rbac", "users", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("found %v, %v", files, err)
	}
	readers := map[string]bool{}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
			var role rbacv1.ClusterRole
			if err := yaml.Unmarshal(document, &role); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, rule := range role.Rules {
				if slices.Contains(rule.Resources, "media") || slices.Contains(rule.Resources, "media/status") || slices.Contains(rule.Resources, "*") {
					for label := range role.Labels {
						readers[label] = true
					}
				}
			}
		}
	}
	for label, want := range map[string]bool{
		"rbac.authorization.k8s.io/aggregate-to-view":  false,
		"rbac.authorization.k8s.io/aggregate-to-edit":  true,
		"rbac.authorization.k8s.io/aggregate-to-admin": true,
	} {
		if readers[label] != want {
			t.Errorf("%s reads media: %v", label, readers[label])
		}
	}
}
