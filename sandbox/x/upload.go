// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxChunk is X's documented maximum of a chunk.
	maxChunk = 5 << 20
	// maxSegments is how many chunks an upload may have.
	maxSegments = 1000
	// maxTotal is the highest total_bytes that the schema allows.
	maxTotal = 17_179_869_184
	// maxAlt is how many characters a description may have.
	maxAlt = 1000
)

// uploadImage is POST /2/media/upload: an image in one request, as multipart or as JSON with base64.
func (p *Platform) uploadImage(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callUpload, scopeMedia)
	if !ok {
		return
	}
	content, name, with := readImage(r)
	if with != nil {
		p.fail(w, callUpload, *with)
		return
	}
	file, err := p.Blobs.Receive(bytes.NewReader(content), maxImage)
	if err != nil {
		p.failFile(w, callUpload, "an image could not be kept", "", err)
		return
	}
	now := p.Clock.Now().UTC()
	u := upload{media: media{
		Category: name, Type: file.MIMEType, Total: file.Bytes, File: &file, Finalized: now, Expires: now.Add(mediaLife),
	}}
	if of := u.category(); !slices.Contains(of.types, file.MIMEType) {
		p.fail(w, callUpload, invalidBody(fmt.Sprintf("media: the file is %s; %s takes %q", file.MIMEType, name, of.types)))
		return
	}
	if fault := mediaFault(&u); fault != "" {
		p.fail(w, callUpload, invalidBody("media: "+fault))
		return
	}
	if with := p.newMedia(account, &u); with != nil {
		p.fail(w, callUpload, *with)
		return
	}
	out := p.answerMedia(&u)
	out.Image = &imageInfo{Type: file.MIMEType, Width: file.Width, Height: file.Height}
	p.succeed(w, callUpload, http.StatusOK, map[string]any{"data": out})
}

// imageRule is the body of POST /2/media/upload as JSON.
var imageRule = object(map[string]rule{
	"media":          stringOf(1, maxChunkBody, nil),
	"media_category": oneOf("tweet_image", "dm_image"),
})

// readImage returns an image and its category.
func readImage(r *faults.Request) ([]byte, string, *problem) {
	if isMultipart(r) {
		parts, with := readParts(r, "media", "media_category")
		if with != nil {
			return nil, "", with
		}
		var bad []string
		oneOf("tweet_image", "dm_image")("media_category", string(parts["media_category"]), &bad)
		if len(parts["media"]) == 0 {
			bad = append(bad, "media: is missing but it is required")
		}
		return parts["media"], string(parts["media_category"]), complaint(bad)
	}
	body, with := readJSON(r, imageRule, "media", "media_category")
	if with != nil {
		return nil, "", with
	}
	content, err := base64.StdEncoding.DecodeString(member[string](body, "media"))
	if err != nil {
		return nil, "", complaint([]string{"$.media: is not base64: " + err.Error()})
	}
	return content, member[string](body, "media_category"), nil
}

// failFile answers that the store of files did not take something.
func (p *Platform) failFile(w http.ResponseWriter, of endpoint, what, id string, err error) {
	switch {
	case errors.Is(err, blobs.ErrTooLarge):
		p.fail(w, of, invalidBody("media: the file is larger than it may be"))
	case errors.Is(err, blobs.ErrUnknown):
		p.fail(w, of, badMedia()) // a kill between the file and its line in the journal: the client uploads it once more
	default:
		p.fail(w, of, *p.broken(what, id, err))
	}
}

// newMedia gives an upload its id and keeps it.
func (p *Platform) newMedia(owner state.Account, u *upload) *problem {
	detail, err := json.Marshal(u.media)
	if err == nil {
		// How long X works on it, and how that ends, is decided when it is finalized.
		u.Container, err = p.Store.CreateContainer(owner.Key, state.Container{Detail: detail}, 0, newID)
	}
	return p.broken("an upload could not be made", "", err)
}

// initializeRule is the body of POST /2/media/upload/initialize.
var initializeRule = object(map[string]rule{
	"media_type":        oneOf(mediaTypes...),
	"total_bytes":       integer(1, maxTotal),
	"media_category":    oneOf(categoryNames()...),
	"shared":            boolean,
	"additional_owners": list(0, 100, stringOf(1, 19, idPattern)),
})

// initialize is POST /2/media/upload/initialize.
func (p *Platform) initialize(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callInitialize, scopeMedia)
	if !ok {
		return
	}
	u, with := p.readInitialize(r)
	if with == nil {
		with = p.newMedia(account, &u)
	}
	if with != nil {
		p.fail(w, callInitialize, *with)
		return
	}
	if err := p.Blobs.Begin(partialName(u.ID)); err != nil {
		p.failFile(w, callInitialize, "an upload could not be begun", u.ID, err)
		return
	}
	p.succeed(w, callInitialize, http.StatusOK, map[string]any{"data": p.answerMedia(&u)})
}

func (p *Platform) readInitialize(r *faults.Request) (upload, *problem) {
	body, with := readJSON(r, initializeRule, "media_type", "total_bytes", "media_category")
	if with != nil {
		return upload{}, with
	}
	number := member[json.Number](body, "total_bytes")
	total, err := number.Int64()
	u := upload{media: media{
		Category: member[string](body, "media_category"), Type: member[string](body, "media_type"), Total: total,
		Expires: p.Clock.Now().UTC().Add(mediaLife),
	}}
	for _, owner := range member[[]any](body, "additional_owners") {
		id, _ := owner.(string)
		u.Owners = append(u.Owners, id)
	}
	of := u.category()
	var bad []string
	switch {
	case err != nil:
		complainf(&bad, "$.total_bytes", "is not an integer")
	case !slices.Contains(of.types, u.Type):
		complainf(&bad, "$.media_type", "%s does not go with the media_category %s, which takes %q", u.Type, u.Category, of.types)
	case total > of.limit:
		complainf(&bad, "$.total_bytes", "%d is more than the %d bytes that %s may have", total, of.limit, u.Category)
	}
	return u, complaint(bad)
}

