// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

// short returns a load for twelve days, which include one team's import and the first removals from the cluster.
func short() Load {
	load := year()
	load.Teams, load.PostsPerMonth, load.Days = 50, 30*thousand, 12
	return load
}

// TestGuarantees checks the guarantees that hold for any number of posts.
func TestGuarantees(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name string
		arms bool
	}{
		{"by default, each post is claimed when it is due", false},
		{"with crowds claimed ahead, the same guarantees hold", true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := Simulate(short(), measured(), tc.arms, Broken{})
			must.Succeed(t, err)
			if r.Violations > 0 {
				t.Errorf("%d violations; the first: %s", r.Violations, r.Violation)
			}
			for what, n := range map[string]int{
				"accepted": r.Accepted, "rejected by a budget": r.OverBudget, "rejected by a plan": r.OverPlan, "published": r.Published,
				"failed": r.Failed, "lookups": r.Lookups, "uploads": r.Uploads, "archived": r.Archived,
			} {
				if n == 0 {
					t.Errorf("no %s: the load does not cover this case", what)
				}
			}
			if got := r.Armed > 0; got != tc.arms {
				t.Errorf("%d posts were claimed ahead", r.Armed)
			}
		})
	}
}

// TestChecks checks that the simulation's checks detect mistakes.
func TestChecks(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name   string
		broken Broken
		noted  string
	}{
		{"a lost response that counts as a rejection causes a second publication", Broken{hasty: true}, "published twice"},
		{"without timers, scheduled posts are not finished", Broken{forgetful: true}, "is not finished"},
		{"without budgets, an import stores too many posts", Broken{unlimited: true}, "its budget is"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, err := Simulate(short(), measured(), false, tc.broken)
			must.Succeed(t, err)
			if !strings.Contains(r.Violation, tc.noted) {
				t.Errorf("%d violations; the first is %q, and does not contain %q", r.Violations, r.Violation, tc.noted)
			}
		})
	}
}

// TestSameResult checks that the documented figures are reproducible.
func TestSameResult(t *testing.T) {
	t.Parallel()
	load := short()
	load.Days = 6
	first, err := Simulate(load, measured(), false, Broken{})
	must.Succeed(t, err)
	second, err := Simulate(load, measured(), false, Broken{})
	must.Succeed(t, err)
	if !reflect.DeepEqual(first, second) {
		t.Error("two simulations of one load differ")
	}
}

var quoted = regexp.MustCompile(`(?s)<!-- capacity -->\n(.*?)<!-- end of capacity -->`)

// TestDocument checks that the tables in docs/capacity.md have the rows that this program prints.
func TestDocument(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/capacity.md")
	must.Succeed(t, err)
	part := quoted.FindSubmatch(page)
	if part == nil {
		t.Fatal("docs/capacity.md has no part <!-- capacity -->")
	}
	load := short()
	load.Teams, load.PostsPerMonth, load.Days = 4, thousand, daysPerMonth
	costs := measured()
	r, err := Simulate(load, costs, false, Broken{})
	must.Succeed(t, err)
	var printed bytes.Buffer
	report(&printed, r, &costs)
	labels := func(text []byte) string {
		var first []string
		for line := range strings.SplitSeq(string(text), "\n") {
			if cells := strings.Split(line, "|"); len(cells) > 2 && !regexp.MustCompile(`^[ ,\d]*$`).MatchString(cells[1]) {
				first = append(first, cells[1])
			}
		}
		return strings.Join(first, "\n")
	}
	// The table of cells, which takes minutes to compute, is not compared.
	if got, want := labels(part[1]), labels(printed.Bytes()); !strings.HasPrefix(got, want) {
		t.Errorf("docs/capacity.md has the rows\n%s\nand `make capacity` prints\n%s", got, want)
	}
}
