// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxParentheses is how deep parentheses may nest in a path.
const maxParentheses = 2

func portEnd(text string, at int) int {
	if at >= len(text) || text[at] != ':' {
		return at
	}
	end := at + 1
	for end < len(text) && '0' <= text[end] && text[end] <= '9' {
		end++
	}
	if end == at+1 {
		return at
	}
	return end
}

// shortLinkEnd returns where the path of X's own short link ends: letters and digits only.
func shortLinkEnd(text string, at int) int {
	if at >= len(text) || text[at] != '/' {
		return at
	}
	end := at + 1
	for end < len(text) && isAlnum(rune(text[end])) {
		end++
	}
	return end
}

// pathEnd returns where the path that begins at start ends; start itself when there is none. Punctuation at its end belongs to
// the sentence, and parentheses count only in pairs.
func pathEnd(text string, start int) int {
	if start >= len(text) || text[start] != '/' {
		return start
	}
	good := start
	for i := start; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == '(' {
			closed := closingEnd(text, i, maxParentheses)
			if closed < 0 {
				break
			}
			i, good = closed, closed
			continue
		}
		if !isPathRune(r) {
			break
		}
		i += size
		if isPathLetter(r) || strings.ContainsRune("+-=_#/", r) {
			good = i
		}
	}
	return good
}

// closingEnd returns the offset behind the parenthesis that closes the one at at, or -1.
func closingEnd(text string, at, depth int) int {
	if depth == 0 {
		return -1
	}
	for i := at + 1; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == ')' && i > at+1:
			return i + size
		case r == '(':
			if i = closingEnd(text, i, depth-1); i < 0 {
				return -1
			}
		case isPathRune(r):
			i += size
		default:
			return -1
		}
	}
	return -1
}

// queryEnd returns where the query that begins at start ends; start itself when there is none.
func queryEnd(text string, start int) int {
	if start >= len(text) || text[start] != '?' {
		return start
	}
	good := start
	for i := start + 1; i < len(text); i++ {
		c := rune(text[i])
		if !isAlnum(c) && !strings.ContainsRune("!?*'@();:&=+$/%#[]-_.,~|", c) {
			break
		}
		if isAlnum(c) || strings.ContainsRune("-_&=#/", c) {
			good = i + 1
		}
	}
	return good
}

func isPathRune(r rune) bool {
	return isPathLetter(r) || strings.ContainsRune("!*';:=+,.$/%#[]-–_~@|&", r)
}

func isPathLetter(r rune) bool {
	return isLatin(r) || unicode.Is(unicode.Cyrillic, r)
}
