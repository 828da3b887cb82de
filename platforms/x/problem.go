// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"slices"
	"strings"

	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// problem is what X says is wrong. Its errors come in three dresses: a
// document in the style of RFC 7807, a list of such documents or of old
// {code, message} pairs under "errors", and OAuth's {error, error_description}
// at the token endpoint.
type problem struct {
	// kinds are the last path segments of every "type"; the hosts before them
	// vary.
	kinds []string
	// words is every title, detail, message and description, in lower case.
	words string
	// codes are the numeric codes of the old API.
	codes []string
	// oauth is the error code of the token endpoint.
	oauth string
}

// parseProblem reads the body of an answer. It reports false if the body is
// not in any of the forms in which X reports errors, as when something between
// X and us answered.
func parseProblem(body []byte) (*problem, bool) {
	doc, ok := jsondoc.Parse(body)
	p := new(problem)
	if !ok {
		return p, false
	}
	p.read(doc)
	nested, _ := doc.List("errors")
	for _, entry := range nested {
		p.read(entry)
	}
	known := len(p.kinds) > 0 || p.words != "" || len(p.codes) > 0 || p.oauth != ""
	return p, known
}

func (p *problem) read(doc jsondoc.Object) {
	if kind := doc.Text("type"); kind != "" {
		kind = strings.TrimRight(kind, "/")
		p.kinds = append(p.kinds, clip(kind[strings.LastIndexByte(kind, '/')+1:]))
	}
	for _, key := range []string{"title", "detail", "message", "error_description", "reason"} {
		if s := doc.Text(key); s != "" {
			p.words += strings.ToLower(s) + "\n"
		}
	}
	if code := doc.Text("code"); code != "" {
		p.codes = append(p.codes, clip(code))
	}
	if s := doc.Text("error"); s != "" {
		p.oauth = clip(s)
	}
}

// clip keeps a word that X made short enough for a log.
func clip(word string) string {
	const longest = 64
	if len(word) > longest {
		return word[:longest]
	}
	return word
}

func (p *problem) isKind(names ...string) bool {
	return slices.ContainsFunc(p.kinds, func(kind string) bool { return slices.Contains(names, kind) })
}

func (p *problem) hasCode(code string) bool { return slices.Contains(p.codes, code) }

func (p *problem) says(words string) bool { return strings.Contains(p.words, words) }
