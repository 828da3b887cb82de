// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"hash/fnv"
	"html/template"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/state"
)

// palette are pairs of colours that go well together and carry white letters.
var palette = [][2]template.CSS{
	{"#6366f1", "#8b5cf6"},
	{"#0ea5e9", "#2563eb"},
	{"#14b8a6", "#0f766e"},
	{"#f59e0b", "#ea580c"},
	{"#ec4899", "#be185d"},
	{"#22c55e", "#15803d"},
	{"#f43f5e", "#b91c1c"},
	{"#64748b", "#334155"},
}

type avatarData struct {
	From, To template.CSS
	Initials string
}

// avatar draws an account's picture: its initials on a colour of its own. The suffix _normal, which X's addresses have,
// makes no difference.
func (s *Site) avatar(w http.ResponseWriter, r *http.Request) {
	id, isSVG := strings.CutSuffix(r.PathValue("file"), ".svg")
	id = strings.TrimSuffix(id, "_normal")
	account, ok := s.store.Account(state.Key{Platform: r.PathValue("platform"), ID: id})
	if !ok || !isSVG {
		http.NotFound(w, r)
		return
	}
	sum := fnv.New32a()
	_, _ = sum.Write([]byte(account.Platform + "/" + account.ID)) // a hash takes everything
	colours := palette[sum.Sum32()%uint32(len(palette))]          //nolint:gosec // a handful
	w.Header().Set("Content-Type", "image/svg+xml")
	w.Header().Set("Cache-Control", "max-age=300")
	secureHeaders(w.Header())
	data := avatarData{From: colours[0], To: colours[1], Initials: initials(account.DisplayName)}
	if err := templates.ExecuteTemplate(w, "avatar.html", data); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// initials are the first letters of the first two words.
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
