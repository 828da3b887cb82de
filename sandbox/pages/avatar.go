// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"fmt"
	"hash/fnv"
	"html"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/state"
)

// palette contains pairs of matching colors that suit white letters.
var palette = [][2]string{
	{"#6366f1", "#8b5cf6"},
	{"#0ea5e9", "#2563eb"},
	{"#14b8a6", "#0f766e"},
	{"#f59e0b", "#ea580c"},
	{"#ec4899", "#be185d"},
	{"#22c55e", "#15803d"},
	{"#f43f5e", "#b91c1c"},
	{"#64748b", "#334155"},
}

// avatarSVG is a picture with two colors and some letters.
const avatarSVG = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 96 96" width="96" height="96"><defs><linearGradient id="g" x1="0" y1="0" x2="1" y2="1"><stop offset="0" stop-color="%s"/><stop offset="1" stop-color="%s"/></linearGradient></defs>` +
	`<rect width="96" height="96" fill="url(#g)"/><text x="48" y="50" text-anchor="middle" dominant-baseline="central" font-family="system-ui, sans-serif" font-size="38" font-weight="600" fill="#fff">%s</text></svg>`

// avatar draws an account's picture: its initials on a color derived from its key.
func (s *Site) avatar(w http.ResponseWriter, r *http.Request) {
	id, isSVG := strings.CutSuffix(r.PathValue("file"), ".svg")
	account, ok := s.store.Account(state.Key{Platform: r.PathValue("platform"), ID: id})
	if !ok || !isSVG {
		http.NotFound(w, r)
		return
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(account.Platform + "/" + account.ID)) // a hash never fails
	colours := palette[sum.Sum32()%uint32(len(palette))]          //nolint:gosec // the palette is small
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "max-age=300")
	secureHeaders(w.Header())
	// The client may have disconnected.
	_, _ = fmt.Fprintf(w, avatarSVG, colours[0], colours[1], html.EscapeString(initials(account.DisplayName)))
}

// initials returns the first letters of the first two words.
func initials(name string) string {
	var out []rune
	for word := range strings.FieldsSeq(name) {
		first, _ := utf8.DecodeRuneInString(word)
		if len(out) < 2 && (unicode.IsLetter(first) || unicode.IsDigit(first)) {
			out = append(out, unicode.ToUpper(first))
		}
	}
	return string(out)
}
