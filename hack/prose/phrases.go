// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io"
	"path/filepath"
	"regexp"
	"strings"
)

// phrases are the patterns to count: subjects without a noun, prepositions before a relative pronoun, numbers written
// as "so many", and things that tell or say.
var phrases = regexp.MustCompile(`(?i)\b(that|those) of\b` +
	`|\b(of|by|in|to|for|at|from|with|under|after|before|on) (which|whom|whose)\b` +
	`|\bwhat (is|was|are|were|it|they|has|had|there|came|comes|became|went|others|people|an?|the)\b` +
	`|\b(whoever|nobody|somebody|anybody|anew|beside|once more|any more|of its own|begin|begins|began|begun|tell|tells|told|say|says|said|lies|stands)\b` +
	`|\bso (many|long|much|often|large|few)\b`)

// passage is one comment or paragraph, with the line on which it starts.
type passage struct {
	line int
	text string
}

// proseOf returns the comments of a Go file or a script, or the paragraphs of a Markdown page. relevant is false for
// generated and minified files and test data.
func proseOf(path string, text []byte) (found []passage, relevant bool) {
	if strings.Contains(path, "/testdata/") {
		return nil, false
	}
	if filepath.Ext(path) == ".md" {
		return paragraphs(text), !bytes.Contains(firstLines(text), []byte("Generated"))
	}
	if generated.Match(firstLines(text)) || strings.HasSuffix(path, ".min.js") {
		return nil, false
	}
	if scriptKind(path) != "" {
		return scriptComments(path, text), true
	}
	return comments(path, text), true
}

var generated = regexp.MustCompile(`(?m)^(//|#) Code generated .* DO NOT EDIT\.$`)

// firstLines returns enough of a file to determine whether it is generated.
func firstLines(text []byte) []byte { return text[:min(len(text), 1<<10)] }

// comments returns the comments of a Go file except directives and licence lines.
func comments(path string, text []byte) []passage {
	files := token.NewFileSet()
	file := files.AddFile(path, -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, scanner.ScanComments)
	var found []passage
	for {
		at, kind, literal := s.Scan()
		if kind == token.EOF {
			return found
		}
		if kind == token.COMMENT && !directive.MatchString(literal) {
			found = append(found, passage{file.Line(at), literal})
		}
	}
}

var directive = regexp.MustCompile(`^//(go:|nolint|line |\s*\+|\s*Copyright |\s*SPDX-)`)

// paragraphs returns a page's text without its code blocks.
func paragraphs(text []byte) []passage {
	var found []passage
	inCode := false
	line := 0
	for content := range strings.Lines(string(text)) {
		line++
		if strings.HasPrefix(strings.TrimSpace(content), "```") {
			inCode = !inCode
			continue
		}
		if !inCode {
			found = append(found, passage{line, codeSpan.ReplaceAllString(content, "`x`")})
		}
	}
	return found
}

var codeSpan = regexp.MustCompile("`[^`]*`")

var word = regexp.MustCompile(`[\pL\pN][\pL\pN'’-]*`)

func countIn(path string, passages []passage) *count {
	c := &count{name: path}
	for _, p := range passages {
		c.words += len(word.FindAllString(p.text, -1))
		c.phrases += len(phrases.FindAllString(p.text, -1))
	}
	return c
}

// printPhrases prints each passage that contains a phrase, and where it is.
func printPhrases(out io.Writer, path string, passages []passage) {
	for _, p := range passages {
		if found := phrases.FindAllString(p.text, -1); found != nil {
			fmt.Fprintf(out, "%s:%d: %q in %s\n", path, p.line, found, strings.TrimSpace(p.text))
		}
	}
}
