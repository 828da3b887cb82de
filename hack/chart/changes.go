// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// change is an entry of artifacthub.io/changes.
type change struct {
	Kind        string `yaml:"kind"`
	Description string `yaml:"description"`
}

// kinds returns Artifact Hub's kinds of changes. Keep a Changelog uses the same kinds as headings.
func kinds() []string {
	return []string{"added", "changed", "deprecated", "removed", "fixed", "security"}
}

var (
	link = regexp.MustCompile(`\[([^\]]+)\]\([^)]+\)`)
	end  = regexp.MustCompile(`[.:;](\s|$)`)
)

// changesIn returns the changes that CHANGELOG.md lists for a version such as 0.2.0, or those under "Unreleased" if the
// version has no section: the first sentence of each item, and each row of tables whose last column is "is now". Other
// tables are for developers.
func changesIn(changelog, version string) ([]change, error) {
	section, ok := sectionOf(changelog, "["+version+"]")
	if !ok {
		section, ok = sectionOf(changelog, "[Unreleased]")
	}
	if !ok {
		return nil, fmt.Errorf("CHANGELOG.md has neither a section [%s] nor [Unreleased]", version)
	}
	var out []change
	for _, part := range strings.Split("\n"+section, "\n### ")[1:] {
		heading, body, _ := strings.Cut(part, "\n")
		kind := strings.ToLower(strings.TrimSpace(heading))
		if !slices.Contains(kinds(), kind) {
			return nil, fmt.Errorf("CHANGELOG.md: %q is none of the headings of Keep a Changelog", heading)
		}
		for _, text := range append(itemsIn(body), rowsIn(body)...) {
			out = append(out, change{Kind: kind, Description: text})
		}
	}
	return out, nil
}

// sectionOf returns the text below a version's heading.
func sectionOf(changelog, name string) (string, bool) {
	for _, section := range strings.Split("\n"+changelog, "\n## ")[1:] {
		heading, body, _ := strings.Cut(section, "\n")
		if strings.HasPrefix(heading, name) {
			return body, true
		}
	}
	return "", false
}

func itemsIn(body string) (out []string) {
	for _, item := range strings.Split("\n"+body, "\n- ")[1:] {
		item, _, _ = strings.Cut(item, "\n\n")
		item = strings.Join(strings.Fields(link.ReplaceAllString(item, "$1")), " ")
		if at := end.FindStringIndex(item); at != nil {
			item = item[:at[0]]
		}
		out = append(out, item)
	}
	return out
}

func rowsIn(body string) (out []string) {
	var header []string
	for line := range strings.Lines(body) {
		cells := cellsOf(line)
		switch {
		case cells == nil:
			header = nil
		case header == nil:
			header = cells
		case strings.HasPrefix(cells[0], "---") || header[len(header)-1] != "is now" || len(cells) != len(header):
		case len(cells) == 2:
			out = append(out, cells[0]+" → "+cells[1])
		default:
			out = append(out, cells[0]+": "+strings.Join(cells[1:], " → "))
		}
	}
	return out
}

// cellsOf returns the cells of a table row, or nil.
func cellsOf(line string) []string {
	line = strings.TrimSpace(line)
	if !strings.HasPrefix(line, "| ") || !strings.HasSuffix(line, " |") {
		return nil
	}
	cells := strings.Split(strings.Trim(line, "|"), " | ")
	for i := range cells {
		cells[i] = strings.TrimSpace(link.ReplaceAllString(cells[i], "$1"))
	}
	return cells
}
