// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rendition_test

import (
	"os"
	"testing"

	"github.com/herald-social/herald/internal/media/rendition"
)

// TestMain makes this program the separate process that it starts, and a process that is killed.
func TestMain(m *testing.M) {
	if rendition.IsChild(os.Args[1:]) {
		os.Exit(rendition.DecodeMain(os.Args[1:]))
	}
	if config := os.Getenv(aStore); config != "" {
		begin(config)
		os.Exit(0)
	}
	os.Exit(m.Run())
}
