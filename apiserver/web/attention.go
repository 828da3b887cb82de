// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"strconv"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// needing returns how many of the team's posts and accounts need a user: posts with an unknown outcome, and accounts
// whose state does not end by itself. The overview lists them. Archived posts can no longer be answered.
func (s *Site) needing(v *visit) int {
	counts := s.Service.Index.Counts(v.namespace)
	n := counts.AllUndecided()
	for _, account := range s.accounts(v) {
		if stateOf(account, v.now).person {
			n++
		}
	}
	return n
}

// maxNeeding is the largest number that pages show exactly.
const maxNeeding = 99

func needingText(n int) string {
	if n > maxNeeding {
		return strconv.Itoa(maxNeeding) + "+"
	}
	return strconv.Itoa(n)
}

// needingBadge is the number next to the overview in the navigation.
func needingBadge(n int) g.Node {
	verb := " need a person"
	if n == 1 {
		verb = " needs a person"
	}
	return g.If(n > 0, h.Span(h.Class("needing"), g.Text(needingText(n)), h.Span(h.Class("hidden"), g.Text(verb))))
}

// needingPrefix is the number before a page's title in the browser tab.
func needingPrefix(n int) string {
	if n == 0 {
		return ""
	}
	return "(" + needingText(n) + ") "
}
