// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"net/http"

	"github.com/herald-social/herald/internal/graph"
	"github.com/herald-social/herald/platforms"
)

// allowances reads what an answer tells of the budgets of calls.
func (p *Platform) allowances(h http.Header) []platforms.Allowance {
	var told []platforms.Allowance
	used, now := graph.UsedOf(h), p.config.Clock.Now()
	if used.App >= 0 {
		told = append(told, platforms.Percentage(platforms.AppUsage, true, used.App, 0, now))
	}
	if used.Account >= 0 {
		told = append(told, platforms.Percentage(platforms.Usage, false, used.Account, used.ShutOut, now))
	}
	return told
}
