// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import "unicode/utf8"

// portEnd returns where the port that begins at the offset ends, or the offset if there is none.
func portEnd(text string, at int) int {
	if at == len(text) || text[at] != ':' {
		return at
	}
	end := at + 1
	for end < len(text) && text[end] >= '0' && text[end] <= '9' {
		end++
	}
	if end == at+1 {
		return at
	}
	return end
}

// pathEndAt returns where the path that begins at the offset ends, or the offset if there is none. Parentheses belong
// to a path if they are balanced, at most two deep and not empty. Trailing punctuation does not, nor do parentheses
// behind it: "a.com/b(c)" is a URL, of "a.com/b.(c)" only "a.com/b" is.
func pathEndAt(text string, at int) int {
	if at == len(text) || text[at] != '/' {
		return at
	}
	end := at + 1
	for next := end; next < len(text); {
		if text[next] == '(' {
			behind := parenthesesEnd(text, next)
			if behind < 0 {
				return end
			}
			if end == next {
				end = behind
			}
			next = behind
			continue
		}
		r, width := utf8.DecodeRuneInString(text[next:])
		if !pathRune(r) {
			return end
		}
		next += width
		if pathEndRune(r) {
			end = next
		}
	}
	return end
}

// parenthesesEnd returns where the balanced parentheses that open at the offset end, or -1: characters of a path, or
// around them one more pair that holds at least one.
func parenthesesEnd(text string, open int) int {
	end := pathRun(text, open+1)
	if end > open+1 && closes(text, end) {
		return end + 1
	}
	if end == len(text) || text[end] != '(' {
		return -1
	}
	inner := end + 1
	end = pathRun(text, inner)
	if end == inner || !closes(text, end) {
		return -1
	}
	end = pathRun(text, end+1)
	if !closes(text, end) {
		return -1
	}
	return end + 1
}

func closes(text string, at int) bool {
	return at < len(text) && text[at] == ')'
}

// pathRun returns where the characters of a path that begin at the offset end.
func pathRun(text string, at int) int {
	for at < len(text) {
		r, width := utf8.DecodeRuneInString(text[at:])
		if !pathRune(r) {
			break
		}
		at += width
	}
	return at
}

// queryEndAt returns where the query that begins at the offset ends, or the offset if there is none. Trailing
// punctuation does not belong to it, and a question mark alone is none.
func queryEndAt(text string, at int) int {
	if at == len(text) || text[at] != '?' {
		return at
	}
	end := at
	for next := at + 1; next < len(text) && queryCharacter.has(rune(text[next])); next++ {
		if queryEnd.has(rune(text[next])) {
			end = next + 1
		}
	}
	return end
}
