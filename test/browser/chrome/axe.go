// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// Violation is a rule of accessibility that a page breaks.
type Violation struct {
	ID     string `json:"id"`
	Impact string `json:"impact"`
	Help   string `json:"help"`
	URL    string `json:"helpUrl"`
	Nodes  []struct {
		HTML    string `json:"html"`
		Summary string `json:"failureSummary"`
	} `json:"nodes"`
}

// String is for the one who mends it.
func (v Violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s): %s\n  %s", v.ID, v.Impact, v.Help, v.URL)
	for _, node := range v.Nodes {
		fmt.Fprintf(&text, "\n  %s\n    %s", node.HTML, strings.ReplaceAll(node.Summary, "\n", "\n    "))
	}
	return text.String()
}

// runAxe asks for WCAG 2.2 up to AA and for what is good practice beside it.
const runAxe = `axe.run(document, {
  resultTypes: ["violations"],
  runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"] },
}).then(({ violations }) => violations.map(({ id, impact, help, helpUrl, nodes }) => ({
  id, impact, help, helpUrl, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })),
})))`

// Audit looks for violations of accessibility on the page as it is now. axe is the program, axe.min.js; it comes by the
// debugger, so that the page's policy does not keep it out.
func (p *Page) Audit(axe string) ([]Violation, error) {
	if present, err := Eval[bool](p, "typeof axe === 'object'"); err != nil {
		return nil, err
	} else if !present {
		if err := chromedp.Do(p.ctx, chromedp.Evaluate[chromedp.Void](axe)); err != nil {
			return nil, fmt.Errorf("load axe: %w", err)
		}
	}
	violations, err := Eval[[]Violation](p, runAxe)
	if err != nil {
		return nil, fmt.Errorf("run axe: %w", err)
	}
	return violations, nil
}
