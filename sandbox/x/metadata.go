// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// maxAlt is the maximum length of an alt text, in characters.
const maxAlt = 1000

// describe handles POST /2/media/metadata: alt text for people who cannot see the media. Clients send no metadata other
// than alt_text. X replaces an earlier alt text.
func (p *Platform) describe(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callMetadata, scopeMedia)
	if !ok {
		return
	}
	var body struct {
		ID       string                     `json:"id"`
		Metadata map[string]json.RawMessage `json:"metadata"`
	}
	with := p.readJSON(r, &body)
	var altText string
	if with == nil {
		altText, with = readAltText(body.Metadata)
	}
	if with == nil {
		with = p.setAltText(account, body.ID, altText)
	}
	p.answer(w, callMetadata, with, map[string]any{"id": body.ID, "associated_metadata": body.Metadata})
}

// setAltText stores an upload's alt text, which appears on posts created later.
func (p *Platform) setAltText(account state.Account, id, altText string) *problem {
	unlock := p.growing.Lock(id)
	defer unlock()
	u, with := p.findMedia(account, id)
	if with != nil || altText == "" {
		return with
	}
	u.AltText = altText
	return p.saveMedia(&u)
}

// readAltText returns the alt text in the metadata, or "" if there is none.
func readAltText(metadata map[string]json.RawMessage) (string, *problem) {
	var alt struct {
		Text string `json:"text"`
	}
	content, found := metadata["alt_text"]
	if !found {
		return "", nil
	}
	if err := json.Unmarshal(content, &alt); err != nil || alt.Text == "" || utf8.RuneCountInString(alt.Text) > maxAlt {
		return "", invalidBody("$.metadata.alt_text.text: must have 1 to 1000 characters")
	}
	return alt.Text, nil
}
