// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/internal/text"
	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
)

// Pages downloads the web pages that posts link to. It is implemented by *fetch.Client.
type Pages interface {
	Page(ctx context.Context, address, accept string, limit int64) (fetch.Page, error)
}

const (
	// maxPage is how much of a page is read. Its metadata is at the beginning.
	maxPage = 512 << 10
	// maxThumb bounds a card's picture, in bytes (lexicon app.bsky.embed.external). Larger pictures are left out.
	maxThumb = 1_000_000
	// maxCardText bounds the title and the description of a card, in bytes, because a checkpoint contains both.
	maxCardText = 300
)

// card is the preview that Bluesky shows for the first address in a post without files (lexicon
// app.bsky.embed.external). The client supplies it: Bluesky does not read the page.
type card struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	// Thumb identifies the picture's blob, in the form used in checkpoints of files; empty if there is no picture.
	Thumb string `json:"thumb,omitempty"`
}

// cardPrefix is the prefix of the checkpoint of a post with an address. Nothing follows it if the page could not be
// read.
const cardPrefix = "card:"

// maxCheckpoint is the maximum length of a checkpoint (the schema of a Post's status).
const maxCheckpoint = 1024

// checkpoint returns the checkpoint of a card. The description is left out if it does not fit, because JSON escapes
// lengthen some characters.
func (c *card) checkpoint() string {
	for _, fitting := range []card{*c, {Title: c.Title, Thumb: c.Thumb}} {
		data, err := json.Marshal(fitting)
		if err == nil && c.Title != "" && len(cardPrefix)+len(data) <= maxCheckpoint {
			return cardPrefix + string(data)
		}
	}
	return cardPrefix
}

// parseCard parses a checkpoint. ok is false if it is not a card's checkpoint. The title is empty if the post has no
// card.
func parseCard(checkpoint string) (c card, ok bool) {
	data, ok := strings.CutPrefix(checkpoint, cardPrefix)
	if !ok {
		return card{}, false
	}
	if err := json.Unmarshal([]byte(data), &c); err != nil || c.Thumb != "" && !isBlob(c.Thumb) {
		return card{}, true
	}
	return c, true
}

// linked returns the first https address in a text, or "" if there is none.
func linked(text string) string {
	for _, at := range links(text) {
		if link := text[at.Start:at.End]; strings.HasPrefix(strings.ToLower(link), "https://") {
			return link
		}
	}
	return ""
}

// external returns the embed of a card.
func (c *card) external(uri string) *embed {
	e := &embed{Type: "app.bsky.embed.external", External: &external{URI: uri, Title: c.Title, Description: c.Description}}
	if thumb, ok := parseBlob(c.Thumb); ok {
		e.External.Thumb = &thumb
	}
	return e
}

// prepareCard reads the page and uploads its picture. If the page cannot be read, the post is published without a card.
func (p *Platform) prepareCard(ctx context.Context, token platforms.Token, uri string) (string, *platforms.Error) {
	var c card
	page, err := p.pages.Page(ctx, uri, "text/html", maxPage)
	if err != nil || page.Type != "text/html" && page.Type != "application/xhtml+xml" {
		return c.checkpoint(), nil //nolint:nilerr // the post is published without a card, or without its picture
	}
	c, image := readMetadata(page.Body)
	at, err := page.URL.Parse(image)
	if c.Title == "" || image == "" || err != nil {
		return c.checkpoint(), nil //nolint:nilerr // the post is published without a card, or without its picture
	}
	picture, err := p.pages.Page(ctx, at.String(), "image/jpeg, image/png, image/webp", maxThumb)
	if kind := http.DetectContentType(picture.Body); err == nil && picture.Whole && slices.Contains(thumbTypes(), kind) {
		thumb, failure := p.uploadThumb(ctx, token, picture.Body, kind)
		if failure != nil {
			return "", failure
		}
		c.Thumb = thumb.id()
	}
	return c.checkpoint(), nil
}

func thumbTypes() []string { return []string{"image/jpeg", "image/png", "image/webp"} }

func (p *Platform) uploadThumb(ctx context.Context, token platforms.Token, data []byte, kind string) (blob, *platforms.Error) {
	resp, failure, err := p.authorized(ctx, token, func(c *caller) (*transport.Response, error) {
		return c.do(ctx, client.Call{
			Action: "upload", Path: uploadBlob, Timeout: uploadTimeout,
			Body: client.Body{Content: bytes.NewReader(data), Length: int64(len(data)), Type: kind},
		})
	})
	switch {
	case failure != nil:
		return blob{}, failure
	case err != nil:
		return blob{}, p.clientOf(token).Unanswered(err)
	}
	return p.uploaded(resp, "picture of the page")
}

// readMetadata returns a page's title and description, and the address of its picture, from its Open Graph metadata
// (ogp.me) or else from its HTML metadata.
func readMetadata(page []byte) (c card, image string) {
	found := map[string]string{}
	tokens := html.NewTokenizer(bytes.NewReader(page))
	for {
		switch tokens.Next() {
		case html.ErrorToken:
			if tokens.Err() == io.EOF { //nolint:errorlint // the tokenizer returns the bare value
				return cardOf(found), found["og:image"]
			}
			return card{}, ""
		case html.StartTagToken, html.SelfClosingTagToken:
			tag := tokens.Token()
			switch {
			case tag.DataAtom == atom.Body:
				return cardOf(found), found["og:image"]
			case tag.DataAtom == atom.Meta:
				readMeta(&tag, found)
			case tag.DataAtom == atom.Title && found["title"] == "" && tokens.Next() == html.TextToken:
				found["title"] = tokens.Token().Data
			}
		case html.TextToken, html.EndTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

// readMeta adds a meta element's content under its property or name. If several elements have the same name, the first
// one counts.
func readMeta(tag *html.Token, found map[string]string) {
	var name, content string
	for _, a := range tag.Attr {
		switch a.Key {
		case "property", "name":
			name = strings.ToLower(a.Val)
		case "content":
			content = a.Val
		}
	}
	if _, known := found[name]; !known && name != "" {
		found[name] = content
	}
}

func cardOf(found map[string]string) card {
	first := func(names ...string) string {
		for _, name := range names {
			if said := text.TruncateBytes(text.Fold(strings.ToValidUTF8(found[name], "")), maxCardText); said != "" {
				return said
			}
		}
		return ""
	}
	return card{Title: first("og:title", "title"), Description: first("og:description", "description")}
}
