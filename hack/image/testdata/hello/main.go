// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hello stands for the programs that images are packed from.
package main

import "os"

func main() {
	if _, err := os.Stdout.WriteString("hello\n"); err != nil {
		os.Exit(1)
	}
}
