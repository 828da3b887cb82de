// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"fmt"
	"slices"

	"github.com/herald-social/herald/sandbox/state"
)

// attachment is a media of a post, for reading back.
type attachment struct {
	ID         string `json:"id"`
	Key        string `json:"media_key"`
	Kind       string `json:"type"`
	Width      int    `json:"width"`
	Height     int    `json:"height"`
	DurationMS int64  `json:"duration_ms,omitempty"`
	Alt        string `json:"alt_text,omitempty"`
}

// attach adds to a draft the media that a body names, or says why X would refuse them.
func (p *Platform) attach(draft *state.Draft, body any, author state.Account) ([]attachment, *problem) {
	var (
		out  []attachment
		used []upload
	)
	for _, value := range member[[]any](body, "media", "media_ids") {
		id, _ := value.(string)
		u, with := p.attachable(author, id)
		if with != nil {
			return nil, with
		}
		if slices.ContainsFunc(used, func(other upload) bool { return other.ID == id }) {
			return nil, complaint([]string{"$.media.media_ids: the id " + id + " is there twice"})
		}
		used = append(used, u)
		draft.Media = append(draft.Media, state.Media{SHA256: u.File.SHA256, Bytes: u.File.Bytes, MIMEType: u.File.MIMEType})
		out = append(out, attachment{
			ID: u.ID, Key: u.key(), Kind: u.category().kind, Width: u.File.Width, Height: u.File.Height,
			DurationMS: u.File.Duration.Milliseconds(), Alt: u.Alt,
		})
	}
	if len(out) == 0 {
		return nil, nil
	}
	if with := checkAttached(used); with != nil {
		return nil, with
	}
	// X's own check for duplicates is known of texts only: a post with media may be repeated, and then is there twice.
	draft.DuplicateWindow = 0
	if preview := member[string](body, "media", "preview_media_id"); preview != "" {
		if u, with := p.attachable(author, preview); with != nil || u.category().kind != kindPhoto {
			return nil, complaint([]string{"$.media.preview_media_id: is not an image that can be attached"})
		}
	}
	return out, nil
}

// attachable returns an upload of which X has made all that it will, for its owner to attach.
func (p *Platform) attachable(author state.Account, id string) (upload, *problem) {
	u, with := p.findMedia(author, id)
	if with != nil {
		return u, with
	}
	if u.File == nil || !u.slow() && mediaFault(&u) != "" {
		bad := badMedia()
		return u, &bad
	}
	if now := p.processing(&u); now != nil && now.State != stateSucceeded {
		bad := invalidBody(fmt.Sprintf("Your media IDs are invalid. The processing of media %s is %s.", id, now.State))
		return u, &bad
	}
	return u, nil
}

// checkAttached applies what X says about media together, and about those that no post takes.
func checkAttached(used []upload) *problem {
	for _, u := range used {
		of := u.category()
		switch {
		case of.direct, of.kind == kindSubtitles, of.kind != kindPhoto && len(used) > 1:
			with := forbidden(notPermitted)
			return &with
		case of.kind == kindVideo && u.File.Duration > maxVideoTime:
			with := forbidden(fmt.Sprintf("The video is longer than allowed: %v is the most.", maxVideoTime))
			return &with
		}
	}
	return nil
}
