// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package errordocs compares the tables of docs/platform-errors.md with the error tables of the platform packages. Only
// tests import it.
package errordocs

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/herald-social/herald/platforms"
)

// update makes Check write the page instead of comparing it:
//
//	go test ./platforms/facebook -run ErrorTable -args -update
var update = flag.Bool("update", false, "write the tables of docs/platform-errors.md")

// Row is one error code of a platform and Herald's reaction to it.
type Row struct {
	// Code is the platform's name for the error.
	Code string
	// Kind is a short description of the code.
	Kind string
	// Error is the classifier's result for the code. Its class and subject determine the columns "action required from" and
	// "what Herald does".
	Error platforms.Error
	// Also is a reaction in addition to the one for the class; Instead replaces the class's reaction. Both are
	// usually empty.
	Also, Instead string
	// Source is the documentation of the code, or the client that observed it.
	Source string
}

// Check compares a platform's section in docs/platform-errors.md with its rows. The section of platform x is between
// the lines "<!-- errors: x -->" and "<!-- end of errors: x -->".
func Check(t *testing.T, platform string, rows []Row) {
	t.Helper()
	// Go runs a test in its package's folder, platforms/<name>.
	path := filepath.Join("..", "..", "docs", "platform-errors.md")
	page, err := os.ReadFile(path) //nolint:gosec // the page of this checkout
	if err != nil {
		t.Fatal(err)
	}
	before, section, after, err := split(string(page), platform)
	if err != nil {
		t.Fatal(err)
	}
	want := Table(rows)
	if *update {
		if err := os.WriteFile(path, []byte(before+want+after), 0o600); err != nil { //nolint:gosec // the page of this checkout
			t.Fatal(err)
		}
		return
	}
	if line := differs(want, section); line != "" {
		t.Errorf("docs/platform-errors.md differs from the classifier of %s, starting at the line\n%s\nrun the test with -args -update to rewrite the page", platform, line)
	}
	for _, row := range rows {
		if row.Source == "" || row.Kind == "" {
			t.Errorf("the row of code %s lacks its kind or its source", row.Code)
		}
	}
}

// differs returns the first line of want that differs from got, or "" if they are equal.
func differs(want, got string) string {
	have := strings.Split(got, "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(have) || have[i] != line {
			return line
		}
	}
	if want != got {
		return "(after the last line)"
	}
	return ""
}

func split(page, platform string) (before, section, after string, err error) {
	begin, end := fmt.Sprintf("<!-- errors: %s -->\n", platform), fmt.Sprintf("<!-- end of errors: %s -->\n", platform)
	before, rest, ok := strings.Cut(page, begin)
	section, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return "", "", "", fmt.Errorf("docs/platform-errors.md has no section between the lines %q and %q", begin, end)
	}
	return before + begin, section, end + after, nil
}

// Table renders the rows as a Markdown table.
func Table(rows []Row) string {
	var b strings.Builder
	b.WriteString("\n| code | meaning | action required from | what Herald does | source |\n| --- | --- | --- | --- | --- |\n")
	for _, row := range rows {
		does := Does(&row.Error)
		if row.Instead != "" {
			does = row.Instead
		}
		if row.Also != "" {
			does += "; " + row.Also
		}
		cells := []string{"`" + row.Code + "`", row.Kind, Actor(&row.Error), does, row.Source}
		for i := range cells {
			cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | "))
	}
	b.WriteString("\n")
	return b.String()
}

// Actor returns the column "action required from" for an error.
func Actor(err *platforms.Error) string {
	if slices.Contains([]platforms.Subject{platforms.SubjectApp, platforms.SubjectInstallation}, err.Subject) && err.Class != platforms.ClassRateLimited {
		return "Herald administrator"
	}
	switch err.Class {
	case platforms.ClassReconnect, platforms.ClassRestricted:
		return "account owner"
	case platforms.ClassPermanent:
		return "post author"
	case platforms.ClassDuplicate:
		return "post author, if no earlier post is found"
	case platforms.ClassRefresh, platforms.ClassRateLimited, platforms.ClassQuota, platforms.ClassTransient, platforms.ClassUnknown:
		return "–"
	}
	return "–"
}

// Does returns the column "what Herald does" for an error, phrased for any platform.
func Does(err *platforms.Error) string {
	paused := "the account"
	if err.AppWide {
		paused = "all accounts of the app"
	}
	if err.PostOnly {
		paused = "posts of this kind"
	}
	switch err.Class {
	case platforms.ClassReconnect:
		return "pauses the account until it is reconnected"
	case platforms.ClassRefresh:
		return "renews the access token and retries the target"
	case platforms.ClassRestricted:
		return "pauses the account for an hour at a time and reports the error on the Connection"
	case platforms.ClassRateLimited:
		return "pauses " + paused + " until the limit resets, then retries the target"
	case platforms.ClassQuota:
		return "pauses " + paused + " for up to an hour, then retries the target"
	case platforms.ClassTransient:
		return "retries the target"
	case platforms.ClassDuplicate:
		return "looks up the earlier post"
	case platforms.ClassPermanent:
		return failure(err.Subject)
	case platforms.ClassUnknown:
	}
	return "looks up the post first"
}

// failure describes the reaction to a permanent refusal.
func failure(about platforms.Subject) string {
	if about == "" {
		return "fails the target with the platform's code"
	}
	return fmt.Sprintf("fails the target and reports the %s as the cause", about)
}
