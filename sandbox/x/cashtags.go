// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import "regexp"

// cashtags finds the cashtags of a text: a dollar sign and one to six letters, with up to two more behind a dot or an
// underscore, and no letter or digit around them.
var cashtags = regexp.MustCompile(`(?i)\$[a-z]{1,6}(?:[._][a-z]{1,2})?\b`)

// tooManyCashtags says whether X refuses a text to an app on a self-serve plan: it takes one cashtag in a post (docs.x.com,
// "Manage Posts"). A lenient sandbox is an app on an Enterprise plan.
func (p *Platform) tooManyCashtags(text string) bool {
	return !p.Lenient && len(cashtags.FindAllString(text, 2)) > 1
}
