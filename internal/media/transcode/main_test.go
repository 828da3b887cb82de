// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package transcode_test

import (
	"os"
	"testing"

	"github.com/herald-social/herald/internal/media/decode"
)

// TestMain makes this program the separate process that it starts.
func TestMain(m *testing.M) {
	if decode.IsChild(os.Args[1:]) {
		os.Exit(decode.Main(os.Args[1:]))
	}
	os.Exit(m.Run())
}
