// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"crypto/sha256"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/herald-social/herald/sandbox/state"
)

const (
	// shortLink is the base of X's short links; shortLinkLetters characters follow. Together they are 23 characters
	// long, the weight of a link.
	shortLink        = "https://t.co/"
	shortLinkLetters = 10
	// displayRunes is the number of characters of a link that X displays.
	displayRunes = 26
)

// rendered is a post as X's responses show it.
type rendered struct {
	text string
	urls []urlEntity
	// front is the length of the prepended names in characters; shown is where the sent text ends.
	front, shown int
	// media is the short link that X appends for media, if the post has any.
	media urlEntity
}

// urlEntity describes a short link. Start and End are counted in characters of the response text.
type urlEntity struct {
	Start       int    `json:"start"`
	End         int    `json:"end"`
	URL         string `json:"url"`
	ExpandedURL string `json:"expanded_url"`
	DisplayURL  string `json:"display_url"`
	// MediaKey is set if the link represents one of the post's media.
	MediaKey string `json:"media_key,omitempty"`
}

// xmlEscaper escapes the three characters that X escapes in text.
var xmlEscaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// render converts the text that was sent to the one in X's responses: NFC, trimmed, with short links, and with &, < and
// > escaped. A reply starts with the names in the conversation, and a post with media ends with a short link to them.
func render(post state.Post) rendered {
	sent := strings.TrimSpace(norm.NFC.String(post.Text))
	var named strings.Builder
	for _, name := range detailOf(post).Mentioned {
		named.WriteString("@" + name + " ")
	}
	front := named.String()
	sent = front + sent
	links := findLinks(sent)
	out := renderText(post, sent, links)
	out.front, out.shown = utf8.RuneCountInString(front), utf8.RuneCountInString(out.text)
	if len(post.Media) > 0 {
		if out.text != "" {
			out.text += " "
		}
		short := shorten(post.ID, len(links))
		start := utf8.RuneCountInString(out.text)
		out.text += short
		out.media = urlEntity{Start: start, End: start + len(short), URL: short}
	}
	return out
}

func renderText(post state.Post, sent string, links []link) rendered {
	var (
		out  rendered
		text strings.Builder
		at   int
	)
	for i, l := range links {
		text.WriteString(xmlEscaper.Replace(sent[at:l.start]))
		start := utf8.RuneCountInString(text.String())
		short := shorten(post.ID, i)
		text.WriteString(short)
		out.urls = append(out.urls, urlEntity{
			Start: start, End: start + len(short), URL: short,
			ExpandedURL: expand(sent[l.start:l.end], l.scheme), DisplayURL: display(sent[l.start:l.end]),
		})
		at = l.end
	}
	text.WriteString(xmlEscaper.Replace(sent[at:]))
	out.text = text.String()
	return out
}

// shorten returns the short link for the post's i-th link. It is deterministic.
func shorten(postID string, i int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s/%d", postID, i))
	letters := new(big.Int).SetBytes(sum[:]).Text(62)
	return shortLink + letters[:shortLinkLetters]
}

// expand returns the target of a short link. X prepends http:// to a bare domain.
func expand(address string, scheme bool) string {
	if scheme {
		return address
	}
	return "http://" + address
}

func display(address string) string {
	if _, after, found := strings.Cut(address, "://"); found {
		address = after
	}
	address = strings.TrimPrefix(address, "www.")
	if utf8.RuneCountInString(address) <= displayRunes {
		return address
	}
	return string([]rune(address)[:displayRunes]) + "…"
}

// mediaLinks describes the short link at the end of a post, once for each media.
func (p *Platform) mediaLinks(post state.Post, at urlEntity, attached []attachment) []urlEntity {
	author, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
	out := make([]urlEntity, 0, len(attached))
	for i, a := range attached {
		part := "/photo/" + strconv.Itoa(i+1)
		if a.Kind != kindPhoto {
			part = "/video/1"
		}
		at.ExpandedURL = "https://x.com/" + author.Username + "/status/" + post.ID + part
		at.DisplayURL = "pic.x.com/" + at.URL[len(shortLink):]
		at.MediaKey = a.Key
		out = append(out, at)
	}
	return out
}
