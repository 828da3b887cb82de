// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
	"github.com/herald-social/herald/platforms/internal/textlinks"
)

// facet is a link in text (lexicon app.bsky.richtext.facet). Its position is counted in UTF-8 bytes.
type facet struct {
	Index    byteSlice `json:"index"`
	Features []feature `json:"features"`
}

type byteSlice struct {
	Start int `json:"byteStart"`
	End   int `json:"byteEnd"`
}

// feature is one of the types below, with its value.
type feature struct {
	Type string `json:"$type"`
	URI  string `json:"uri,omitempty"`
	DID  string `json:"did,omitempty"`
	Tag  string `json:"tag,omitempty"`
}

const (
	linkFeature    = "app.bsky.richtext.facet#link"
	mentionFeature = "app.bsky.richtext.facet#mention"
	tagFeature     = "app.bsky.richtext.facet#tag"
)

const (
	// maxTagGraphemes and maxTagBytes bound a hashtag without the # (lexicon app.bsky.richtext.facet).
	maxTagGraphemes = 64
	maxTagBytes     = 640
	// maxHandle is the maximum length of a handle (AT Protocol, "Handle").
	maxHandle = 253
)

// mentions matches an @ and a handle: a domain of at least two labels, the last of which begins with a letter (AT
// Protocol, "Handle").
var mentions = textlinks.Pattern{
	Match: regexp.MustCompile(`@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?`),
	Accept: func(before, _ string) bool {
		return !textlinks.EndsInWord(before) && !strings.HasSuffix(before, "/") && !strings.HasSuffix(before, ".")
	},
}

// links returns the addresses, mentions and hashtags in text. Any handle counts as a mention, whether or not it
// exists.
func links(text string) []platforms.Link {
	found := textlinks.Find(text, nil, textlinks.Addresses, mentions, textlinks.Hashtags)
	return slices.DeleteFunc(found, func(at platforms.Link) bool { return !valid(text[at.Start:at.End]) })
}

func valid(link string) bool {
	if tag, isTag := cutTag(link); isTag {
		return len(tag) <= maxTagBytes && graphemes(tag) <= maxTagGraphemes
	}
	return !strings.HasPrefix(link, "@") || len(link) <= maxHandle+1
}

// cutTag returns a hashtag without the #.
func cutTag(link string) (tag string, isTag bool) {
	if tag, isTag = strings.CutPrefix(link, "#"); isTag {
		return tag, true
	}
	return strings.CutPrefix(link, "＃")
}

// facets returns the facets of text. resolve returns a handle's DID, or "" if the handle does not exist; its mention
// then remains plain text.
func facets(text string, resolve func(handle string) (did string, failure *platforms.Error)) ([]facet, *platforms.Error) {
	var all []facet
	for _, at := range links(text) {
		f := feature{Type: linkFeature}
		link := text[at.Start:at.End]
		tag, isTag := cutTag(link)
		handle, isMention := strings.CutPrefix(link, "@")
		switch {
		case isTag:
			f = feature{Type: tagFeature, Tag: tag}
		case isMention:
			did, failure := resolve(strings.ToLower(handle))
			if failure != nil {
				return nil, failure
			}
			if did == "" {
				continue
			}
			f = feature{Type: mentionFeature, DID: did}
		case strings.HasPrefix(strings.ToLower(link), "http"):
			f.URI = link
		default:
			f.URI = "https://" + link
		}
		all = append(all, facet{Index: byteSlice{at.Start, at.End}, Features: []feature{f}})
	}
	return all, nil
}

// resolveHandle returns the DID of a handle, or "" if the server cannot resolve it.
func (p *Platform) resolveHandle(ctx context.Context, token platforms.Token, handle string) (string, *platforms.Error) {
	resp, failure := p.read(ctx, "resolve_handle", "/xrpc/com.atproto.identity.resolveHandle?"+url.Values{"handle": {handle}}.Encode(), token)
	switch {
	case failure != nil:
		return "", failure
	case resp.Status == http.StatusBadRequest && errorName(resp) != "":
		return "", nil
	case resp.Status != http.StatusOK:
		failure, _ := p.classify(resp)
		failure.Class = platforms.ClassTransient
		return "", failure
	}
	found, _ := jsondoc.Decode[session](resp.Body)
	return found.DID.String(), nil
}
