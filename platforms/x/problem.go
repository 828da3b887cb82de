// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"regexp"
	"slices"
	"strings"

	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// problem is an error from X. X uses three formats: a document in the style of RFC 7807, a list of such documents or of
// old {code, message} pairs under "errors", and OAuth's {error, error_description} at the token endpoint.
type problem struct {
	// kinds are the last path segments of every "type"; the hosts before them vary.
	kinds []string
	// words contains every title, detail, message and description, in lower case.
	words string
	// codes are the numeric codes of the old API.
	codes []string
	// oauth is the error code of the token endpoint.
	oauth string
}

type problemDoc struct {
	Type        jsondoc.Text `json:"type"`
	Title       jsondoc.Text `json:"title"`
	Detail      jsondoc.Text `json:"detail"`
	Message     jsondoc.Text `json:"message"`
	Description jsondoc.Text `json:"error_description"`
	Reason      jsondoc.Text `json:"reason"`
	Code        jsondoc.Text `json:"code"`
	OAuth       jsondoc.Text `json:"error"`
}

// parseProblem parses a response body. It returns false if the body does not have one of X's error formats, for example
// because it came from a proxy.
func parseProblem(body []byte) (*problem, bool) {
	answer, _ := jsondoc.Decode[struct {
		problemDoc

		Errors []problemDoc `json:"errors"`
	}](body)
	p := new(problem)
	for _, doc := range append([]problemDoc{answer.problemDoc}, answer.Errors...) {
		p.read(doc)
	}
	known := len(p.kinds) > 0 || p.words != "" || len(p.codes) > 0 || p.oauth != ""
	return p, known
}

func (p *problem) read(doc problemDoc) {
	if kind := strings.TrimRight(doc.Type.String(), "/"); kind != "" {
		p.kinds = append(p.kinds, clip(kind[strings.LastIndexByte(kind, '/')+1:]))
	}
	for _, words := range []jsondoc.Text{doc.Title, doc.Detail, doc.Message, doc.Description, doc.Reason} {
		if words != "" {
			p.words += strings.ToLower(words.String()) + "\n"
		}
	}
	if doc.Code != "" {
		p.codes = append(p.codes, clip(doc.Code.String()))
	}
	if doc.OAuth != "" {
		p.oauth = clip(doc.OAuth.String())
	}
}

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

// kindBlank is the type of a problem that contains no information beyond its status.
const kindBlank = "about:blank"

// codeForm matches the form of the codes and kinds that X documents.
var codeForm = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// code returns X's name for the error: a code of the old API, a problem's kind, or the token endpoint's code. It is
// empty if the response has none in a documented form.
func (p *problem) code() string {
	for _, name := range slices.Concat(p.codes, p.kinds, []string{p.oauth}) {
		if name != kindBlank && codeForm.MatchString(name) {
			return name
		}
	}
	return ""
}

func (p *problem) contains(words string) bool { return strings.Contains(p.words, words) }
