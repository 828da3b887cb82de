// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
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
	doc, ok := decodeObject(body)
	p := new(problem)
	if !ok {
		return p, false
	}
	p.read(doc)
	for _, entry := range list(doc["errors"]) {
		if nested, isObject := entry.(map[string]any); isObject {
			p.read(nested)
		}
	}
	known := len(p.kinds) > 0 || p.words != "" || len(p.codes) > 0 || p.oauth != ""
	return p, known
}

func (p *problem) read(doc map[string]any) {
	if kind := textOf(doc["type"]); kind != "" {
		kind = strings.TrimRight(kind, "/")
		p.kinds = append(p.kinds, clip(kind[strings.LastIndexByte(kind, '/')+1:]))
	}
	for _, key := range []string{"title", "detail", "message", "error_description", "reason"} {
		if s := textOf(doc[key]); s != "" {
			p.words += strings.ToLower(s) + "\n"
		}
	}
	if code := textOf(doc["code"]); code != "" {
		p.codes = append(p.codes, clip(code))
	}
	if s := textOf(doc["error"]); s != "" {
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

// decodeObject reads a body that is one JSON object. Numbers stay as written:
// ids are longer than a float can hold.
func decodeObject(body []byte) (map[string]any, bool) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var doc map[string]any
	if err := decoder.Decode(&doc); err != nil || doc == nil || decoder.More() {
		return nil, false
	}
	return doc, true
}

// textOf returns a JSON string or number as it was written, else "".
func textOf(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case json.Number:
		return v.String()
	default:
		return ""
	}
}

// object returns a JSON object, or nil, from which nothing can be read.
func object(v any) map[string]any {
	doc, _ := v.(map[string]any)
	return doc
}

// list returns a JSON array, or nil.
func list(v any) []any {
	entries, _ := v.([]any)
	return entries
}
