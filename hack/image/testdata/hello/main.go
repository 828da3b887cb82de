// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command hello stands in for the programs that are packed into images.
package main

import "os"

func main() {
	if _, err := os.Stdout.WriteString("hello\n"); err != nil {
		os.Exit(1)
	}
}
