// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"
)

// explanations contains the reasons why surviving mutants are equivalent to the original, by the mutant's key.
type explanations map[string]string

// readExplanations parses paragraphs: lines that start with "#" are a reason, and each line below is the key of a
// mutant.
func readExplanations(path string) (explanations, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	reasons := explanations{}
	for paragraph := range strings.SplitSeq(string(data), "\n\n") {
		reason := ""
		for line := range strings.SplitSeq(strings.TrimSpace(paragraph), "\n") {
			text, isReason := strings.CutPrefix(line, "#")
			switch {
			case isReason:
				reason = strings.TrimSpace(reason + " " + strings.TrimSpace(text))
			case line == "":
			case reason == "":
				return nil, fmt.Errorf("%s: %q has no reason; write one above it, in lines that begin with #", path, line)
			default:
				reasons[line] = reason
			}
		}
	}
	return reasons, nil
}
