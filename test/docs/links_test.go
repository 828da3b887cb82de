// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package docs_test checks the documentation: its links to files, headings, pictures and symbols, its indexes, and the
// length of pages.
package docs_test

import (
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/herald-social/herald/test/must"
)

const (
	root = "../.."
	// published is the URL of the repository on the chart's pages.
	published = "https://github.com/herald-social/herald/"
	// maxPicture limits an image's size, in bytes, to keep pages fast and the repository small.
	maxPicture = 150_000
)

var (
	fence  = regexp.MustCompile("(?s)\n *```.*?\n *```")
	target = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	title  = regexp.MustCompile(`(?m)^#+ +(.+?)\s*$`)
	// label and dropped turn a heading into an anchor, as GitHub does.
	label   = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N}_\- ]`)
)

// pages returns the text of all pages without their code blocks, by repository path.
func pages(t *testing.T) map[string]string {
	t.Helper()
	found := texts(t, ".md")
	for at, text := range found {
		found[at] = fence.ReplaceAllString("\n"+text, "")
	}
	return found
}

// texts returns the content of the repository's files whose names end in suffix, by repository path.
func texts(t *testing.T, suffix string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		at := filepath.ToSlash(strings.TrimPrefix(name, root+string(filepath.Separator)))
		switch {
		case entry.IsDir() && name != root && (at == "bin" || strings.HasPrefix(at, ".") || entry.Name() == "node_modules" || entry.Name() == "testdata"):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(at, suffix):
			return nil
		}
		text, err := os.ReadFile(name)
		found[at] = string(text)
		return err
	})
	must.Succeed(t, err)
	return found
}

// anchors returns the anchors of a page's headings. A repeated heading's anchor has a number appended.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, heading := range title.FindAllStringSubmatch(text, -1) {
		words := dropped.ReplaceAllString(strings.ToLower(label.ReplaceAllString(heading[1], "$1")), "")
		anchor := strings.ReplaceAll(words, " ", "-")
		name := anchor
		for n := 1; found[name]; n++ {
			name = anchor + "-" + strconv.Itoa(n)
		}
		found[name] = true
	}
	return found
}

// inRepository returns the file and the heading that a page's link leads to; ok is false for links to other sites.
func inRepository(page, address string) (file, anchor string, ok bool) {
	for _, kind := range []string{"blob/main/", "tree/main/"} {
		if rest, found := strings.CutPrefix(address, published+kind); found {
			file, anchor, _ = strings.Cut(rest, "#")
			return file, anchor, true
		}
	}
	if strings.Contains(address, ":") {
		return "", "", false
	}
	file, anchor, _ = strings.Cut(address, "#")
	if file == "" {
		return page, anchor, true
	}
	return path.Join(path.Dir(page), file), anchor, true
}

func TestLinks(t *testing.T) {
	all := pages(t)
	if len(all) < 50 {
		t.Fatalf("only %d pages were found", len(all))
	}
	for page, text := range all {
		for _, link := range target.FindAllStringSubmatch(text, -1) {
			file, anchor, ok := inRepository(page, link[1])
			if !ok {
				continue
			}
			info, err := os.Stat(filepath.Join(root, filepath.FromSlash(file)))
			if err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link[1])
				continue
			}
			if other, isPage := all[file]; isPage && anchor != "" && !anchors(other)[anchor] {
				t.Errorf("%s links to %s, which has no such heading", page, link[1])
			}
			if kind := path.Ext(file); (kind == ".png" || kind == ".jpg") && info.Size() > maxPicture {
				t.Errorf("%s shows %s of %d bytes, more than %d", page, file, info.Size(), maxPicture)
			}
		}
	}
}

func TestAnchors(t *testing.T) {
	for heading, want := range map[string]string{
		"## What it took":                  "what-it-took",
		"### The first post, by REST":      "the-first-post-by-rest",
		"## `--config` and its file":       "--config-and-its-file",
		"## [Posts](posts.md), for people": "posts-for-people",
		"## Same\n## Same":                 "same-1",
	} {
		if got := anchors(heading); !got[want] {
			t.Errorf("%s: %v, want %s", heading, got, want)
		}
	}
}

// quotedSpec matches the name of a spec in the last column of a table, such as *is removed completely*.
var quotedSpec = regexp.MustCompile(`\*([^*|]{8,})\*`)

// TestQuotedSpecs finds each spec that SECURITY.md names as the proof of a property.
func TestQuotedSpecs(t *testing.T) {
	quoted := quotedSpec.FindAllStringSubmatch(pages(t)["SECURITY.md"], -1)
	if len(quoted) == 0 {
		t.Fatal("SECURITY.md names no specs; a property without a proof is a claim")
	}
	tests := strings.Join(slices.Collect(maps.Values(texts(t, "_test.go"))), "\n")
	for _, name := range quoted {
		if !strings.Contains(tests, name[1]) {
			t.Errorf("SECURITY.md names the spec %q, which no test has", name[1])
		}
	}
}
