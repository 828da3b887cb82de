// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"testing"

	"github.com/herald-social/herald/platforms/internal/errordocs"
)

// TestErrorTable compares the error table with docs/platform-errors.md.
func TestErrorTable(t *testing.T) {
	var rows []errordocs.Row
	for i := range table {
		r := &table[i]
		rows = append(rows, errordocs.Row{Code: r.name, Kind: r.error.Problem, Error: r.error, Source: r.source})
	}
	errordocs.Check(t, "bluesky", rows)
}
