// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "testing"

func TestPercent(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		reason string
		use    BudgetUse
		want   int
	}{
		{"no limit and no usage", BudgetUse{}, 0},
		{"percentages are rounded down", BudgetUse{Used: 899, Limit: 1000}, 89},
		{"usage above a lowered limit of zero", BudgetUse{Used: 1}, 1000},
		{"a limit that was lowered", BudgetUse{Used: 3, Limit: 2}, 150},
		{"usage far beyond a lowered limit", BudgetUse{Used: 1 << 40, Limit: 1}, 1000},
		{"bytes do not overflow", BudgetUse{Used: 999_999 << 40, Limit: 999_999 << 40}, 100},
	} {
		if got := tc.use.Percent(); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.reason, got, tc.want)
		}
	}
}
