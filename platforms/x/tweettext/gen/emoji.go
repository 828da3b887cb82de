// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf16"
)

const emojiPreamble = `package tweettext

// The sequences are those of twemoji-parser 11.0.2 (https://www.npmjs.com/package/twemoji-parser), the parser that
// twitter-text 3.1.0 counts with, taken as data. Its licence (MIT):
//
// Copyright (c) 2018 Twitter, Inc.
//
// Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
// documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
// rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
// permit persons to whom the Software is furnished to do so, subject to the following conditions:
//
// The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
// Software.
//
// THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
// WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
// COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
// OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE.

`

// lightestEmoji is the first code point from which on every code point that is an emoji by itself weighs two.
const lightestEmoji = 0x2038

// emojiTable returns the Go source of an automaton that accepts exactly the sequences of two and more code points which
// the parser takes as one emoji. Sequences of one code point are left out: known or not, they weigh two.
func emojiTable(source string) (string, error) {
	_, source, ok := strings.Cut(source, "exports.default = /")
	pattern, _, closed := strings.Cut(source, "/g;")
	if !ok || !closed {
		return "", fmt.Errorf("no regular expression found")
	}
	sequences, err := expand(pattern)
	if err != nil {
		return "", err
	}

	// The automaton takes the longest sequence, the expression the first alternative that fits. They agree when no
	// sequence is tried before a longer one that begins with it.
	order := map[string]int{}
	for i, sequence := range sequences {
		if _, known := order[sequence]; !known {
			order[sequence] = i
		}
	}
	root := newNode()
	for sequence, i := range order {
		runes := []rune(sequence)
		for n := 1; n < len(runes); n++ {
			if shorter, known := order[string(runes[:n])]; known && shorter < i {
				return "", fmt.Errorf("%+q is tried before the longer %+q", string(runes[:n]), sequence)
			}
		}
		if len(runes) > 1 {
			root.add(runes)
		} else if runes[0] < lightestEmoji {
			return "", fmt.Errorf("%+q is an emoji by itself and may weigh one", sequence)
		}
	}
	return automaton(root), nil
}

// expand lists every string that the expression matches, in the order in which it would try them.
func expand(pattern string) ([]string, error) {
	p := parser{units: utf16.Encode([]rune(pattern))}
	matched, err := p.alternation()
	if err == nil && p.at != len(p.units) {
		err = fmt.Errorf("unexpected %q at %d", rune(p.units[p.at]), p.at)
	}
	if err != nil {
		return nil, err
	}
	sequences := make([]string, len(matched))
	for i, units := range matched {
		sequences[i] = string(utf16.Decode(units))
	}
	return sequences, nil
}

// node is a state of the automaton while it is a tree.
type node struct {
	accept bool
	next   map[rune]*node
}

func newNode() *node { return &node{next: map[rune]*node{}} }

func (n *node) add(sequence []rune) {
	for _, r := range sequence {
		if n.next[r] == nil {
			n.next[r] = newNode()
		}
		n = n.next[r]
	}
	n.accept = true
}

// edge is a run of code points that lead to the same state.
type edge struct {
	low, high rune
	state     int
}

// minimiser numbers states so that states with the same future share a number.
type minimiser struct {
	numbers map[string]int
	accept  []bool
	edges   [][]edge
}

func (m *minimiser) number(n *node) int {
	var edges []edge
	for _, r := range slices.Sorted(maps.Keys(n.next)) {
		state := m.number(n.next[r])
		if last := len(edges) - 1; last >= 0 && edges[last].high == r-1 && edges[last].state == state {
			edges[last].high = r
		} else {
			edges = append(edges, edge{r, r, state})
		}
	}
	key := fmt.Sprint(n.accept, edges)
	if number, known := m.numbers[key]; known {
		return number
	}
	m.numbers[key] = len(m.accept)
	m.accept = append(m.accept, n.accept)
	m.edges = append(m.edges, edges)
	return m.numbers[key]
}

// automaton writes the states under root, the root last: a state leads only to states before it.
func automaton(root *node) string {
	m := minimiser{numbers: map[string]int{}}
	m.number(root)

	var states, edges strings.Builder
	first, column := 0, 0
	for i, out := range m.edges {
		fmt.Fprintf(&states, "\t{first: %d, end: %d, accept: %t},\n", first, first+len(out), m.accept[i])
		first += len(out)
		slices.SortFunc(out, func(a, b edge) int { return cmp.Compare(a.low, b.low) })
		for _, e := range out {
			if column%4 == 0 {
				edges.WriteString("\n\t")
			}
			column++
			fmt.Fprintf(&edges, "{%#x, %#x, %d}, ", e.low, e.high, e.state)
		}
	}
	return fmt.Sprintf("%s// emojiRoot is the state before the first code point.\nconst emojiRoot = %d\n\n"+
		"// emojiStates are the states of the automaton that emojiLength walks.\nvar emojiStates = [...]emojiState{\n%s}\n\n"+
		"// emojiEdges are the ways out of each state, sorted by code point within a state.\nvar emojiEdges = [...]emojiEdge{%s\n}\n",
		emojiPreamble, len(m.accept)-1, states.String(), edges.String())
}
