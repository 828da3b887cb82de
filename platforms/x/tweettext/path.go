// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package tweettext

import (
	"fmt"
	"regexp"
	"strings"
)

// The expressions by which twitter-text defines what follows a URL's domain. Package regexp prefers the same match as
// JavaScript does, in linear time.
var (
	letters = lettersAndDigits + `\x{400}-\x{4FF}\x{1C80}-\x{1C87}` + accentedClass()
	// pathCharacter may stand in a path, pathEnd be its last character: "a.com/b." does not take the full stop.
	// Parentheses belong to a path if they are balanced, at most two deep and not empty.
	pathCharacter = `[` + letters + `!*';:=+,.$/%#\[\]\-_~@|&\x{2013}]`
	pathEnd       = `[` + letters + `+\-=_#/]`
	parentheses   = `\((?:` + pathCharacter + `+|` + pathCharacter + `*\(` + pathCharacter + `+\)` + pathCharacter + `*)\)`
	path          = `/(?:` + pathCharacter + `*(?:` + parentheses + pathCharacter + `*)*` + pathEnd + `|` + parentheses + `)*`
	// query leaves trailing punctuation, and a question mark alone is none.
	query = `\?[` + lettersAndDigits + `!?*'@();:&=+$/%#\[\]\-_.,~|]*[` + lettersAndDigits + `\-_&=#/]`

	// afterDomain takes a port, a path and a query.
	afterDomain = regexp.MustCompile(`^(?::[0-9]+)?(` + path + `)?(?:` + query + `)?`)

	// tco is one of X's own short URLs, with its slug. What follows it directly is not part of it.
	tco = regexp.MustCompile(`^[Hh][Tt][Tt][Pp][Ss]?://[Tt]\.[Cc][Oo]/([` + lettersAndDigits + `]+)(?:` + query + `)?`)
)

// accentedClass is accented as a part of a class.
func accentedClass() string {
	var b strings.Builder
	for _, r := range accented.R16 {
		fmt.Fprintf(&b, `\x{%x}-\x{%x}`, r.Lo, r.Hi)
	}
	return b.String()
}
