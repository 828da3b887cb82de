// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

const changelog = `# Changelog

## [Unreleased]

### Added

- A thing. More about it.
- A [page](docs/page.md) about ` + "`it`" + `: what
  stands there.

## [0.2.0] - 2026-12-01

What it is about.

### Security

- One hole less

### Changed

| flag | was | is now |
| --- | --- | --- |
| ` + "`--a`" + ` | one | [two](docs/two.md) |

| other | is now |
| --- | --- |
| b | c |

| old word | new word |
| --- | --- |
| verdict | outcome |

## [0.1.0] - 2026-11-01

### Added

- All of it.
`

func TestChanges(t *testing.T) {
	for _, row := range []struct {
		version string
		want    []change
		reason  string
	}{
		{"0.1.0", []change{{"added", "All of it"}}, "the last section"},
		{"0.2.0", []change{{"security", "One hole less"}, {"changed", "`--a`: one → two"}, {"changed", "b → c"}}, "items and tables of the last column"},
		{"0.2.0-3-g1234567", []change{{"added", "A thing"}, {"added", "A page about `it`"}}, "between two releases"},
		{"0.3.0", []change{{"added", "A thing"}, {"added", "A page about `it`"}}, "an unreleased version"},
	} {
		got, err := changesIn(changelog, row.version)
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%s: %+v, %v, want %+v", row.reason, got, err, row.want)
		}
	}
	for reason, text := range map[string]string{
		"no section":         "# Changelog\n",
		"an unknown heading": "## [Unreleased]\n\n### Improved\n\n- All of it.\n",
	} {
		if got, err := changesIn(text, "0.1.0"); err == nil {
			t.Errorf("%s: %+v", reason, got)
		}
	}
}

// TestChangesOfEachVersion parses every section and item of Herald's own changelog.
func TestChangesOfEachVersion(t *testing.T) {
	text, err := os.ReadFile("../../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, section := range strings.Split("\n"+string(text), "\n## [")[1:] {
		version, _, _ := strings.Cut(section, "]")
		changes, err := changesIn(string(text), version)
		if err != nil {
			t.Errorf("%s: %v", version, err)
		}
		if items := strings.Count(section, "\n- "); len(changes) < items || len(changes) == 0 {
			t.Errorf("%s: %d changes of %d items and some tables", version, len(changes), items)
		}
		for _, c := range changes {
			if len(c.Description) < 3 || strings.Contains(c.Description, "](") || strings.ContainsAny(c.Description, "|\n") {
				t.Errorf("%s: %q is not a sentence", version, c.Description)
			}
		}
	}
}
