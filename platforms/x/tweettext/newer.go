// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

// Until Go 1.27, package norm supports Unicode 15. This file adds the changes that Unicode 16 and 17 made to normal
// form C: marks with a combining class, and characters composed of two others (UnicodeData.txt of Unicode 17, third and
// fifth field). The standard guarantees that these never change, so they agree with any later package norm.

// newClass returns the combining class of a mark from Unicode 16 or 17, and 0 otherwise.
func newClass(r rune) uint8 {
	switch {
	case r >= 0x113CE && r <= 0x113D0, r == 0x1612F:
		return 9
	case r == 0x1ADD, r == 0x1AE6, r == 0x10EFA, r == 0x10EFB, r == 0x1E5EF:
		return 220
	case r == 0x1AEB:
		return 234
	case r == 0x0897, r >= 0x1ACF && r <= 0x1ADC, r >= 0x1AE0 && r <= 0x1AEA, r >= 0x10D69 && r <= 0x10D6D,
		r == 0x1E5EE, r == 0x1E6E3, r == 0x1E6E6, r == 0x1E6EE, r == 0x1E6EF, r == 0x1E6F5:
		return 230
	}
	return 0
}

// newPairs are the characters that Unicode 16 added and that are composed of two others: letters of Todhri, and vowel
// signs of Tulu-Tigalari, Gurung Khema and Kirat Rai. Unicode 17 added none.
var newPairs = map[rune][2]rune{
	0x105C9: {0x105D2, 0x0307}, 0x105E4: {0x105DA, 0x0307},
	0x11383: {0x11382, 0x113C9}, 0x11385: {0x11384, 0x113BB}, 0x1138E: {0x1138B, 0x113C2}, 0x11391: {0x11390, 0x113C9},
	0x113C5: {0x113C2, 0x113C2}, 0x113C7: {0x113C2, 0x113B8}, 0x113C8: {0x113C2, 0x113C9},
	0x16121: {0x1611E, 0x1611E}, 0x16122: {0x1611E, 0x16129}, 0x16123: {0x1611E, 0x1611F}, 0x16124: {0x16129, 0x1611F},
	0x16125: {0x1611E, 0x16120}, 0x16126: {0x16121, 0x1611F}, 0x16127: {0x16122, 0x1611F}, 0x16128: {0x16121, 0x16120},
	0x16D68: {0x16D67, 0x16D67}, 0x16D69: {0x16D63, 0x16D67}, 0x16D6A: {0x16D69, 0x16D67},
}

var (
	// newJoins is the inverse of newPairs.
	newJoins = func() map[[2]rune]rune {
		joins := map[[2]rune]rune{}
		for r, pair := range newPairs {
			joins[pair] = r
		}
		return joins
	}()
	// newStarts are the first characters of the pairs. They were added to Unicode together with their compositions.
	newStarts = func() map[rune]bool {
		starts := map[rune]bool{}
		for _, pair := range newPairs {
			starts[pair[0]] = true
		}
		return starts
	}()
)

// newer reports whether package norm may lack the data to normalize text that contains this character.
func newer(r rune) bool {
	if r < 0x0897 || r > 0x1E6F5 {
		return false
	}
	_, pair := newPairs[r]
	return pair || newStarts[r] || newClass(r) != 0
}
