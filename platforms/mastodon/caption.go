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

// addresses matches what Mastodon links: an address that begins with http:// or https:// (user/posting, "Links").
var addresses = textlinks.Pattern{Match: regexp.MustCompile(`(?i)\bhttps?://[^\s\p{Z}<>"]+`), Trim: ".,;:!?'\"’”)]}>…*_~"}

// plainHost matches the beginning of an address that Mastodon certainly links: a name with a domain of letters. For
// others, such as IP addresses and names without a dot, it is undocumented.
var plainHost = regexp.MustCompile(`^(?i)https?://(?:[a-z0-9-]+\.)+[a-z]{2,}(?::[0-9]+)?(?:[/?#]|$)`)

// mentions matches an account, on another server if a domain follows (user/posting, "Mentions").
var mentions = textlinks.Pattern{
	Match:  regexp.MustCompile(`@[A-Za-z0-9_]+(?:[A-Za-z0-9_.-]+[A-Za-z0-9_]+)?(?:@(?:[A-Za-z0-9-]+\.)+[A-Za-z0-9-]+)?`),
	Accept: func(before, _ string) bool { return !textlinks.EndsInWord(before) && !strings.HasSuffix(before, "/") },
}

func shownLinks(text string) []platforms.Link {
	return textlinks.Find(text, nil, addresses, mentions, textlinks.Hashtags)
}

// length counts the characters of a text like Mastodon: grapheme clusters, where an address counts as perURL, and a
// mention without its domain (user/posting). Where it is uncertain whether something is an address, the lower number
// counts.
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

// optionsLength counts a content warning, which a server adds to the text before it counts
// (app/validators/status_length_validator.rb). It has no addresses and no mentions.
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

// plain returns the text of a post's HTML for people. It is not exact: a mention has lost its domain.
func plain(content string) string {
	content = paragraphs.ReplaceAllString(content, "\n\n")
	content = lineBreaks.ReplaceAllString(content, "\n")
	return html.UnescapeString(tags.ReplaceAllString(content, ""))
}
