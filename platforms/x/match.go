// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/url"
	"slices"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// X does not give a text back as it was sent: it replaces every address by one
// of t.co, writes three characters as HTML entities, and may change blanks and
// compositions of letters. What was sent is therefore compared with what is
// listed after undoing each of these.

// wanted is the text of a job, in the form that is compared.
type wanted string

func want(caption string) wanted { return wanted(text.Fold(caption)) }

// entities undoes the only three escapes that X makes, in one pass: what was
// sent as "&lt;" is listed as "&amp;lt;".
var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// matches reports whether a listed post has the wanted text. It is compared with
// and without undoing escapes, since X does not say which of its texts are
// escaped.
func (w wanted) matches(post *listedPost) bool {
	if w == "" {
		return false
	}
	listed := &post.listedText
	if post.Note.Text != "" {
		listed = &post.Note
	}
	links := listed.links()
	written := listed.Text.String()
	return w.fits(text.Fold(entities.Replace(written)), links) || w.fits(text.Fold(written), links)
}

// listedText is a text as X lists it.
type listedText struct {
	Text     jsondoc.Text `json:"text"`
	Entities struct {
		URLs []shortened `json:"urls"`
	} `json:"entities"`
}

// shortened is an address of t.co and what it stands for.
type shortened struct {
	URL      jsondoc.Text `json:"url"`
	Expanded jsondoc.Text `json:"expanded_url"`
	Display  jsondoc.Text `json:"display_url"`
}

// link is an address in a listed text.
type link struct {
	// short is the address of t.co that stands in the text.
	short string
	// forms are the ways in which its author may have written it, without
	// scheme and closing slash.
	forms []string
}

// links reads the addresses in a listed text.
func (t *listedText) links() []link {
	var links []link
	for _, entity := range t.Entities.URLs {
		l := link{short: entity.URL.String()}
		if l.short == "" {
			continue
		}
		expanded := entity.Expanded.String()
		l.add(expanded)
		if unescaped, err := url.PathUnescape(expanded); err == nil {
			l.add(unescaped)
		}
		// The displayed form shows an international domain as it was typed. A
		// long one is cut short and ends in an ellipsis.
		if shown := entity.Display.String(); !strings.HasSuffix(shown, "…") {
			l.add(shown)
		}
		l.add(l.short)
		links = append(links, l)
	}
	return links
}

func (l *link) add(address string) {
	form := strings.TrimSuffix(trimScheme(text.Fold(address)), "/")
	if form != "" && !slices.Contains(l.forms, form) {
		l.forms = append(l.forms, form)
	}
}

// trimScheme takes "http://" or "https://" off, which X adds to what was typed
// without.
func trimScheme(address string) string {
	for _, scheme := range []string{"https://", "http://"} {
		if hasPrefixFold(address, scheme) {
			return address[len(scheme):]
		}
	}
	return address
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// fits compares the wanted text with a listed one, in which any short address
// stands for each of its forms.
//
// It walks through the listed text and keeps every place that the wanted text
// may have been followed to: an address that was typed with or without its
// closing slash leads to two.
func (w wanted) fits(listed string, links []link) bool {
	places := map[int]bool{0: true}
	for listed != "" && len(places) > 0 {
		at, next := nextLink(listed, links)
		places = w.afterLiteral(places, listed[:at])
		if next == nil {
			break
		}
		places = w.afterLink(places, *next)
		listed = listed[at+len(next.short):]
	}
	return places[len(w)]
}

// nextLink finds the first short address in a text: where it begins, and its
// link; the end of the text and nil if there is none.
func nextLink(listed string, links []link) (int, *link) {
	at, next := len(listed), (*link)(nil)
	for i := range links {
		found := strings.Index(listed, links[i].short)
		longer := next != nil && found == at && len(links[i].short) > len(next.short)
		if found >= 0 && (found < at || longer) {
			at, next = found, &links[i]
		}
	}
	return at, next
}

func (w wanted) afterLiteral(places map[int]bool, literal string) map[int]bool {
	after := map[int]bool{}
	for place := range places {
		if strings.HasPrefix(string(w[place:]), literal) {
			after[place+len(literal)] = true
		}
	}
	return after
}

func (w wanted) afterLink(places map[int]bool, l link) map[int]bool {
	after := map[int]bool{}
	for place := range places {
		rest := string(w[place:])
		bare := trimScheme(rest)
		for _, form := range l.forms {
			if !hasPrefixFold(bare, form) {
				continue
			}
			end := len(w) - len(bare) + len(form)
			after[end] = true
			if strings.HasPrefix(string(w[end:]), "/") {
				after[end+1] = true
			}
		}
	}
	return after
}
