// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// tldTable returns the top-level domains of twitter-text's two lists, folded.
func tldTable(generic, country string) ([]string, error) {
	var names []string
	for _, list := range []string{generic, country} {
		listed, err := tldNames(list)
		if err != nil {
			return nil, err
		}
		names = append(names, listed...)
	}
	if err := longestFirst(names); err != nil {
		return nil, err
	}
	for i, name := range names {
		names[i] = fold(name)
	}
	return names, nil
}

// tldNames extracts the names from one list: an alternation, written as the concatenation of quoted strings.
func tldNames(source string) ([]string, error) {
	_, source, ok := strings.Cut(source, "RegExp('(?:(?:'")
	if !ok {
		return nil, errors.New("the list does not begin as expected")
	}
	source, _, ok = strings.Cut(source, "(?=[^0-9a-zA-Z@+-]|$)")
	if !ok {
		return nil, errors.New("the list does not end with the expected boundary")
	}
	var alternation strings.Builder
	for i, part := range strings.Split(source, "'") {
		if i%2 == 1 {
			alternation.WriteString(part)
		}
	}
	names := strings.Split(strings.TrimSuffix(alternation.String(), ")"), "|")
	for _, name := range names {
		if strings.ContainsFunc(name, func(r rune) bool { return !unicode.In(r, unicode.L, unicode.M) }) || name == "" {
			return nil, fmt.Errorf("%q does not look like a top-level domain", name)
		}
	}
	return names, nil
}

// longestFirst verifies that an alternation in the order of names finds the longest matching name, as the package's
// lookup does. A longer name that continues with an ASCII letter may be listed later, because the shorter name then
// does not match: its boundary is missing.
func longestFirst(names []string) error {
	for i, name := range names {
		for _, later := range names[i+1:] {
			rest, ok := strings.CutPrefix(later, name)
			if ok && rest != "" && rest[0] >= utf8.RuneSelf {
				return fmt.Errorf("%q is listed before the longer %q", name, later)
			}
		}
	}
	return nil
}

// fold folds a whole name as tweettext.fold does a character.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if upper := unicode.ToUpper(r); r < utf8.RuneSelf || upper >= utf8.RuneSelf {
			return upper
		}
		return r
	}, name)
}
