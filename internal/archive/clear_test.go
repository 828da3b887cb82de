// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"fmt"
	"testing"
)

// TestClearSome shows that a removal of many is done in parts, so that whoever has it done can do
// something else in between.
func TestClearSome(t *testing.T) {
	a, bucket := open(t)
	const many = 1005
	for i := range many {
		if _, err := bucket.PutDocument(t.Context(), fmt.Sprintf("%ssegments/%d", acme.Prefix(), i), "text/plain", []byte("x"), ""); err != nil {
			t.Fatal(err)
		}
	}
	for i, want := range []bool{true, false, false} {
		if left, err := a.Clear(t.Context(), acme); left != want || err != nil {
			t.Errorf("call %d: something is left: %v, want %v; %v", i+1, left, want, err)
		}
	}
}
