// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"encoding/json"
	"net/http"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/faults"
)

// maxAlt is the maximum length of an alt text, in characters.
const maxAlt = 1000

// describe is POST /2/media/metadata: alt text for people who cannot see the media. The sandbox validates it but does
// not show it. Of the metadata, clients send only alt_text.
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
	if with == nil {
		with = checkMetadata(body.Metadata)
	}
	if with == nil {
		_, with = p.findMedia(account, body.ID)
	}
	p.answer(w, callMetadata, with, map[string]any{"id": body.ID, "associated_metadata": body.Metadata})
}

func checkMetadata(metadata map[string]json.RawMessage) *problem {
	var alt struct {
		Text string `json:"text"`
	}
	content, found := metadata["alt_text"]
	if !found {
		return nil
	}
	if err := json.Unmarshal(content, &alt); err != nil || alt.Text == "" || utf8.RuneCountInString(alt.Text) > maxAlt {
		return invalidBody("$.metadata.alt_text.text: must have 1 to 1000 characters")
	}
	return nil
}
