// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

const tldPreamble = `package tweettext

// The names are those of twitter-text 3.1.0 (https://www.npmjs.com/package/twitter-text; Copyright 2018 Twitter, Inc.;
// Apache License 2.0), taken as data. A name that the root zone gained since is left out on purpose: X's own client
// does not see a URL there either.

`

// tldTable returns the Go source of the table of top-level domains, made from twitter-text's two lists.
func tldTable(generic, country string) (string, error) {
	var names []string
	for _, list := range []string{generic, country} {
		listed, err := tldNames(list)
		if err != nil {
			return "", err
		}
		names = append(names, listed...)
	}
	if err := longestFirst(names); err != nil {
		return "", err
	}

	runes := 0
	for i, name := range names {
		runes = max(runes, utf8.RuneCountInString(name))
		names[i] = fold(name)
	}
	slices.Sort(names)
	names = slices.Compact(names)

	var b strings.Builder
	b.WriteString(tldPreamble)
	fmt.Fprintf(&b, "// maxTLDRunes is the length in characters of the longest name in tlds.\nconst maxTLDRunes = %d\n\n", runes)
	b.WriteString("// tlds holds the top-level domains, in the case that fold gives, sorted by their bytes.\nvar tlds = [...]string{")
	column := 0
	for _, name := range names {
		if column == 0 || column+len(name) > 110 {
			b.WriteString("\n\t")
			column = 0
		}
		n, _ := fmt.Fprintf(&b, "%q, ", name)
		column += n
	}
	b.WriteString("\n}\n")
	return b.String(), nil
}

// tldNames reads the names out of one list: an alternation, written as the concatenation of quoted strings.
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

// longestFirst confirms that an alternation tried in the order of names finds the longest name that fits, which is what
// the package's look-up does. A name that goes on with an ASCII letter cannot compete: the shorter one then lacks its
// boundary.
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

// fold is the same folding as tweettext.fold, for whole names.
func fold(name string) string {
	return strings.Map(func(r rune) rune {
		if upper := unicode.ToUpper(r); r < utf8.RuneSelf || upper >= utf8.RuneSelf {
			return upper
		}
		return r
	}, name)
}
