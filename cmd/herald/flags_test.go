// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"
)

// TestNamespaceOfKubeconfig: a process with a kubeconfig may run in a pod of another cluster.
func TestNamespaceOfKubeconfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(file, []byte(`{"apiVersion": "v1", "kind": "Config", "current-context": "a",
		"clusters": [{"name": "a", "cluster": {"server": "http://127.0.0.1:1"}}], "contexts": [{"name": "a", "context": {"cluster": "a", "namespace": "elsewhere"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster, err := (&commonFlags{kubeconfig: file}).kubeConfig("test")
	if err != nil {
		t.Fatal(err)
	}
	if cluster.namespace != "elsewhere" {
		t.Errorf("the namespace is %q, want that of the kubeconfig's context", cluster.namespace)
	}
}
