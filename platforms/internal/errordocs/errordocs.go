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
	// Error is the classifier's result for the code. Its class and subject determine the columns "who acts" and "what
	// Herald does".
	Error platforms.Error
	// Also is a reaction in addition to the one for the class, and Instead replaces it. Both are usually empty.
	Also, Instead string
	// Source is the page that documents the code, or the client that has seen it.
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
		t.Errorf("docs/platform-errors.md differs from the classifier of %s, first in the line\n%s\nwrite it with -args -update", platform, line)
	}
	for _, row := range rows {
		if row.Source == "" || row.Kind == "" {
			t.Errorf("the row of code %s lacks its kind or its source", row.Code)
		}
	}
}

// differs returns the first line of want that got does not have at the same place, or "" if they are equal.
func differs(want, got string) string {
	have := strings.Split(got, "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(have) || have[i] != line {
			return line
		}
	}
	if want != got {
		return "(behind the end)"
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
	b.WriteString("\n| code | meaning | who acts | what Herald does | source |\n| --- | --- | --- | --- | --- |\n")
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

// Actor returns the column "who acts" for an error.
func Actor(err *platforms.Error) string {
	if slices.Contains([]platforms.Subject{platforms.SubjectApp, platforms.SubjectInstallation}, err.Subject) && err.Class != platforms.ClassRateLimited {
		return "the administrator of Herald"
	}
	switch err.Class {
	case platforms.ClassReconnect, platforms.ClassRestricted:
		return "the account's owner"
	case platforms.ClassPermanent:
		return "the author of the post"
	case platforms.ClassDuplicate:
		return "the author of the post, if no earlier post is found"
	case platforms.ClassRefresh, platforms.ClassRateLimited, platforms.ClassQuota, platforms.ClassTransient, platforms.ClassUnknown:
		return "–"
	}
	return "–"
}

// Does returns the column "what Herald does" for an error, phrased for any platform.
func Does(err *platforms.Error) string {
	held := "the account"
	if err.AppWide {
		held = "every account of the app"
	}
	if err.PostOnly {
		held = "posts of this kind"
	}
	switch err.Class {
	case platforms.ClassReconnect:
		return "holds the account until it is connected again"
	case platforms.ClassRefresh:
		return "renews the access token and tries again"
	case platforms.ClassRestricted:
		return "holds the account for an hour at a time and reports it on the Connection"
	case platforms.ClassRateLimited:
		return "holds " + held + " until the limit passes, and tries again"
	case platforms.ClassQuota:
		return "holds " + held + " for an hour at most, and tries again"
	case platforms.ClassTransient:
		return "tries again"
	case platforms.ClassDuplicate:
		return "looks up the earlier post"
	case platforms.ClassPermanent:
		return failure(err.Subject)
	case platforms.ClassUnknown:
	}
	return "looks up the post first"
}

// failure returns the reaction to a permanent refusal.
func failure(about platforms.Subject) string {
	if about == "" {
		return "fails the target with the platform's code"
	}
	return fmt.Sprintf("fails the target and names the %s", about)
}
