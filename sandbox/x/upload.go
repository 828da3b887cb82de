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
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxChunk is the largest chunk that X documents, in bytes.
	maxChunk = 5 << 20
	// maxSegments is the maximum number of chunks per upload.
	maxSegments = 1000
	// maxForm is the maximum size of a request that carries media, in bytes, including everything around the media.
	maxForm = 8 << 20
)

// readParts reads a body that may contain only the allowed parts, each at most once. It is multipart, or JSON with the
// media in base64: X's OpenAPI 2.167 has both, and X's own SDK sends JSON.
func readParts(r *faults.Request, allowed ...string) (map[string][]byte, *problem) {
	limited := &io.LimitedReader{R: r.Body, N: maxForm + 1}
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err == nil && media == jsonType {
		return readJSONParts(limited, allowed)
	}
	whole := *r.Request
	whole.Body = io.NopCloser(limited)
	reader, err := whole.MultipartReader()
	if err != nil {
		return nil, invalidBody("Requests with media must have content-type of multipart/form-data.")
	}
	parts := map[string][]byte{}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			return parts, nil
		}
		var content []byte
		if err == nil {
			content, err = io.ReadAll(part)
		}
		switch {
		case limited.N <= 0:
			return nil, problemFor(http.StatusRequestEntityTooLarge)
		case err != nil:
			return nil, invalidBody("The body is not valid multipart: " + err.Error())
		case !slices.Contains(allowed, part.FormName()):
			return nil, invalidBody(part.FormName() + ": is not defined in the schema and the schema does not allow additional properties")
		case parts[part.FormName()] != nil:
			return nil, invalidBody(part.FormName() + ": is there more than once")
		}
		parts[part.FormName()] = content
	}
}

// jsonType is the content type of JSON bodies.
const jsonType = "application/json"

// readJSONParts reads a JSON object that may contain only the allowed fields. Numbers and strings are kept as they are;
// media are decoded from base64.
func readJSONParts(body *io.LimitedReader, allowed []string) (map[string][]byte, *problem) {
	var fields map[string]any
	content, err := io.ReadAll(body)
	if err == nil && body.N <= 0 {
		return nil, problemFor(http.StatusRequestEntityTooLarge)
	}
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.UseNumber()
	if err == nil {
		err = decoder.Decode(&fields)
	}
	if err != nil {
		return nil, invalidBody("The body is not valid JSON: " + err.Error())
	}
	parts := map[string][]byte{}
	for name, value := range fields {
		if !slices.Contains(allowed, name) {
			return nil, invalidBody("$." + name + ": is not defined in the schema and the schema does not allow additional properties")
		}
		text := fmt.Sprint(value)
		parts[name] = []byte(text)
		if name != "media" {
			continue
		}
		if parts[name], err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, invalidBody("$.media: is not base64")
		}
	}
	return parts, nil
}

// uploadImage handles POST /2/media/upload: an image in one request.
func (p *Platform) uploadImage(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callUpload, scopeMedia)
	if !ok {
		return
	}
	u, with := p.receiveImage(r)
	if with == nil {
		with = p.newMedia(account, &u)
	}
	if with != nil {
		p.fail(w, callUpload, with)
		return
	}
	out := p.answerMedia(&u)
	out.Image = &imageInfo{Type: u.Type, Width: u.File.Width, Height: u.File.Height}
	p.answer(w, callUpload, nil, out)
}

// receiveImage stores an image. It returns a problem if X would reject it.
func (p *Platform) receiveImage(r *faults.Request) (upload, *problem) {
	parts, with := readParts(r, "media", "media_category", "additional_owners")
	switch {
	case with != nil:
		return upload{}, with
	case string(parts["media_category"]) != imageCategory:
		return upload{}, invalidBody("media_category: does not have a value in the enumeration [" + imageCategory + "]")
	case len(parts["media"]) == 0:
		return upload{}, invalidBody("media: is missing but it is required")
	}
	file, err := p.Blobs.Receive(bytes.NewReader(parts["media"]), maxImage)
	if err != nil {
		return upload{}, p.fileProblem("an image could not be kept", "", err)
	}
	now := p.Clock.Now().UTC()
	u := upload{media: media{
		Category: imageCategory, Type: file.MIMEType, Total: file.Bytes, File: &file, Finalized: now, Expires: now.Add(mediaLife),
	}}
	if of := u.category(); !slices.Contains(of.types, file.MIMEType) {
		return u, invalidBody(fmt.Sprintf("media: the file is %s; %s takes %q", file.MIMEType, imageCategory, of.types))
	}
	if fault := mediaFault(&u); fault != "" {
		return u, invalidBody("media: " + fault)
	}
	return u, nil
}

