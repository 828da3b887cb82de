// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"html"
	"net/http"
	"regexp"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/herald-social/herald/sandbox/links"
	"github.com/herald-social/herald/sandbox/state"
)

// status renders a post (entities/Status).
func (p *Platform) status(r *http.Request, author state.Account, post state.Post) map[string]any {
	kept := detailOf(post)
	address := p.SiteURL(r) + p.PostPath(author.Username, post.ID)
	out := map[string]any{
		"id": post.ID, "created_at": post.CreatedAt().Format("2006-01-02T15:04:05.000Z"), "edited_at": nil,
		"in_reply_to_id": nil, "in_reply_to_account_id": nil, "sensitive": kept.Sensitive, "spoiler_text": kept.Spoiler, "visibility": kept.Visibility,
		"language": nil, "uri": p.SiteURL(r) + "/mastodon/users/" + author.Username + "/statuses/" + post.ID, "url": address,
		"replies_count": 0, "reblogs_count": 0, "favourites_count": 0, "quotes_count": 0,
		"favourited": false, "reblogged": false, "muted": false, "bookmarked": false, "pinned": false, "filtered": []any{},
		"content": content(post.Text), "reblog": nil, "quote": nil, "application": map[string]any{"name": "sandbox", "website": nil},
		"account": p.account(r, author), "media_attachments": p.attachments(r, post), "mentions": []any{}, "tags": p.tags(r, post.Text),
		"emojis": []any{}, "card": nil, "poll": nil,
	}
	if kept.Language != "" {
		out["language"] = kept.Language
	}
	if parent, found := p.Store.Post(Name, post.InReplyTo); found {
		out["in_reply_to_id"], out["in_reply_to_account_id"] = parent.ID, parent.AccountID
	}
	return out
}

func (p *Platform) attachments(r *http.Request, post state.Post) []any {
	out := []any{}
	for _, id := range post.Parts {
		if c, found := p.Store.Container(Name, id); found {
			out = append(out, p.attachment(r, c))
		}
	}
	return out
}

var hashtag = regexp.MustCompile(`(^|[^\w&/])#([\p{L}\p{M}\p{N}_]*[\p{L}_][\p{L}\p{M}\p{N}_]*)`)

func (p *Platform) tags(r *http.Request, text string) []any {
	out := []any{}
	for _, found := range hashtag.FindAllStringSubmatch(text, -1) {
		name := strings.ToLower(found[2])
		out = append(out, map[string]any{"name": name, "url": p.SiteURL(r) + "/mastodon/tags/" + name})
	}
	return out
}

// content returns the HTML of a text: paragraphs, line breaks, and addresses with hidden parts (api/guidelines,
// "Formatting").
func content(text string) string {
	if text == "" {
		return ""
	}
	var b strings.Builder
	last := 0
	for _, at := range links.Find(text) {
		address := text[at[0]:at[1]]
		b.WriteString(html.EscapeString(text[last:at[0]]))
		scheme, rest, _ := strings.Cut(address, "://")
		b.WriteString(`<a href="` + html.EscapeString(address) + `" target="_blank" rel="nofollow noopener" translate="no"><span class="invisible">` +
			scheme + `://</span><span class="">` + html.EscapeString(rest) + `</span><span class="invisible"></span></a>`)
		last = at[1]
	}
	b.WriteString(html.EscapeString(text[last:]))
	paragraphs := strings.ReplaceAll(b.String(), "\n\n", "</p><p>")
	return "<p>" + strings.ReplaceAll(paragraphs, "\n", "<br />") + "</p>"
}

// remote matches a mention of an account on another server, of which only the username counts toward the length
// (user/posting, "Mentions").
var remote = regexp.MustCompile(`(^|[^/\w])@(([a-zA-Z0-9_]+)([a-zA-Z0-9_.-]+[a-zA-Z0-9_]+)?)@[\w.-]+[\w]`)

// length returns the number of characters of a post: grapheme clusters, where an address counts as 23
// (app/validators/status_length_validator.rb).
func length(spoiler, text string) int {
	var b strings.Builder
	last := 0
	for _, at := range links.Find(text) {
		b.WriteString(text[last:at[0]])
		b.WriteString(strings.Repeat("x", urlLength))
		last = at[1]
	}
	b.WriteString(text[last:])
	return uniseg.GraphemeClusterCount(spoiler + remote.ReplaceAllString(b.String(), "${1}@${2}"))
}
