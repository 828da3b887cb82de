// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package errordocs

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/platforms"
)

func TestSplit(t *testing.T) {
	page := "# Errors\n<!-- errors: x -->\none\n<!-- end of errors: x -->\n<!-- errors: y -->\ntwo\n<!-- end of errors: y -->\nend\n"
	before, section, after, err := split(page, "y")
	if err != nil || section != "two\n" || before+section+after != page {
		t.Errorf("got %q, %q, %q, %v", before, section, after, err)
	}
	for _, platform := range []string{"z", ""} {
		if _, _, _, err := split(page, platform); err == nil {
			t.Errorf("a section of %q is found that is not there", platform)
		}
	}
}

func TestTable(t *testing.T) {
	tests := map[string]struct {
		reason string
		row    Row
		want   string
	}{
		"a file": {
			"the subject of a refusal is named",
			Row{Code: "324", Kind: "bad image", Error: platforms.Error{Class: platforms.ClassPermanent, Subject: platforms.SubjectFile}, Source: "docs"},
			"| `324` | bad image | post author | fails the target and reports the file as the cause | docs |",
		},
		"no subject": {
			"a code without a documented subject has no subject",
			Row{Code: "1|2", Kind: "refused", Error: platforms.Error{Class: platforms.ClassPermanent}, Source: "docs"},
			"| `1\\|2` | refused | post author | fails the target with the platform's code | docs |",
		},
		"the whole app": {
			"a limit of the app blocks every account",
			Row{Code: "4", Kind: "limit", Error: platforms.Error{Class: platforms.ClassRateLimited, AppWide: true, Subject: platforms.SubjectApp}, Source: "docs"},
			"| `4` | limit | – | pauses all accounts of the app until the limit resets, then retries the target | docs |",
		},
		"a blocked app": {
			"its owner has to look",
			Row{Code: "200", Kind: "blocked", Error: platforms.Error{Class: platforms.ClassQuota, AppWide: true, Subject: platforms.SubjectApp}, Also: "and more", Source: "docs"},
			"| `200` | blocked | Herald administrator | pauses all accounts of the app for up to an hour, then retries the target; and more | docs |",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := Table([]Row{tc.row}); !strings.Contains(got, tc.want+"\n") {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
}
