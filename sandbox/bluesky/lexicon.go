// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"encoding/json"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rivo/uniseg"
	"golang.org/x/text/language"

	"github.com/herald-social/herald/sandbox/state"
)

// record is a post (lexicon app.bsky.feed.post). Labels, and the entities that facets have replaced, are not simulated.
type record struct {
	Type      string          `json:"$type"`
	Text      *string         `json:"text"`
	Facets    []facet         `json:"facets"`
	Reply     *reply          `json:"reply"`
	Embed     json.RawMessage `json:"embed"`
	Langs     []string        `json:"langs"`
	Tags      []string        `json:"tags"`
	CreatedAt string          `json:"createdAt"`
}

// facet is a link in text (lexicon app.bsky.richtext.facet).
type facet struct {
	Type  string `json:"$type"`
	Index struct {
		Type  string `json:"$type"`
		Start *int   `json:"byteStart"`
		End   *int   `json:"byteEnd"`
	} `json:"index"`
	Features []feature `json:"features"`
}

// feature is an address, a mention or a hashtag.
type feature struct {
	Type string `json:"$type"`
	URI  string `json:"uri"`
	DID  string `json:"did"`
	Tag  string `json:"tag"`
}

type reply struct {
	Type   string    `json:"$type"`
	Root   strongRef `json:"root"`
	Parent strongRef `json:"parent"`
}

// strongRef refers to one version of a record (lexicon com.atproto.repo.strongRef).
type strongRef struct {
	Type string `json:"$type"`
	URI  string `json:"uri"`
	CID  string `json:"cid"`
}

// The limits of the lexicon.
const (
	maxGraphemes    = 300
	maxBytes        = 3000
	maxLanguages    = 3
	maxTags         = 8
	maxTagGraphemes = 64
	maxTagBytes     = 640
)

// wrong returns the error for a record that its lexicon does not allow (packages/pds/src/repo/prepare.ts).
func wrong(text string) *problem { return invalid("Invalid " + posts + " record: " + text) }

// draft reads a record. It returns the files that it refers to, and a problem if the server would not create it. The
// server does not check what facets and replies refer to; the sandbox does, because such a post would not be displayed
// as intended.
func (p *Platform) draft(account state.Account, content json.RawMessage) (state.Draft, []state.Container, *problem) {
	var post record
	if with := p.parse(content, &post); with != nil {
		return state.Draft{}, nil, wrong(with.text)
	}
	if post.Type != "" && post.Type != posts {
		return state.Draft{}, nil, invalid("Invalid $type: expected " + posts + ", got " + post.Type)
	}
	with := post.check()
	if with == nil {
		with = checkFacets(*post.Text, post.Facets)
	}
	draft := state.Draft{}
	if with == nil {
		draft.Text = *post.Text
		with = p.answer(&draft, post.Reply)
	}
	if with != nil {
		return draft, nil, with
	}
	files, with := p.embed(account, &draft, post.Embed)
	if with != nil {
		return draft, nil, with
	}
	var compact bytes.Buffer
	err := json.Compact(&compact, content)
	if err == nil {
		draft.Detail, err = json.Marshal(detail{CID: recordCID(compact.Bytes()), Record: compact.Bytes()})
	}
	return draft, files, p.broken("a post could not be encoded", account.ID, err)
}

// check validates the fields that have no parts.
func (r *record) check() *problem {
	switch {
	case r.Text == nil:
		return wrong(`Missing required key "text" at $.record`)
	case len(*r.Text) > maxBytes:
		return wrong("string too big (maximum 3000) at $.record.text")
	case uniseg.GraphemeClusterCount(*r.Text) > maxGraphemes:
		return wrong("grapheme too big (maximum 300) at $.record.text")
	case len(r.Langs) > maxLanguages:
		return wrong("array too big (maximum 3) at $.record.langs")
	case len(r.Tags) > maxTags:
		return wrong("array too big (maximum 8) at $.record.tags")
	}
	if _, err := time.Parse(time.RFC3339Nano, r.CreatedAt); err != nil {
		return wrong("Invalid datetime at $.record.createdAt")
	}
	for _, tag := range r.Langs {
		if _, err := language.Parse(tag); err != nil {
			return wrong("Invalid language at $.record.langs")
		}
	}
	for _, tag := range r.Tags {
		if !isTag(tag) {
			return wrong("Invalid tag at $.record.tags")
		}
	}
	return nil
}

func isTag(tag string) bool {
	return tag != "" && !strings.HasPrefix(tag, "#") && len(tag) <= maxTagBytes && uniseg.GraphemeClusterCount(tag) <= maxTagGraphemes
}

var isDID = regexp.MustCompile(`^did:[a-z]+:[a-zA-Z0-9._:%-]*[a-zA-Z0-9._-]$`)

// checkFacets validates the facets of text. Bluesky ignores a facet outside the text, within a character, or across
// another one (packages/api/src/rich-text/rich-text.ts).
func checkFacets(text string, facets []facet) *problem {
	last := 0
	for i := range facets {
		f := &facets[i]
		start, end := f.Index.Start, f.Index.End
		switch {
		case start == nil || end == nil || *start < 0:
			return wrong("Invalid index at $.record.facets")
		case *start < last || !displays(text, *start, *end) || len(f.Features) == 0:
			return wrong("Bluesky ignores one of the facets")
		}
		last = *end
		for j := range f.Features {
			if !f.Features[j].valid() {
				return wrong("Invalid feature at $.record.facets: " + f.Features[j].Type)
			}
		}
	}
	return nil
}

// displays reports whether two indexes enclose a part of text that consists of whole characters.
func displays(text string, start, end int) bool {
	return start < end && end <= len(text) && utf8.ValidString(text[:start]) && utf8.ValidString(text[start:end])
}

func (f *feature) valid() bool {
	switch f.Type {
	case "app.bsky.richtext.facet#link":
		return isURI(f.URI) && f.DID+f.Tag == ""
	case "app.bsky.richtext.facet#mention":
		return isDID.MatchString(f.DID) && f.URI+f.Tag == ""
	case "app.bsky.richtext.facet#tag":
		return isTag(f.Tag) && f.URI+f.DID == ""
	default:
		return false
	}
}

func isURI(text string) bool {
	address, err := url.Parse(text)
	return err == nil && address.Scheme != "" && address.Host != ""
}

// answer finds the posts that a draft replies to. Both must exist, and the parent must belong to the root.
func (p *Platform) answer(draft *state.Draft, to *reply) *problem {
	if to == nil {
		return nil
	}
	root, rooted := p.postAt(to.Root.URI)
	parent, found := p.postAt(to.Parent.URI)
	switch {
	case to.Root.CID == "" || to.Parent.CID == "":
		return wrong("Invalid CID at $.record.reply")
	case !rooted || !found || detailOf(root).CID != to.Root.CID || detailOf(parent).CID != to.Parent.CID || parent.Root != root.ID:
		return wrong("the post that it replies to is not on this server")
	}
	draft.InReplyTo, draft.Root = parent.ID, root.ID
	return nil
}
