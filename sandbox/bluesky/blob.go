// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxBlob is the maximum size of an upload, which is the server's setting (PDS_BLOB_UPLOAD_LIMIT).
	maxBlob = 300_000_000
	// blobLife is how long a file without a post is kept (AT Protocol, "Blobs": at least an hour).
	blobLife = time.Hour
)

// blob refers to an uploaded file (AT Protocol, "Data Model").
type blob struct {
	Type string  `json:"$type"`
	Ref  blobRef `json:"ref"`
	MIME string  `json:"mimeType"`
	Size int64   `json:"size"`
}

type blobRef struct {
	Link string `json:"$link"`
}

// upload is the stored data of a file.
type upload struct {
	// At is when the file was last uploaded.
	At time.Time `json:"at"`
	// Used is true once a post has used the file.
	Used bool `json:"used,omitempty"`
}

func uploadOf(c state.Container) upload {
	var out upload
	_ = json.Unmarshal(c.Detail, &out) // this package encoded it
	return out
}

// uploadBlob implements com.atproto.repo.uploadBlob. The type of a file is read from its content, and from the request
// only if the content does not show it (packages/pds/src/actor-store/blob/transactor.ts).
func (p *Platform) uploadBlob(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r)
	if !ok {
		return
	}
	declared, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		p.fail(w, invalid("Request encoding (Content-Type) required but not provided"))
		return
	}
	received, err := p.Blobs.Receive(r.Body, maxBlob)
	switch {
	case errors.Is(err, blobs.ErrTooLarge):
		p.fail(w, problemFor(http.StatusRequestEntityTooLarge))
		return
	case err != nil:
		p.fail(w, invalid("the body is incomplete"))
		return
	}
	if !strings.HasPrefix(received.MIMEType, "image/") && !strings.HasPrefix(received.MIMEType, "video/") {
		received.MIMEType = declared
	}
	made, err := p.storeUpload(account, simulator.MediaOf(received))
	if with := p.broken("a file could not be kept", account.ID, err); with != nil {
		p.fail(w, with)
		return
	}
	p.write(w, http.StatusOK, map[string]any{"blob": made})
}

// storeUpload records an account's upload. The same bytes are the same file, which is then kept longer.
func (p *Platform) storeUpload(account state.Account, file state.Media) (blob, error) {
	made := blob{Type: "blob", Ref: blobRef{fileCID(file.SHA256)}, MIME: file.MIMEType, Size: file.Bytes}
	unlock := p.writing.Lock(account.ID)
	defer unlock()
	earlier, found := p.file(account.ID, made.Ref.Link)
	detail, err := json.Marshal(upload{At: p.Clock.Now().UTC(), Used: uploadOf(earlier).Used})
	if err != nil {
		return made, err
	}
	if found { // the type of the first upload remains
		_, err = p.Store.ChangeContainer(Name, earlier.ID, func(c *state.Container) { c.Detail = detail })
		return made, err
	}
	id := fileID(account.ID, made.Ref.Link)
	_, err = p.Store.CreateContainer(account.Key, state.Container{Media: []state.Media{file}, Detail: detail}, 0, func(state.Stamp) string { return id })
	return made, err
}

// fileID returns the id of an account's file in the store: every account has its own.
func fileID(did, cid string) string { return did + "/" + cid }

// file returns an account's file, unless it was deleted because no post has it.
func (p *Platform) file(did, cid string) (state.Container, bool) {
	c, found := p.Store.Container(Name, fileID(did, cid))
	kept := uploadOf(c)
	return c, found && (kept.Used || p.Clock.Now().Before(kept.At.Add(blobLife)))
}

// use marks files as used by a post.
func (p *Platform) use(files []state.Container) error {
	var failed error
	for _, file := range files {
		kept := uploadOf(file)
		kept.Used = true
		detail, err := json.Marshal(kept)
		if err == nil {
			_, err = p.Store.ChangeContainer(Name, file.ID, func(c *state.Container) { c.Detail = detail })
		}
		failed = cmp.Or(failed, err)
	}
	return failed
}

// getBlob implements com.atproto.sync.getBlob, which is public. A file without a post is not served.
func (p *Platform) getBlob(w http.ResponseWriter, r *faults.Request) {
	query, with := p.params(r, "did", "cid")
	file, found := p.file(query.Get("did"), query.Get("cid"))
	switch {
	case with != nil:
		p.fail(w, with)
		return
	case !found || !uploadOf(file).Used:
		p.fail(w, invalid("Blob not found"))
		return
	}
	content, err := p.Blobs.Open(file.Media[0].SHA256)
	if with := p.broken("a file could not be read", file.ID, err); with != nil {
		p.fail(w, with)
		return
	}
	defer func() { _ = content.Close() }() // it was only read
	h := w.Header()
	h.Set("Content-Type", file.Media[0].MIMEType)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "default-src 'none'; sandbox")
	http.ServeContent(w, r.Request, "", time.Time{}, content)
}
