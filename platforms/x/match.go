// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// X does not give a text back as it was sent: it replaces every address by one
// of t.co, writes three characters as HTML entities, puts the names of those
// mentioned before in front of a reply, and may change blanks and compositions of
// letters. What was sent is therefore compared with what is listed after undoing
// each of these.

// expectedText is what is looked for.
type expectedText struct {
	// text is that of the job, in the form that is compared.
	text string
	// isReply says that the job hangs from another post.
	isReply bool
}

func expectedFrom(content *platforms.Content) expectedText {
	return expectedText{text: text.Fold(content.Text), isReply: content.InReplyTo != ""}
}

// mention is the name of an account in front of a reply. X puts those of everyone
// in the conversation there, unless the call excludes them (X's guide to
// conversation ids and the payloads of its activity API, where display_text_range
// begins behind them; xdevplatform/twitter-api-typescript-sdk#93). Names have 15
// characters, some old ones 20.
var mention = regexp.MustCompile(`^@[A-Za-z0-9_]{1,20} `)

// entities undoes the only three escapes that X makes, in one pass: what was
// sent as "&lt;" is listed as "&amp;lt;".
var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// matches reports whether a listed post has the wanted text. It is compared with
// and without undoing escapes, since X does not say which of its texts are
// escaped.
func (w expectedText) matches(post *listedPost) bool {
	if w.text == "" {
		return false
	}
	listed := &post.listedText
	for _, note := range []*listedText{&post.Note, &post.NotePost} {
		if note.Text != "" {
			listed = note
		}
	}
	links := listed.links()
	written := listed.Text.String()
	return w.matchesText(text.Fold(entities.Replace(written)), links) || w.matchesText(text.Fold(written), links)
}

// matchesText reports whether a listed text is the wanted one, of a reply without the
// names that stand in front of it. The author may have written some of them.
func (w expectedText) matchesText(listed string, links []link) bool {
	for {
		if w.fits(listed, links) {
			return true
		}
		name := mention.FindString(listed)
		if !w.isReply || name == "" {
			return false
		}
		listed = listed[len(name):]
	}
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
	// scheme and closing slash, as regular expressions.
	forms []string
}

// links reads the addresses in a listed text.
func (t *listedText) links() []link {
	var links []link
	for _, entity := range t.Entities.URLs {
		l := link{short: entity.URL.String()}
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
		if l.short != "" && len(l.forms) > 0 {
			links = append(links, l)
		}
	}
	return links
}

// scheme is what X adds to an address that was typed without.
var scheme = regexp.MustCompile(`^(?i:https?://)`)

func (l *link) add(address string) {
	address = text.Fold(address)
	form := strings.TrimSuffix(address[len(scheme.FindString(address)):], "/")
	if form != "" {
		l.forms = append(l.forms, regexp.QuoteMeta(form))
	}
}

// fits compares the wanted text with a listed one, in which any short address
// stands for each of its forms: with or without scheme and closing slash, in
// small letters or capitals.
func (w expectedText) fits(listed string, links []link) bool {
	if len(links) == 0 {
		return listed == w.text
	}
	// Where one short address begins with another, the longer one stands.
	slices.SortStableFunc(links, func(a, b link) int { return len(b.short) - len(a.short) })
	var forms []string
	for _, l := range links {
		forms = append(forms, regexp.QuoteMeta(l.short), `(?i:https?://)?(?i:`+strings.Join(l.forms, "|")+`)/?`)
	}
	pattern, err := regexp.Compile("^" + strings.NewReplacer(forms...).Replace(regexp.QuoteMeta(listed)) + "$")
	return err == nil && pattern.MatchString(w.text)
}