// fileProblem turns a blob store error into a problem.
func (p *Platform) fileProblem(what, id string, err error) *problem {
	switch {
	case errors.Is(err, blobs.ErrTooLarge):
		return invalidBody("media: the file is larger than it may be")
	case errors.Is(err, blobs.ErrUnknown):
		return badMedia() // a kill came between storing the file and its container: the client must upload it again
	default:
		return p.broken(what, id, err)
	}
}

// newMedia assigns an id to an upload and stores it.
func (p *Platform) newMedia(owner state.Account, u *upload) *problem {
	detail, err := json.Marshal(u.media)
	if err == nil {
		// Finalize decides how long X's processing takes and how it ends.
		u.Container, err = p.Store.CreateContainer(owner.Key, state.Container{Detail: detail}, 0, newID)
	}
	return p.broken("an upload could not be made", "", err)
}

// initialize handles POST /2/media/upload/initialize.
func (p *Platform) initialize(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callChunks, scopeMedia)
	if !ok {
		return
	}
	u, with := p.readInitialize(r)
	if with == nil {
		with = p.newMedia(account, &u)
	}
	if with == nil {
		with = p.broken("an upload could not be begun", u.ID, p.Blobs.Begin(partialName(u.ID)))
	}
	p.answer(w, callChunks, with, p.answerMedia(&u))
}

func (p *Platform) readInitialize(r *faults.Request) (upload, *problem) {
	var body struct {
		Type     string `json:"media_type"`
		Category string `json:"media_category"`
		Total    int64  `json:"total_bytes"`
	}
	if with := p.readJSON(r, &body); with != nil {
		return upload{}, with
	}
	of, known := categories()[body.Category]
	switch {
	case !known:
		return upload{}, invalidBody("$.media_category: is missing, or does not have a value in the enumeration")
	case !slices.Contains(of.types, body.Type):
		return upload{}, invalidBody(fmt.Sprintf("$.media_type: %q does not go with the media_category %s, which takes %q", body.Type, body.Category, of.types))
	case body.Total < 1 || body.Total > of.limit:
		return upload{}, invalidBody(fmt.Sprintf("$.total_bytes: must have a value between 1 and %d", of.limit))
	}
	return upload{media: media{
		Category: body.Category, Type: body.Type, Total: body.Total, Expires: p.Clock.Now().UTC().Add(mediaLife),
	}}, nil
}

// appendChunk handles POST /2/media/upload/{id}/append.
func (p *Platform) appendChunk(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callChunks, scopeMedia)
	if !ok {
		return
	}
	parts, with := readParts(r, "segment_index", "media")
	if with != nil {
		p.fail(w, callChunks, with)
		return
	}
	id := r.PathValue("id")
	unlock := p.growing.Lock(id)
	defer unlock()
	u, with := p.findMedia(account, id)
	if with == nil {
		with = p.grow(&u, string(parts["segment_index"]), parts["media"])
	}
	p.answer(w, callChunks, with, map[string]int64{"expires_at": u.Expires.Unix()})
}

// grow adds a chunk to an upload. It accepts the same chunk again if the content is the same: a client that did not
// receive the response sends it again.
func (p *Platform) grow(u *upload, segment string, content []byte) *problem {
	index, err := strconv.Atoi(segment)
	sum := sha256.Sum256(content)
	fresh := chunk{Bytes: int64(len(content)), Hash: base64.RawStdEncoding.EncodeToString(sum[:12])}
	bad := func(part, format string, args ...any) *problem {
		return invalidBody(part + ": " + fmt.Sprintf(format, args...))
	}
	switch received := u.received(); {
	case err != nil || index < 0 || index >= maxSegments:
		return bad("segment_index", "must have a value between 0 and %d", maxSegments-1)
	case len(content) == 0:
		return bad("media", "is missing but it is required")
	case len(content) > maxChunk:
		return bad("media", "has %d bytes; a chunk may have %d", len(content), maxChunk)
	case index < len(u.Chunks) && u.Chunks[index] == fresh:
		return nil
	case u.File != nil:
		return bad("segment_index", "the upload is finalized")
	case index < len(u.Chunks):
		return bad("segment_index", "segment %d is there already, with other bytes", index)
	case index > len(u.Chunks):
		return bad("segment_index", "%d does not follow; the next one is %d", index, len(u.Chunks))
	case received+fresh.Bytes > u.Total:
		return bad("media", "there are %d bytes then, more than the total_bytes of %d", received+fresh.Bytes, u.Total)
	default:
		return p.addChunk(u, fresh, content)
	}
}

