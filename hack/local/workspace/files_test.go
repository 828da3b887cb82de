// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

func TestShellReadsEnv(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a b", "env")
	value := `it's "$HOME" \ & ` + "`id`" + ` * # %`
	if err := WriteEnv(path, []Variable{{"ONE", "1"}, {"TWO", value}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v, want 0600 for a file with a key", info.Mode(), err)
	}
	out, err := exec.CommandContext(t.Context(), "/bin/sh", "-c", `. "$0" && sh -c 'printf "%s|%s" "$ONE" "$TWO"'`, path).CombinedOutput()
	if err != nil || string(out) != "1|"+value {
		t.Errorf("a shell reads %q, %v, want %q", out, err, "1|"+value)
	}
}

func TestFailedWriteFileIsCleanedUp(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "taken")
	if err := os.MkdirAll(filepath.Join(target, "by a folder"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(target, []byte("x"), 0o600); err == nil {
		t.Fatal("a file replaced a folder")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("remaining: %v, %v", entries, err)
	}
}
