// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package chrome

import (
	"fmt"
	"strings"

	"github.com/chromedp/chromedp"
)

// Violation is an accessibility rule that a page violates.
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

// String returns the rule and the affected elements, for a test failure.
func (v Violation) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%s (%s): %s\n  %s", v.ID, v.Impact, v.Help, v.URL)
	for _, node := range v.Nodes {
		fmt.Fprintf(&text, "\n  %s\n    %s", node.HTML, strings.ReplaceAll(node.Summary, "\n", "\n    "))
	}
	return text.String()
}

// runAxe checks WCAG 2.2 up to AA and axe's best practices.
const runAxe = `axe.run(document, {
  resultTypes: ["violations"],
  runOnly: { type: "tag", values: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22a", "wcag22aa", "best-practice"] },
}).then(({ violations }) => violations.map(({ id, impact, help, helpUrl, nodes }) => ({
  id, impact, help, helpUrl, nodes: nodes.map(({ html, failureSummary }) => ({ html, failureSummary })),
})))`

// Audit returns the accessibility violations of the page in its current state. axe is the source of axe.min.js, which
// the debugger injects, bypassing the page's policy.
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
