// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// lightestEmoji is the lower bound of the code points that have weight two if they are an emoji by themselves.
const lightestEmoji = 0x2038

// emojiTable returns the sequences of two or more code points that the parser treats as one emoji. Single code points
// are left out: with or without an entry, their weight is two.
func emojiTable(source string) ([]string, error) {
	_, source, ok := strings.Cut(source, "exports.default = /")
	pattern, _, closed := strings.Cut(source, "/g;")
	if !ok || !closed {
		return nil, errors.New("no regular expression found")
	}
	sequences, err := expand(pattern)
	if err != nil {
		return nil, err
	}

	// The package uses the longest sequence; the expression uses its first matching alternative. They agree if no
	// sequence is tried before a longer one with the same start.
	order := map[string]int{}
	for i, sequence := range sequences {
		if _, known := order[sequence]; !known {
			order[sequence] = i
		}
	}
	var table []string
	for sequence, i := range order {
		for n := range sequence {
			if shorter, known := order[sequence[:n]]; known && shorter < i {
				return nil, fmt.Errorf("%+q is tried before the longer %+q", sequence[:n], sequence)
			}
		}
		if first, width := utf8.DecodeRuneInString(sequence); width < len(sequence) {
			table = append(table, sequence)
		} else if first < lightestEmoji {
			return nil, fmt.Errorf("%+q is an emoji by itself and may weigh one", sequence)
		}
	}
	return table, nil
}

// escape matches JavaScript's notation for a UTF-16 unit. Package regexp/syntax treats it as a code point, which may be
// half a character.
var escape = regexp.MustCompile(`\\u([0-9a-f]{4})`)

// notAsText is the look-ahead for U+FE0E, which requests an emoji's text presentation: an emoji before it does not
// count as one. Either way the weight is the same, two for the character and two for U+FE0E, so the condition is
// dropped.
const notAsText = `(?!\ufe0e)`

// expand lists every string that a JavaScript expression matches, in the order of its alternatives. Strings that differ
// in only one unit may be in any order, because none is a prefix of another.
func expand(pattern string) ([]string, error) {
	pattern = escape.ReplaceAllString(strings.ReplaceAll(pattern, notAsText, "(?:)"), `\x{$1}`)
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil, err
	}
	matched, err := matches(parsed)
	if err != nil {
		return nil, err
	}
	sequences := make([]string, len(matched))
	for i, units := range matched {
		sequences[i] = string(utf16.Decode(units))
	}
	return sequences, nil
}

// matches lists the sequences of UTF-16 units that part of an expression matches, in the order of its alternatives.
func matches(part *syntax.Regexp) ([][]uint16, error) {
	var subs [][][]uint16
	for _, sub := range part.Sub {
		matched, err := matches(sub)
		if err != nil {
			return nil, err
		}
		subs = append(subs, matched)
	}
	all := [][]uint16{nil}
	switch part.Op {
	case syntax.OpEmptyMatch:
	case syntax.OpLiteral:
		for _, r := range part.Rune {
			all[0] = append(all[0], uint16(r))
		}
	case syntax.OpCharClass:
		all = nil
		for i := 0; i < len(part.Rune); i += 2 {
			for r := part.Rune[i]; r <= part.Rune[i+1]; r++ {
				all = append(all, []uint16{uint16(r)})
			}
		}
	case syntax.OpCapture, syntax.OpAlternate:
		all = slices.Concat(subs...)
	case syntax.OpQuest:
		all = slices.Concat(subs[0], all)
	case syntax.OpConcat:
		for _, tails := range subs {
			all = joined(all, tails)
		}
	default:
		return nil, fmt.Errorf("unexpected %s", part)
	}
	return all, nil
}

// joined lists the concatenations of each head with each tail.
func joined(heads, tails [][]uint16) (all [][]uint16) {
	for _, head := range heads {
		for _, tail := range tails {
			all = append(all, slices.Concat(head, tail))
		}
	}
	return all
}