// appendChunk is POST /2/media/upload/{id}/append.
func (p *Platform) appendChunk(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callAppend, scopeMedia)
	if !ok {
		return
	}
	parts, with := readParts(r, "segment_index", "media")
	if with != nil {
		p.fail(w, callAppend, *with)
		return
	}
	id := r.PathValue("id")
	unlock := p.growing.lock(id)
	defer unlock()
	u, with := p.findMedia(account, id)
	if with == nil {
		with = p.grow(&u, string(parts["segment_index"]), parts["media"])
	}
	if with != nil {
		p.fail(w, callAppend, *with)
		return
	}
	p.succeed(w, callAppend, http.StatusOK, map[string]any{"data": map[string]int64{"expires_at": u.Expires.Unix()}})
}

// grow adds a chunk to an upload. One that is there already may come once more, as it was: a client whose answer was lost
// sends it again.
func (p *Platform) grow(u *upload, segment string, content []byte) *problem {
	index, err := strconv.Atoi(segment)
	sum := sha256.Sum256(content)
	fresh := chunk{Bytes: int64(len(content)), Hash: base64.RawStdEncoding.EncodeToString(sum[:12])}
	var bad []string
	switch received := u.received(); {
	case err != nil || index < 0 || index >= maxSegments:
		complainf(&bad, "segment_index", "must have a value between 0 and %d", maxSegments-1)
	case len(content) == 0:
		complainf(&bad, "media", "is missing but it is required")
	case len(content) > maxChunk:
		complainf(&bad, "media", "has %d bytes; a chunk may have %d", len(content), maxChunk)
	case index < len(u.Chunks) && u.Chunks[index] == fresh:
		return nil
	case u.File != nil:
		complainf(&bad, "segment_index", "the upload is finalized")
	case index < len(u.Chunks):
		complainf(&bad, "segment_index", "segment %d is there already, with other bytes", index)
	case index > len(u.Chunks):
		complainf(&bad, "segment_index", "%d does not follow; the next one is %d", index, len(u.Chunks))
	case received+fresh.Bytes > u.Total:
		complainf(&bad, "media", "there are %d bytes then, more than the total_bytes of %d", received+fresh.Bytes, u.Total)
	default:
		return p.addChunk(u, fresh, content)
	}
	return complaint(bad)
}

func (p *Platform) addChunk(u *upload, fresh chunk, content []byte) *problem {
	at := u.received()
	err := p.Blobs.Truncate(partialName(u.ID), at) // of a chunk that a kill kept from being written down
	if err == nil {
		_, err = p.Blobs.Append(partialName(u.ID), at, bytes.NewReader(content), u.Total)
	}
	if errors.Is(err, blobs.ErrUnknown) {
		with := badMedia()
		return &with
	}
	if err != nil {
		return p.broken("a chunk could not be kept", u.ID, err)
	}
	u.Chunks = append(u.Chunks, fresh)
	return p.keepMedia(u)
}

// finalize is POST /2/media/upload/{id}/finalize. It may be asked again: it changes nothing then.
func (p *Platform) finalize(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callFinalize, scopeMedia)
	if !ok {
		return
	}
	if len(r.Content) > 0 {
		p.fail(w, callFinalize, invalidBody("The request must have no body."))
		return
	}
	id := r.PathValue("id")
	unlock := p.growing.lock(id)
	defer unlock()
	u, with := p.findMedia(account, id)
	switch {
	case with != nil:
		p.fail(w, callFinalize, *with)
		return
	case u.File == nil && u.received() != u.Total:
		p.fail(w, callFinalize, invalidBody(fmt.Sprintf(
			"Segments do not add up to provided total file size: %d of %d bytes are there.", u.received(), u.Total)))
		return
	case u.File == nil:
		file, err := p.Blobs.Finish(partialName(id))
		if err != nil {
			p.failFile(w, callFinalize, "an upload could not be finished", id, err)
			return
		}
		p.process(&u, &file, account)
		if with := p.keepMedia(&u); with != nil {
			p.fail(w, callFinalize, *with)
			return
		}
	}
	if fault := mediaFault(&u); fault != "" && !u.slow() {
		p.fail(w, callFinalize, invalidBody("media: "+fault))
		return
	}
	p.succeed(w, callFinalize, http.StatusOK, map[string]any{"data": p.answerMedia(&u)})
}

// process decides how X's work on a whole file ends, and when. On images it does no such work.
func (p *Platform) process(u *upload, file *blobs.Blob, account state.Account) {
	now := p.Clock.Now().UTC()
	u.File, u.Finalized, u.Expires = file, now, now.Add(mediaLife)
	u.Failure = account.Settings.ProcessingError
	if u.Failure == "" && mediaFault(u) != "" {
		u.Failure = invalidMedia
	}
	work := mediaWork
	if account.Settings.Processing != nil {
		work = *account.Settings.Processing
	}
	u.ReadyAt = now.Add(work)
}
