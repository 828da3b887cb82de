// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workspace writes the local run's files for other programs and for users.
package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteFile replaces a file atomically: readers see either the old content or the new.
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

// Variable is one line of the file that programs source to find the run.
type Variable struct {
	Name, Value string
}

// WriteEnv writes the variables as `export` lines for a POSIX shell. The file contains an API key, so only its owner
// may read it.
func WriteEnv(path string, variables []Variable) error {
	var b bytes.Buffer
	for _, v := range variables {
		fmt.Fprintf(&b, "export %s=%s\n", v.Name, ShellQuote(v.Value))
	}
	return WriteFile(path, b.Bytes(), 0o600)
}

// ShellQuote quotes text as one word for a POSIX shell.
func ShellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
