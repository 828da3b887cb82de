// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"html"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/textlinks"
)

// addresses matches the addresses that Mastodon links: those that begin with http:// or https:// (user/posting,
// "Links").
var addresses = textlinks.Pattern{Match: regexp.MustCompile(`(?i)\bhttps?://[^\s\p{Z}<>"]+`), Trim: ".,;:!?'\"’”)]}>…*_~"}

// plainHost matches the beginning of an address that Mastodon certainly links: a host name whose top-level domain
// consists of letters. Whether it links other hosts, such as IP addresses and names without a dot, is undocumented.
var plainHost = regexp.MustCompile(`^(?i)https?://(?:[a-z0-9-]+\.)+[a-z]{2,}(?::[0-9]+)?(?:[/?#]|$)`)

// mentions matches account names; a domain after the name means that the account is on another server (user/posting,
// "Mentions").
var mentions = textlinks.Pattern{
	Match:  regexp.MustCompile(`@[A-Za-z0-9_]+(?:[A-Za-z0-9_.-]+[A-Za-z0-9_]+)?(?:@(?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+)?`),
	Accept: func(before, _ string) bool { return !textlinks.EndsInWord(before) && !strings.HasSuffix(before, "/") },
}

func shownLinks(text string) []platforms.Link {
	return textlinks.Find(text, nil, addresses, mentions, textlinks.Hashtags)
}

// length counts the characters of text as Mastodon does: in grapheme clusters, with perURL for each address, and
// without the domains of mentions (user/posting). If it is uncertain whether Mastodon treats something as an address,
// the lower count is used.
func length(text string, perURL int) int {
	n, last := 0, 0
	for _, at := range textlinks.Find(text, nil, addresses, mentions) {
		n += uniseg.GraphemeClusterCount(text[last:at.Start])
		link := text[at.Start:at.End]
		name, _, remote := strings.Cut(strings.TrimPrefix(link, "@"), "@")
		switch own := uniseg.GraphemeClusterCount(link); {
		case strings.HasPrefix(link, "@") && remote:
			n += 1 + len(name)
		case strings.HasPrefix(link, "@"):
			n += own
		case plainHost.MatchString(link):
			n += perURL
		default:
			n += min(own, perURL)
		}
		last = at.End
	}
	return n + uniseg.GraphemeClusterCount(text[last:])
}

// optionsLength counts the characters of the content warning, which servers add to the text before they count its
// length (app/validators/status_length_validator.rb). Addresses and mentions in it count like any other text.
func optionsLength(target *v1alpha1.PostTarget) int {
	if target.Mastodon == nil {
		return 0
	}
	return uniseg.GraphemeClusterCount(strings.TrimSpace(target.Mastodon.ContentWarning))
}

var (
	paragraphs = regexp.MustCompile(`(?i)</p>\s*<p[^>]*>`)
	lineBreaks = regexp.MustCompile(`(?i)<br[^>]*>`)
	tags       = regexp.MustCompile(`<[^>]*>`)
)

// plain converts a post's HTML to text for users. The result is not exact: mentions have no domain.
func plain(content string) string {
	content = paragraphs.ReplaceAllString(content, "\n\n")
	content = lineBreaks.ReplaceAllString(content, "\n")
	return html.UnescapeString(tags.ReplaceAllString(content, ""))
}
