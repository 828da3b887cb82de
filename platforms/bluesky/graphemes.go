// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// graphemes counts the user-perceived characters of text as Bluesky's servers and clients do, which use
// Intl.Segmenter. Since Unicode 15.1, consonants joined by a virama are one character (UAX #29, rule GB9c); uniseg
// implements Unicode 15.0, which counts them separately.
func graphemes(text string) int {
	n, joined, state := 0, false, -1
	for text != "" {
		var cluster string
		cluster, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		first, _ := utf8.DecodeRuneInString(cluster)
		if !joined || !unicode.Is(conjunctConsonants, first) {
			n++
		}
		joined = joins(cluster)
	}
	return n
}

// joins reports whether a consonant at the start of the next cluster belongs to this cluster: this one must be a
// consonant with a virama, and may contain a nukta or a joiner.
func joins(cluster string) bool {
	virama := false
	for i, r := range cluster {
		switch {
		case i == 0 && unicode.Is(conjunctConsonants, r):
		case i > 0 && strings.ContainsRune(viramas, r):
			virama = true
		case i > 0 && strings.ContainsRune(nuktas, r):
		default:
			return false
		}
	}
	return virama
}

// The values of Indic_Conjunct_Break in Unicode 15.1 (DerivedCoreProperties.txt). Later versions cover more scripts.
// Servers with an older Node.js count their consonants separately, and so does Herald, so that no server counts more
// characters than Herald does. Of the marks with the value Extend, nuktas contains those that are written between
// consonants, and the zero width joiner.
var conjunctConsonants = &unicode.RangeTable{R16: []unicode.Range16{
	// Devanagari.
	{Lo: 0x0915, Hi: 0x0939, Stride: 1},
	{Lo: 0x0958, Hi: 0x095f, Stride: 1},
	{Lo: 0x0978, Hi: 0x097f, Stride: 1},
	// Bengali.
	{Lo: 0x0995, Hi: 0x09a8, Stride: 1},
	{Lo: 0x09aa, Hi: 0x09b0, Stride: 1},
	{Lo: 0x09b2, Hi: 0x09b2, Stride: 1},
	{Lo: 0x09b6, Hi: 0x09b9, Stride: 1},
	{Lo: 0x09dc, Hi: 0x09dd, Stride: 1},
	{Lo: 0x09df, Hi: 0x09df, Stride: 1},
	{Lo: 0x09f0, Hi: 0x09f1, Stride: 1},
	// Gujarati.
	{Lo: 0x0a95, Hi: 0x0aa8, Stride: 1},
	{Lo: 0x0aaa, Hi: 0x0ab0, Stride: 1},
	{Lo: 0x0ab2, Hi: 0x0ab3, Stride: 1},
	{Lo: 0x0ab5, Hi: 0x0ab9, Stride: 1},
	{Lo: 0x0af9, Hi: 0x0af9, Stride: 1},
	// Oriya.
	{Lo: 0x0b15, Hi: 0x0b28, Stride: 1},
	{Lo: 0x0b2a, Hi: 0x0b30, Stride: 1},
	{Lo: 0x0b32, Hi: 0x0b33, Stride: 1},
	{Lo: 0x0b35, Hi: 0x0b39, Stride: 1},
	{Lo: 0x0b5c, Hi: 0x0b5d, Stride: 1},
	{Lo: 0x0b5f, Hi: 0x0b5f, Stride: 1},
	{Lo: 0x0b71, Hi: 0x0b71, Stride: 1},
	// Telugu.
	{Lo: 0x0c15, Hi: 0x0c28, Stride: 1},
	{Lo: 0x0c2a, Hi: 0x0c39, Stride: 1},
	{Lo: 0x0c58, Hi: 0x0c5a, Stride: 1},
	// Malayalam.
	{Lo: 0x0d15, Hi: 0x0d3a, Stride: 1},
}}

const (
	viramas = "\u094d\u09cd\u0acd\u0b4d\u0c4d\u0d4d"
	nuktas  = "\u093c\u09bc\u0abc\u0b3c\u0c3c\u200d"
)
