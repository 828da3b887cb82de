// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command prose counts phrases that give a translation away, per 1,000 words, in Markdown pages and in the comments of
// Go files, JavaScript, shell scripts, Makefiles and Dockerfiles. It prints the result for each top folder and the
// files with the most phrases, and fails if a folder exceeds its limit. It also fails if a function's name starts with
// an everyday verb, such as take or tell, for which there is a technical term, and the function is not listed in
// exceptions.txt. CONTRIBUTING.md contains the style rules; the phrases only measure how well they are followed.
package main

import (
	"cmp"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The limits, in phrases per 1,000 words.
const (
	goalComments = 5.0
	goalPages    = 4.0
)

func main() {
	worst := flag.Int("worst", 10, "how many files to print")
	examples := flag.String("examples", "", "print every phrase of this file or folder instead")
	flag.Parse()
	ok, err := run(os.Stdout, *worst, *examples)
	if err != nil {
		fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

func run(out io.Writer, worst int, examples string) (ok bool, err error) {
	paths, err := tracked()
	if err != nil {
		return false, err
	}
	folders := map[string]*count{}
	var files []*count
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return false, err
		}
		sentences, relevant := proseOf(path, text)
		if !relevant {
			continue
		}
		if examples != "" {
			if strings.HasPrefix(path, examples) {
				printPhrases(out, path, sentences)
			}
			continue
		}
		file := countIn(path, sentences)
		files = append(files, file)
		folder := folders[folderOf(path)]
		if folder == nil {
			folder = &count{name: folderOf(path)}
			folders[folder.name] = folder
		}
		folder.add(file)
	}
	if examples != "" {
		return true, nil
	}
	printWorst(out, files, worst)
	named, err := checkNames(out, paths, exceptions)
	return printFolders(out, folders) && named, err
}

// tracked lists the files of the checkout that are in Git or that Git would add.
func tracked() ([]string, error) {
	patterns := append([]string{"ls-files", "--cached", "--others", "--exclude-standard", "--", "*.go", "*.md"}, scriptPatterns...)
	list, err := exec.Command("git", patterns...).Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files: %w", err)
	}
	var paths []string
	for path := range strings.Lines(string(list)) {
		path = strings.TrimSuffix(path, "\n")
		if _, err := os.Stat(path); err == nil { // a deleted file may still be in the index
			paths = append(paths, path)
		}
	}
	return paths, nil
}

// folderOf returns the top folder of a Go file, that of a page with a prefix, or a common name for all scripts or
// JavaScript.
func folderOf(path string) string {
	if kind := scriptKind(path); kind != "" {
		return kind
	}
	folder, _, nested := strings.Cut(path, "/")
	switch {
	case filepath.Ext(path) != ".md":
		return folder
	case !nested:
		return pages
	}
	return pages + " of " + folder
}

// count is the number of phrases in a file or folder.
type count struct {
	name           string
	phrases, words int
}

func (c *count) add(other *count) {
	c.phrases += other.phrases
	c.words += other.words
}

// rate returns the number of phrases per 1,000 words.
func (c *count) rate() float64 { return 1000 * float64(c.phrases) / float64(max(c.words, 1)) }

func printWorst(out io.Writer, files []*count, worst int) {
	slices.SortFunc(files, func(a, b *count) int { return cmp.Or(b.phrases-a.phrases, strings.Compare(a.name, b.name)) })
	for _, f := range files[:min(worst, len(files))] {
		fmt.Fprintf(out, "%5d phrases, %5.1f per 1,000 words  %s\n", f.phrases, f.rate(), f.name)
	}
}

// printFolders prints each folder with its limit, and reports whether all are within their limits.
func printFolders(out io.Writer, folders map[string]*count) (ok bool) {
	ok = true
	for _, name := range slices.Sorted(maps.Keys(folders)) {
		f, word := folders[name], "ok"
		if f.rate() > limitOf(name) {
			word, ok = "ABOVE ITS LIMIT", false
		}
		fmt.Fprintf(out, "%-20s %6d words, %5.1f per 1,000, limit %4.1f: %s\n", name, f.words, f.rate(), limitOf(name), word)
	}
	return ok
}
