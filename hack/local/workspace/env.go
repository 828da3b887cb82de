// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bytes"
	"fmt"
	"strings"
)

// Variable is one line of the file that programs source to find the run.
type Variable struct {
	Name, Value string
}

// WriteEnv writes the variables as `export` lines for a POSIX shell. The file holds an API key, so only its owner may
// read it.
func WriteEnv(path string, variables []Variable) error {
	var b bytes.Buffer
	for _, v := range variables {
		fmt.Fprintf(&b, "export %s=%s\n", v.Name, ShellQuote(v.Value))
	}
	return WriteFile(path, b.Bytes(), 0o600)
}

// ShellQuote makes one word of text for a POSIX shell, whatever it holds.
func ShellQuote(text string) string {
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
