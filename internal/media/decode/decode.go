// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package decode is the entry point of the separate processes that decode untrusted files.
package decode

import (
	"fmt"
	"os"

	"github.com/herald-social/herald/internal/isolate"
	"github.com/herald-social/herald/internal/media/rendition"
	"github.com/herald-social/herald/internal/media/thumbnail"
	"github.com/herald-social/herald/internal/media/transcode"
)

// IsChild reports whether this process is one that decodes a file, by its command line without the name of the program.
// Every program that makes renditions or thumbnails calls it before anything else, and calls Main if it is true; tests
// do so in TestMain.
func IsChild(args []string) bool { return len(args) > 0 && args[0] == rendition.Child[0] }

// Main decodes a file and returns the exit code of the process.
func Main(args []string) int {
	switch {
	case len(args) == len(rendition.Child) && args[1] == rendition.Child[1]:
		return rendition.Decode()
	case len(args) > len(thumbnail.Child) && args[1] == thumbnail.Child[1]:
		return thumbnail.Decode(args[len(thumbnail.Child):])
	case len(args) > len(transcode.Child) && args[1] == transcode.Child[1]:
		return transcode.Exec(args[len(transcode.Child):])
	default:
		fmt.Fprintln(os.Stderr, "herald decode: the manager starts this to decode one file; it is of no use to people")
		return isolate.ExitNotStarted
	}
}
