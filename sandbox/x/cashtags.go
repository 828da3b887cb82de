// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import "regexp"

// cashtags matches a cashtag: a dollar sign and one to six letters, optionally followed by a dot or underscore and up
// to two letters, at a word boundary.
var cashtags = regexp.MustCompile(`(?i)\$[a-z]{1,6}(?:[._][a-z]{1,2})?\b`)

// tooManyCashtags reports whether X rejects the text. Apps on a self-serve plan may use one cashtag per post
// (docs.x.com, "Manage Posts"). A lenient sandbox treats the app as one on an Enterprise plan.
func (p *Platform) tooManyCashtags(text string) bool {
	return !p.Lenient && len(cashtags.FindAllString(text, 2)) > 1
}
