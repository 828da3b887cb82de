// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"testing"

	"github.com/herald-social/herald/platforms"
)

func TestLow(t *testing.T) {
	for _, tc := range []struct {
		reason     string
		most, left int
		want       bool
	}{
		{"a tenth is little", 250, 25, true},
		{"more than a tenth is not", 250, 26, false},
		{"of few, the last ones count", 5, 1, false},
		{"nothing is little", 5, 0, true},
		{"what is told without a total is told because it is little", 0, 0, true},
		{"more was counted than there was", 50, -3, true},
	} {
		if got := platforms.Low(tc.most, tc.left); got != tc.want {
			t.Errorf("%s: %d of %d gives %v", tc.reason, tc.left, tc.most, got)
		}
	}
}
