// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace knows where the local run keeps its things, which ports it uses, and that only one run at a time
// uses them.
package workspace

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// ModulePath is the module whose checkout a workspace is.
const ModulePath = "github.com/herald-social/herald"

// Workspace is a checkout of Herald. All paths are absolute.
type Workspace struct {
	// Root is the folder of the module's go.mod.
	Root string
}

// Find returns the checkout that dir lies in.
func Find(dir string) (Workspace, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return Workspace{}, err
	}
	for at := abs; ; at = filepath.Dir(at) {
		if isModuleRoot(at) {
			return Workspace{Root: at}, nil
		}
		if at == filepath.Dir(at) {
			return Workspace{}, fmt.Errorf("%s is not inside a checkout of %s; change into it first", abs, ModulePath)
		}
	}
}

func isModuleRoot(dir string) bool {
	file, err := os.Open(filepath.Join(dir, "go.mod"))
	if err != nil {
		return false
	}
	defer file.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if name, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "module "); ok {
			return strings.TrimSpace(name) == ModulePath
		}
	}
	return false
}

// Path joins elements under the checkout's root.
func (w Workspace) Path(elem ...string) string {
	return filepath.Join(append([]string{w.Root}, elem...)...)
}

// State joins elements under .local, where everything that a run leaves is kept.
func (w Workspace) State(elem ...string) string {
	return filepath.Join(append([]string{w.Root, ".local"}, elem...)...)
}

// Bin is the path of a built program.
func (w Workspace) Bin(name string) string { return w.Path("bin", name) }

// Forget removes everything under .local except the lock file, which the caller holds.
func (w Workspace) Forget() error {
	entries, err := os.ReadDir(w.State())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == lockName {
			continue
		}
		if err := os.RemoveAll(w.State(entry.Name())); err != nil {
			return fmt.Errorf("forget the local state: %w", err)
		}
	}
	return nil
}

// WriteFile replaces path with data at once: readers see the old content or the new, never a part.
func WriteFile(path string, data []byte, mode os.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".tmp-*")
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("write %s: %w", path, err), os.Remove(file.Name()))
	}
	return nil
}
