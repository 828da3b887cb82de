// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf16"
)

// variationText is U+FE0E, which asks for an emoji to be shown as text.
const variationText = 0xFE0E

// parser reads the part of JavaScript's regular expressions that the emoji expression uses and lists, for each part,
// the strings of UTF-16 units that it matches, in the order of trial.
type parser struct {
	units []uint16
	at    int
}

// peek tells whether the units ahead spell ahead.
func (p *parser) peek(ahead string) bool {
	want := utf16.Encode([]rune(ahead))
	return len(p.units)-p.at >= len(want) && slices.Equal(p.units[p.at:p.at+len(want)], want)
}

// skip passes over ahead if it comes next.
func (p *parser) skip(ahead string) bool {
	if !p.peek(ahead) {
		return false
	}
	p.at += len(ahead)
	return true
}

// alternation reads alternatives up to a closing parenthesis or the end.
func (p *parser) alternation() ([][]uint16, error) {
	var all [][]uint16
	for {
		alternative, err := p.concatenation()
		if err != nil {
			return nil, err
		}
		all = append(all, alternative...)
		if !p.skip("|") {
			return all, nil
		}
	}
}

func (p *parser) concatenation() ([][]uint16, error) {
	all := [][]uint16{nil}
	for p.at < len(p.units) && !p.peek("|") && !p.peek(")") {
		part, err := p.atom()
		if err != nil {
			return nil, err
		}
		if p.skip("?") {
			part = append(part, nil)
		}
		var longer [][]uint16
		for _, head := range all {
			for _, tail := range part {
				longer = append(longer, slices.Concat(head, tail))
			}
		}
		all = longer
	}
	return all, nil
}

// atom reads a group, a look-ahead, a class or one unit.
func (p *parser) atom() ([][]uint16, error) {
	switch {
	case p.skip("(?!"):
		// An emoji followed by U+FE0E is not taken as an emoji. Both readings weigh the same, two for the character
		// and two for U+FE0E, so the condition is dropped.
		ahead, err := p.unit()
		if err == nil && (ahead != variationText || !p.skip(")")) {
			err = fmt.Errorf("unexpected look-ahead at %d", p.at)
		}
		return [][]uint16{nil}, err
	case p.skip("(?:"), p.skip("("):
		all, err := p.alternation()
		if err == nil && !p.skip(")") {
			err = fmt.Errorf("unclosed group at %d", p.at)
		}
		return all, err
	case p.skip("["):
		return p.class()
	default:
		u, err := p.unit()
		return [][]uint16{{u}}, err
	}
}

func (p *parser) class() ([][]uint16, error) {
	var all [][]uint16
	for !p.skip("]") {
		low, err := p.unit()
		if err != nil {
			return nil, err
		}
		high := low
		if p.skip("-") {
			if high, err = p.unit(); err != nil {
				return nil, err
			}
		}
		for u := int(low); u <= int(high); u++ {
			all = append(all, []uint16{uint16(u)})
		}
	}
	return all, nil
}

// unit reads one UTF-16 unit, plain or as an escape of four hexadecimal digits.
func (p *parser) unit() (uint16, error) {
	if p.at >= len(p.units) {
		return 0, fmt.Errorf("unexpected end")
	}
	if !p.skip(`\u`) {
		p.at++
		return p.units[p.at-1], nil
	}
	if len(p.units)-p.at < 4 {
		return 0, fmt.Errorf("unfinished escape at %d", p.at)
	}
	digits := string(utf16.Decode(p.units[p.at : p.at+4]))
	p.at += 4
	u, err := strconv.ParseUint(digits, 16, 16)
	return uint16(u), err
}
