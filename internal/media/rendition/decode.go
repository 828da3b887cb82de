// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition

import (
	"fmt"
	"os"

	"github.com/herald-social/herald/internal/isolate"
)

// IsChild reports whether this process decodes a file, given its command line without the program name. Every program
// that makes renditions or thumbnails calls it first, and then DecodeMain if it returns true; tests do so in TestMain.
func IsChild(args []string) bool { return len(args) > 0 && args[0] == Child[0] }

// DecodeMain is the entry point of the separate processes that decode untrusted files. It returns the exit code.
func DecodeMain(args []string) int {
	switch {
	case len(args) == len(Child) && args[1] == Child[1]:
		return Decode()
	case len(args) > len(ThumbnailChild) && args[1] == ThumbnailChild[1]:
		return DecodeThumbnail(args[len(ThumbnailChild):])
	case len(args) > len(TranscodeChild) && args[1] == TranscodeChild[1]:
		return ExecTranscode(args[len(TranscodeChild):])
	default:
		fmt.Fprintln(os.Stderr, "herald decode: the manager starts this to decode one file; it is not meant for users")
		return isolate.ExitNotStarted
	}
}
