// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package split divides text that is too long for a post into the parts of a thread.
package split

import (
	"errors"
	"regexp"
	"sort"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/platforms"
)

// Rules are the conditions for the parts.
type Rules struct {
	// Fits reports whether a part is short enough.
	Fits func(part string) bool
	// Links lists the ranges of the text that must not be divided, in order.
	Links []platforms.Link
	// MaxParts is the maximum number of parts.
	MaxParts int
}

// Errors for the user about text that cannot be divided.
var (
	ErrTooMany  = errors.New("the text is too long for a thread")
	ErrTooLarge = errors.New("the text contains an address that is too long for a part of a thread")
)

// level is the unit that a border in the text separates, from the largest to the smallest.
type level int

const (
	paragraph level = iota
	sentence
	word
	character
)

// border is a place where the text may be divided, as a byte offset.
type border struct {
	at    int
	level level
}

// minShare limits how short a part may become for the sake of a paragraph or sentence: a quarter of what fits. A
// heading followed by a long sentence therefore shares a part with its beginning.
const minShare = 4

// divider matches a line with which a writer divides a text.
var divider = regexp.MustCompile(`(?m)^[ \t]*---[ \t]*\r?$`)

// Sections returns the parts into which a text is divided by lines of "---", without blank ones.
func Sections(text string) []string {
	var sections []string
	for _, section := range divider.Split(text, -1) {
		if section = strings.TrimSpace(section); section != "" {
			sections = append(sections, section)
		}
	}
	return sections
}

// Text divides a text into as few parts as its paragraphs allow: after paragraphs if possible, then after sentences,
// then between words, and within a word only if the word alone is too long. Links and grapheme clusters are never
// divided. The parts contain the whole text except blanks between them.
func Text(text string, rules Rules) ([]string, error) {
	borders := bordersOf(text, rules.Links)
	var parts []string
	for start := 0; ; {
		start = len(text) - len(strings.TrimLeftFunc(text[start:], unicode.IsSpace))
		if start == len(text) {
			return parts, nil
		}
		if len(parts) == rules.MaxParts {
			return nil, ErrTooMany
		}
		for borders[0].at <= start {
			borders = borders[1:]
		}
		cut := cutAt(text[start:], start, borders, rules.Fits)
		if cut == none {
			return nil, ErrTooLarge
		}
		parts = append(parts, strings.TrimSpace(text[start:cut]))
		start = cut
	}
}

// none is returned instead of an offset or index.
const none = -1

// cutAt returns the end of the first part of the rest of a text, or none if not even its beginning fits. The rest and
// the borders start at the given offset, and the last border is the end of the text.
func cutAt(rest string, start int, borders []border, fits func(string) bool) int {
	last := furthest(len(borders), func(i int) bool { return fits(strings.TrimSpace(rest[:borders[i].at-start])) })
	switch last {
	case none:
		return none
	case len(borders) - 1:
		return borders[last].at
	}
	share := (borders[last].at - start) / minShare
	for want := range character {
		for i := last; i >= 0; i-- {
			if want < word && borders[i].at-start < share {
				break
			}
			if borders[i].level <= want {
				return borders[i].at
			}
		}
	}
	return borders[last].at
}

// furthest returns the largest i below n for which fits holds, or none. Longer parts do not fit, except that a longer
// part may end with an address that counts less than its beginning.
func furthest(n int, fits func(int) bool) int {
	end := 1
	for end < n && fits(end) {
		end *= 2
	}
	return sort.Search(min(end+1, n), func(i int) bool { return !fits(i) }) - 1
}

// bordersOf returns the places where the text may be divided, in order: the ends of its grapheme clusters outside
// links, and the end of the text.
func bordersOf(text string, links []platforms.Link) []border {
	var borders []border
	state, rest, lines := -1, text, 0
	for at := 0; rest != ""; {
		var cluster string
		var boundaries int
		cluster, rest, boundaries, state = uniseg.StepString(rest, state)
		at += len(cluster)
		for len(links) > 0 && links[0].End <= at {
			links = links[1:]
		}
		switch {
		case strings.ContainsAny(cluster, "\n\r"):
			lines++
		case strings.TrimSpace(cluster) != "":
			lines = 0
		}
		if rest != "" && len(links) > 0 && links[0].Start < at {
			continue
		}
		borders = append(borders, border{at, levelOf(cluster, boundaries, lines)})
	}
	return borders
}

// levelOf returns the level of the border after a cluster. lines is the number of line breaks in the blanks before the
// border. A line may be broken after a hyphen too, but a part does not end in the middle of a compound.
func levelOf(cluster string, boundaries, lines int) level {
	blank := strings.TrimSpace(cluster) == ""
	switch {
	case lines > 1:
		return paragraph
	case boundaries&uniseg.MaskSentence != 0:
		return sentence
	case boundaries&uniseg.MaskLine != uniseg.LineDontBreak && (blank || ideographic(cluster)):
		return word
	default:
		return character
	}
}

// ideographic reports whether a cluster is of a script without blanks between words, where lines may end after most
// characters (UAX #14, class ID). These start with the CJK radicals.
func ideographic(cluster string) bool { return cluster >= "\u2e80" }
