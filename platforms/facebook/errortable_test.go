// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"testing"

	"github.com/herald-social/herald/platforms/internal/meta/metatest"
)

// TestErrorTable has an expectation for each row of the table, and compares the page that documents it. To write the
// page, run go test -run ErrorTable -args -update.
func TestErrorTable(t *testing.T) {
	p := New(Config{}, nil)
	metatest.CheckErrors(t, "facebook", &p.graph, map[string]metatest.Want{
		"324": metatest.BadFile, "1366046": metatest.BadFile,
		"1500": metatest.BadText, "1609005": metatest.BadText, "1609008": metatest.BadText, "2061006": metatest.BadText,
	})
}
