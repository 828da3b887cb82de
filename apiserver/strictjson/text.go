// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escapes maps the character after a backslash to the character that it represents. \u is handled separately.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// quoted parses a string up to its closing quote. It returns the source text between the quotes, and whether it
// contains escapes, which are then well-formed.
func (p *parser) quoted() (raw []byte, escaped, ok bool) {
	if !p.consume('"') {
		return nil, false, false
	}
	first := p.at
	for ; p.at < len(p.body); p.at++ {
		switch c := p.body[p.at]; {
		case c == '"':
			p.at++
			return p.body[first : p.at-1], escaped, true
		case c < ' ':
			return nil, false, false
		case c == '\\':
			escaped = true
			p.at++
			switch {
			case p.at < len(p.body) && escapes[p.body[p.at]] != 0:
			case codeUnit(p.body[p.at-1:]) >= 0:
				p.at += 4
			default:
				return nil, false, false
			}
		}
	}
	return nil, false, false
}

// unescape decodes a string with well-formed escapes. problem describes the first escape whose character cannot be
// stored and published, or is "" if there is none.
func unescape(raw []byte) (decoded []byte, problem string) {
	decoded = make([]byte, 0, len(raw))
	for {
		i := bytes.IndexByte(raw, '\\')
		if i < 0 {
			return append(decoded, raw...), problem
		}
		decoded, raw = append(decoded, raw[:i]...), raw[i:]
		if raw[1] != 'u' {
			decoded, raw = append(decoded, escapes[raw[1]]), raw[2:]
			continue
		}
		unit := codeUnit(raw)
		raw = raw[6:]
		switch {
		case unit == 0 && problem == "":
			problem = `must not contain the NUL character (\u0000)`
		case utf16.IsSurrogate(unit):
			pair := utf16.DecodeRune(unit, codeUnit(raw))
			if pair != utf8.RuneError {
				raw = raw[6:]
			} else if problem == "" {
				problem = fmt.Sprintf(`contains half a surrogate pair (\u%04x); send the whole character`, unit)
			}
			unit = pair
		}
		decoded = utf8.AppendRune(decoded, unit)
	}
}

// codeUnit parses the escape at the start of a string, such as \u00e4. It returns -1 if there is none.
func codeUnit(s []byte) rune {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(s[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
