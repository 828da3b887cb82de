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

// X changes a post's text: it replaces every URL with a t.co URL, writes three characters as HTML entities, prefixes a
// reply with the names of the conversation's members, and may change whitespace and how letters are composed. The sent
// text is therefore compared with the listed one after reverting each of these changes.

type expectedText struct {
	// text is the job's text, in the form used for comparison.
	text    string
	isReply bool
}

func expectedFrom(content *platforms.Content) expectedText {
	return expectedText{text: text.Fold(content.Text), isReply: content.InReplyTo != ""}
}

// mention is an account name in front of a reply. X adds the names of everyone in the conversation, unless the call
// excludes them (X's guide to conversation ids and the payloads of its activity API, where display_text_range starts
// after them; xdevplatform/twitter-api-typescript-sdk#93). Names have up to 15 characters; some old ones have up to 20.
var mention = regexp.MustCompile(`^@[A-Za-z0-9_]{1,20} `)

// entities reverts the only three escapes that X makes, in one pass: "&lt;" in the sent text is listed as "&amp;lt;".
var entities = strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">")

// matches reports whether a listed post has the wanted text. X does not document which of its fields are escaped, so
// the text is compared with and without escapes.
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

// matchesText reports whether a listed text is the wanted one. The names in front of a reply are removed one at a time,
// because the author may have written some of them.
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

type listedText struct {
	Text     jsondoc.Text `json:"text"`
	Entities struct {
		URLs []shortened `json:"urls"`
	} `json:"entities"`
}

type shortened struct {
	URL      jsondoc.Text `json:"url"`
	Expanded jsondoc.Text `json:"expanded_url"`
	Display  jsondoc.Text `json:"display_url"`
}

type link struct {
	// short is the t.co URL in the text.
	short string
	// forms are the possible spellings of the original URL, without scheme and trailing slash, as regular expressions.
	forms []string
}

func (t *listedText) links() []link {
	var links []link
	for _, entity := range t.Entities.URLs {
		l := link{short: entity.URL.String()}
		expanded := entity.Expanded.String()
		l.add(expanded)
		if unescaped, err := url.PathUnescape(expanded); err == nil {
			l.add(unescaped)
		}
		// The displayed form contains an international domain as it was typed. A long URL is truncated and ends
		// in an ellipsis.
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

// scheme is the prefix that X adds to a URL without one.
var scheme = regexp.MustCompile(`^(?i:https?://)`)

func (l *link) add(address string) {
	address = text.Fold(address)
	form := strings.TrimSuffix(address[len(scheme.FindString(address)):], "/")
	if form != "" {
		l.forms = append(l.forms, regexp.QuoteMeta(form))
	}
}

// fits compares the wanted text with a listed one. A short URL in it matches each of its forms: with or without scheme
// and trailing slash, ignoring case.
func (w expectedText) fits(listed string, links []link) bool {
	if len(links) == 0 {
		return listed == w.text
	}
	// If one short URL is a prefix of another, the longer one must be replaced first.
	slices.SortStableFunc(links, func(a, b link) int { return len(b.short) - len(a.short) })
	var forms []string
	for _, l := range links {
		forms = append(forms, regexp.QuoteMeta(l.short), `(?i:https?://)?(?i:`+strings.Join(l.forms, "|")+`)/?`)
	}
	pattern, err := regexp.Compile("^" + strings.NewReplacer(forms...).Replace(regexp.QuoteMeta(listed)) + "$")
	return err == nil && pattern.MatchString(w.text)
}
