// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package meta

import (
	"net/http"
	"testing"
	"time"
)

func TestUsedOf(t *testing.T) {
	tests := map[string]struct {
		reason        string
		app, business string
		want          Used
	}{
		"nothing told": {"some answers have no headers", "", "", Used{App: -1, Account: -1}},
		"app":          {"the most used of three budgets counts", `{"call_count":28,"total_time":95,"total_cputime":25}`, "", Used{App: 95, Account: -1}},
		"account": {
			"a business may be told of several use cases", "",
			`{"17":[{"type":"pages","call_count":10,"total_cputime":20,"total_time":20,"estimated_time_to_regain_access":0},{"type":"other","call_count":91}]}`,
			Used{App: -1, Account: 91},
		},
		"shut out": {
			"minutes are told", "", `{"17":[{"type":"pages","call_count":100,"total_cputime":20,"total_time":20,"estimated_time_to_regain_access":19}]}`,
			Used{App: -1, Account: 100, ShutOut: 19 * time.Minute},
		},
		"not theirs": {"what is no JSON tells nothing", "95%", "many", Used{App: -1, Account: -1}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			h := http.Header{}
			h.Set(appUsageHeader, tc.app)
			h.Set(usageHeader, tc.business)
			if got := UsedOf(h); got != tc.want {
				t.Errorf("%s: got %+v, want %+v", tc.reason, got, tc.want)
			}
		})
	}
}
