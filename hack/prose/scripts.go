// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"regexp"
	"strings"
)

// The names used for files that are not listed by top folder.
const (
	scripts    = "scripts"
	javaScript = "JavaScript"
)

// scriptPatterns matches the files, besides Go and Markdown, whose comments are read.
var scriptPatterns = []string{"*.js", "*.sh", "*.mk", "Makefile", "*/Makefile", "Dockerfile", "*/Dockerfile", ".ci/run"}

// hashComment matches a comment in a shell script, a Makefile or a Dockerfile, including a target's help text, and
// slashComment matches one in JavaScript. A comment must follow a space, so URLs and $# do not match.
var (
	hashComment  = regexp.MustCompile(`(?:^|\s)#+@?\s+(.*)$`)
	slashComment = regexp.MustCompile(`(?:^|\s)//\s*(.*)$`)
	legal        = regexp.MustCompile(`^(Copyright |SPDX-|shellcheck |syntax=|eslint)`)
)

// scriptKind returns the name under which a script is listed, or "" for other files.
func scriptKind(path string) string {
	switch filepath.Ext(path) {
	case ".go", ".md":
		return ""
	case ".js":
		return javaScript
	}
	return scripts
}

// scriptComments returns a script's comments, one for each line. In a block comment of JavaScript, every line counts.
func scriptComments(path string, text []byte) []passage {
	var found []passage
	inBlock, line := false, 0
	for content := range strings.Lines(string(text)) {
		line++
		var comment string
		switch {
		case scriptKind(path) == scripts:
			comment = firstGroup(hashComment, content)
		case inBlock || strings.HasPrefix(strings.TrimSpace(content), "/*"):
			comment = strings.Trim(content, " \t\n*/")
			inBlock = !strings.Contains(content, "*/")
		default:
			comment = firstGroup(slashComment, content)
		}
		if comment != "" && !legal.MatchString(comment) {
			found = append(found, passage{line, comment})
		}
	}
	return found
}

func firstGroup(pattern *regexp.Regexp, line string) string {
	match := pattern.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
	if match == nil {
		return ""
	}
	return match[1]
}
