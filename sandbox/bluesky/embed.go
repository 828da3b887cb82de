// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"encoding/json"
	"strings"

	"github.com/herald-social/herald/sandbox/state"
)

// images is the embed of a post with images (lexicon app.bsky.embed.images).
type images struct {
	Type   string `json:"$type"`
	Images []struct {
		Type   string  `json:"$type"`
		Image  *blob   `json:"image"`
		Alt    *string `json:"alt"`
		Aspect *aspect `json:"aspectRatio"`
	} `json:"images"`
}

// video is the embed of a post with a video (lexicon app.bsky.embed.video). Captions are not simulated.
type video struct {
	Type   string  `json:"$type"`
	Video  *blob   `json:"video"`
	Alt    string  `json:"alt"`
	Aspect *aspect `json:"aspectRatio"`
}

// external is a link card (lexicon app.bsky.embed.external).
type external struct {
	Type     string `json:"$type"`
	External struct {
		Type        string  `json:"$type"`
		URI         string  `json:"uri"`
		Title       *string `json:"title"`
		Description *string `json:"description"`
		Thumb       *blob   `json:"thumb"`
	} `json:"external"`
}

// aspect is the shape of an image or a video (lexicon app.bsky.embed.defs).
type aspect struct {
	Type   string `json:"$type"`
	Width  int    `json:"width"`
	Height int    `json:"height"`
}

func (a *aspect) valid() bool { return a == nil || a.Width >= 1 && a.Height >= 1 }

// The limits of the lexicons.
const (
	maxImages     = 4
	maxImageBytes = 2_000_000
	maxVideoBytes = 300_000_000
	maxThumbBytes = 1_000_000
)

// embed adds an embed to a draft, and returns its files.
func (p *Platform) embed(account state.Account, draft *state.Draft, content json.RawMessage) ([]state.Container, *problem) {
	if len(content) == 0 {
		return nil, nil
	}
	var kind struct {
		Type string `json:"$type"`
	}
	if err := json.Unmarshal(content, &kind); err != nil {
		return nil, wrong("Expected an object at $.record.embed")
	}
	switch kind.Type {
	case "app.bsky.embed.images":
		return p.embedImages(account, draft, content)
	case "app.bsky.embed.video":
		return p.embedVideo(account, draft, content)
	case "app.bsky.embed.external":
		return p.embedExternal(account, content)
	default:
		return nil, wrong("the embed " + kind.Type + " is not simulated")
	}
}

func (p *Platform) embedImages(account state.Account, draft *state.Draft, content json.RawMessage) ([]state.Container, *problem) {
	var in images
	if with := p.parse(content, &in); with != nil {
		return nil, wrong(with.text)
	}
	if len(in.Images) == 0 || len(in.Images) > maxImages {
		return nil, wrong("array too big (maximum 4), or empty, at $.record.embed.images")
	}
	var files []state.Container
	for i := range in.Images {
		of := &in.Images[i]
		if of.Alt == nil || !of.Aspect.valid() {
			return nil, wrong("Missing required key \"alt\", or an invalid aspectRatio, at $.record.embed.images")
		}
		file, with := p.referred(account, of.Image, "image/", maxImageBytes)
		if with != nil {
			return nil, with
		}
		files = append(files, file)
		draft.Media = append(draft.Media, file.Media[0].Described(*of.Alt))
	}
	return files, nil
}

func (p *Platform) embedVideo(account state.Account, draft *state.Draft, content json.RawMessage) ([]state.Container, *problem) {
	var in video
	if with := p.parse(content, &in); with != nil {
		return nil, wrong(with.text)
	}
	if !in.Aspect.valid() {
		return nil, wrong("Invalid aspectRatio at $.record.embed")
	}
	file, with := p.referred(account, in.Video, "video/mp4", maxVideoBytes)
	if with != nil {
		return nil, with
	}
	draft.Media = []state.Media{file.Media[0].Described(in.Alt)}
	return []state.Container{file}, nil
}

func (p *Platform) embedExternal(account state.Account, content json.RawMessage) ([]state.Container, *problem) {
	var in external
	if with := p.parse(content, &in); with != nil {
		return nil, wrong(with.text)
	}
	card := &in.External
	if !isURI(card.URI) || card.Title == nil || card.Description == nil {
		return nil, wrong("Missing required key, or an invalid uri, at $.record.embed.external")
	}
	if card.Thumb == nil {
		return nil, nil
	}
	file, with := p.referred(account, card.Thumb, "image/", maxThumbBytes)
	if with != nil {
		return nil, with
	}
	return []state.Container{file}, nil
}

// referred returns the file that a record refers to. kind is the prefix of its media type, and most its maximum size in
// bytes.
func (p *Platform) referred(account state.Account, to *blob, kind string, most int64) (state.Container, *problem) {
	switch {
	case to == nil || to.Type != "blob" || to.Ref.Link == "":
		return state.Container{}, wrong("Expected a blob at $.record.embed")
	case !strings.HasPrefix(to.MIME, kind):
		return state.Container{}, wrong("Expected \"" + kind + "\" at $.record.embed, got " + to.MIME)
	case to.Size > most:
		return state.Container{}, wrong("blob too big at $.record.embed")
	}
	file, found := p.file(account.ID, to.Ref.Link)
	switch {
	case !found:
		return file, named("BlobNotFound", "Could not find blob: "+to.Ref.Link)
	case file.Media[0].MIMEType != to.MIME:
		return file, named("InvalidMimeType", "Referenced Mimetype does not match stored blob. Expected: "+file.Media[0].MIMEType+", Got: "+to.MIME)
	case file.Media[0].Bytes != to.Size:
		return file, named("InvalidSize", "Referenced Size does not match stored blob")
	default:
		return file, nil
	}
}
