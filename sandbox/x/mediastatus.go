// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"net/http"

	"github.com/herald-social/herald/sandbox/faults"
)

// mediaStatus is GET /2/media/upload?command=STATUS&media_id=….
func (p *Platform) mediaStatus(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callStatus, scopeMedia)
	if !ok {
		return
	}
	query := newQuery(r.URL.Query())
	command, id := query.get("command"), query.get("media_id")
	query.end()
	if command != "STATUS" {
		query.reject("command", command, "is not one of [STATUS]")
	}
	if !idPattern.MatchString(id) {
		query.reject("media_id", id, "is not a valid media id")
	}
	if len(query.bad) > 0 {
		p.fail(w, callStatus, invalid(query.bad...))
		return
	}
	u, with := p.findMedia(account, id)
	if with == nil && u.File == nil {
		with = complaint([]string{"The media with id [" + id + "] has not been finalized."})
	}
	if with != nil {
		p.fail(w, callStatus, *with)
		return
	}
	p.succeed(w, callStatus, http.StatusOK, map[string]any{"data": p.answerMedia(&u)})
}

// altText is how a description comes and goes.
type altText struct {
	AltText struct {
		Text string `json:"text"`
	} `json:"alt_text"`
}

// metadataRule is the body of POST /2/media/metadata.
var metadataRule = object(map[string]rule{
	"id": stringOf(1, 19, idPattern),
	"metadata": object(map[string]rule{
		"alt_text": object(map[string]rule{"text": stringOf(1, maxAlt, nil)}),
	}),
})

// describe is POST /2/media/metadata.
func (p *Platform) describe(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callMetadata, scopeMedia)
	if !ok {
		return
	}
	body, with := readJSON(r, metadataRule, "id", "metadata")
	text := member[string](body, "metadata", "alt_text", "text")
	if with == nil && text == "" {
		with = complaint([]string{"$.metadata.alt_text.text: is missing but it is required"})
	}
	if with != nil {
		p.fail(w, callMetadata, *with)
		return
	}
	id := member[string](body, "id")
	unlock := p.growing.lock(id)
	defer unlock()
	u, with := p.findMedia(account, id)
	if with == nil {
		u.Alt = text
		with = p.keepMedia(&u)
	}
	if with != nil {
		p.fail(w, callMetadata, *with)
		return
	}
	var said altText
	said.AltText.Text = text
	p.succeed(w, callMetadata, http.StatusOK, map[string]any{"data": map[string]any{"id": id, "associated_metadata": said}})
}
