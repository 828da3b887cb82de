// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"fmt"
	"regexp"
	"strings"
)

// The expressions in twitter-text for the part of a URL after its domain. Package regexp finds the same matches as
// JavaScript, in linear time.
var (
	letters = lettersAndDigits + `\x{400}-\x{4FF}\x{1C80}-\x{1C87}` + accentedClass()
	// pathCharacter may occur in a path, and pathEnd may be its last character: "a.com/b." does not include the
	// period. Parentheses belong to a path if they are balanced, nested at most two deep and not empty.
	pathCharacter = `[` + letters + `!*';:=+,.$/%#\[\]\-_~@|&\x{2013}]`
	pathEnd       = `[` + letters + `+\-=_#/]`
	parentheses   = `\((?:` + pathCharacter + `+|` + pathCharacter + `*\(` + pathCharacter + `+\)` + pathCharacter + `*)\)`
	path          = `/(?:` + pathCharacter + `*(?:` + parentheses + pathCharacter + `*)*` + pathEnd + `|` + parentheses + `)*`
	// query excludes trailing punctuation, and a question mark by itself is not a query.
	query = `\?[` + lettersAndDigits + `!?*'@();:&=+$/%#\[\]\-_.,~|]*[` + lettersAndDigits + `\-_&=#/]`

	// afterDomain matches a port, a path and a query.
	afterDomain = regexp.MustCompile(`^(?::[0-9]+)?(` + path + `)?(?:` + query + `)?`)

	// tco matches one of X's own short URLs, with its slug. Characters that follow the slug are not part of the
	// URL.
	tco = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://[Tt]\.[Cc][Oo]/([` + lettersAndDigits + `]+)(?:` + query + `)?`)
)

// accentedClass returns accented as part of a character class.
func accentedClass() string {
	var b strings.Builder
	for _, r := range accented.R16 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r.Lo, r.Hi)
	}
	return b.String()
}