func (p *Platform) addChunk(u *upload, fresh chunk, content []byte) *problem {
	at := u.received()
	err := p.Blobs.Truncate(partialName(u.ID), at) // removes a chunk that was written but not recorded because of a kill
	if err == nil {
		_, err = p.Blobs.Append(partialName(u.ID), at, bytes.NewReader(content), u.Total)
	}
	if err != nil {
		return p.fileProblem("a chunk could not be kept", u.ID, err)
	}
	u.Chunks = append(u.Chunks, fresh)
	return p.saveMedia(u)
}

// finalize handles POST /2/media/upload/{id}/finalize. It is idempotent. The body is ignored: twitter-api-v2 sends {}.
func (p *Platform) finalize(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callChunks, scopeMedia)
	if !ok {
		return
	}
	unlock := p.growing.Lock(r.PathValue("id"))
	defer unlock()
	u, with := p.findMedia(account, r.PathValue("id"))
	switch {
	case with != nil:
	case u.File == nil:
		with = p.finish(&u, account)
	}
	if with == nil && !u.slow() {
		if fault := mediaFault(&u); fault != "" {
			with = invalidBody("media: " + fault)
		}
	}
	p.answer(w, callChunks, with, p.answerMedia(&u))
}

// finish assembles the file from an upload's chunks.
func (p *Platform) finish(u *upload, account state.Account) *problem {
	if u.received() != u.Total {
		return invalidBody(fmt.Sprintf(
			"Segments do not add up to provided total file size: %d of %d bytes are there.", u.received(), u.Total))
	}
	file, err := p.Blobs.Finish(partialName(u.ID))
	if err != nil {
		return p.fileProblem("an upload could not be finished", u.ID, err)
	}
	p.process(u, &file, account)
	return p.saveMedia(u)
}

// process decides how X's processing of a complete file ends, and when. Images are not processed.
func (p *Platform) process(u *upload, file *blobs.Blob, account state.Account) {
	now := p.Clock.Now().UTC()
	u.File, u.Finalized, u.Expires = file, now, now.Add(mediaLife)
	u.Failure = account.Settings.ProcessingError
	if u.Failure == "" && mediaFault(u) != "" {
		u.Failure = invalidMedia
	}
	u.ReadyAt = now.Add(account.Settings.Work(mediaWork))
}

// noPage returns the error for the STATUS of an image: only media with processing_info have a state
// (plhery/node-twitter-api-v2#336, tweepy/tweepy#1851).
func noPage() *problem {
	out := problemFor(http.StatusNotFound)
	out.Detail = "Sorry, that page does not exist"
	return out
}

// mediaStatus handles GET /2/media/upload?command=STATUS&media_id=…. The command may be omitted (OpenAPI 2.167).
func (p *Platform) mediaStatus(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, callStatus, scopeMedia)
	if !ok {
		return
	}
	query := newQuery(r.URL.Query())
	command, id := query.get("command"), query.get("media_id")
	query.rejectUnknown()
	if command != "STATUS" && command != "" {
		query.reject("command", command, "is not one of [STATUS]")
	}
	if len(query.bad) > 0 {
		p.fail(w, callStatus, invalid(query.bad...))
		return
	}
	u, with := p.findMedia(account, id)
	switch {
	case with != nil:
	case !u.slow():
		with = noPage()
	case u.File == nil:
		with = invalidBody("The media with id [" + id + "] has not been finalized.")
	}
	p.answer(w, callStatus, with, p.answerMedia(&u))
}
