// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mastodon

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// mediaLife is how long a file without a post is kept (app/lib/vacuum/media_attachments_vacuum.rb).
	mediaLife = 24 * time.Hour
	// videoWork is the default processing time of a video.
	videoWork = time.Second
)

// media is the stored data of a file.
type media struct {
	Kind   string  `json:"kind"`
	Width  int     `json:"width,omitempty"`
	Height int     `json:"height,omitempty"`
	FocusX float64 `json:"focus_x,omitempty"`
	FocusY float64 `json:"focus_y,omitempty"`
}

const (
	kindImage = "image"
	kindVideo = "video"
)

func mediaOf(c state.Container) media {
	var out media
	_ = json.Unmarshal(c.Detail, &out) // this package encoded it
	return out
}

// received are the parts of an upload.
type received struct {
	file        *blobs.Blob
	description string
	focus       string
}

// upload handles POST /api/v2/media and its synchronous predecessor. An image is processed before the response.
func (p *Platform) upload(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, "write", "write:media")
	if !ok {
		return
	}
	parts, with := p.receive(r)
	if with != nil {
		p.fail(w, with)
		return
	}
	made, with := p.newMedia(account, parts)
	if with != nil {
		p.fail(w, with)
		return
	}
	status := http.StatusOK
	if p.busy(made) {
		status = http.StatusAccepted
	}
	p.write(w, status, p.attachment(r.Request, made))
}

func (p *Platform) newMedia(account state.Account, parts received) (state.Container, *problem) {
	m, with := inspect(parts.file)
	if with == nil {
		with = setFocus(&m, parts.focus)
	}
	if with == nil && utf8.RuneCountInString(parts.description) > maxDescription {
		with = notValid(fmt.Sprintf("Description is too long (maximum is %d characters)", maxDescription))
	}
	if with != nil {
		return state.Container{}, with
	}
	detail, err := json.Marshal(m)
	if err != nil {
		return state.Container{}, p.broken("a file could not be encoded", "", err)
	}
	fresh := state.Container{
		AltText: strings.TrimSpace(parts.description), Detail: detail, Media: []state.Media{simulator.MediaOf(*parts.file)},
	}
	if m.Kind == kindImage {
		if account.Settings.ProcessingError != "" {
			return state.Container{}, failed()
		}
	}
	work := time.Duration(0)
	if m.Kind == kindVideo {
		work = videoWork
	}
	made, err := p.Store.CreateContainer(account.Key, fresh, work, newID)
	return made, p.broken("a file could not be kept", "", err)
}

// failed returns the error for a file that could not be processed.
func failed() *problem { return invalid("Error processing thumbnail for uploaded media") }

// receive reads an upload and stores its file.
func (p *Platform) receive(r *faults.Request) (received, *problem) {
	var out received
	reader, err := r.MultipartReader()
	if err != nil {
		return out, notValid("File can't be blank")
	}
	for {
		part, err := reader.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return out, badBody()
		}
		if with := p.receivePart(part, &out); with != nil {
			return out, with
		}
	}
	if out.file == nil {
		return out, notValid("File can't be blank")
	}
	return out, nil
}

func (p *Platform) receivePart(part *multipart.Part, out *received) *problem {
	if part.FormName() == "file" {
		if part.FileName() == "" {
			return notValid("File has contents that are not what they are reported to be")
		}
		blob, err := p.Blobs.Receive(part, maxVideo)
		switch {
		case errors.Is(err, blobs.ErrTooLarge):
			return notValid("File file size must be less than 99 MB")
		case err != nil:
			return badBody()
		}
		out.file = &blob
		return nil
	}
	content, err := io.ReadAll(io.LimitReader(part, maxForm))
	switch {
	case err != nil:
		return badBody()
	case part.FormName() == "description":
		out.description = string(content)
	case part.FormName() == "focus":
		out.focus = string(content)
	case !p.Lenient:
		return &problem{http.StatusBadRequest, "the parameter " + part.FormName() + " has no effect, or is not simulated"}
	}
	return nil
}

// inspect checks a file's type and size.
func inspect(blob *blobs.Blob) (media, *problem) {
	m := media{Kind: kindImage, Width: blob.Width, Height: blob.Height}
	pixels := blob.Width * blob.Height
	switch {
	case slices.Contains(imageTypes, blob.MIMEType):
		switch {
		case blob.Bytes > maxImage:
			return m, notValid("File file size must be less than 16 MB")
		case pixels == 0:
			return m, failed()
		case pixels > maxImagePixels:
			return m, notValid("File is too large")
		}
	case slices.Contains(videoTypes, blob.MIMEType):
		m.Kind = kindVideo
		switch {
		case pixels > maxVideoPixels:
			return m, invalid(fmt.Sprintf("%dx%d videos are not supported", blob.Width, blob.Height))
		case blob.FrameRate > maxFrameRate:
			return m, invalid(strconv.FormatFloat(blob.FrameRate, 'f', 0, 64) + "fps videos are not supported")
		}
	default:
		return m, notValid("File content type is invalid, File is invalid")
	}
	return m, nil
}

// setFocus sets a focal point, "x,y" between -1 and 1 (api/guidelines, "Focal points").
func setFocus(m *media, focus string) *problem {
	if focus == "" {
		return nil
	}
	left, right, _ := strings.Cut(focus, ",")
	x, err := strconv.ParseFloat(left, 64)
	y, err2 := strconv.ParseFloat(right, 64)
	if err != nil || err2 != nil || max(x, -x) > 1 || max(y, -y) > 1 {
		return notValid("Focus is invalid")
	}
	m.FocusX, m.FocusY = x, y
	return nil
}

// busy reports whether a file is still being processed.
func (p *Platform) busy(c state.Container) bool { return p.Clock.Now().Before(c.ReadyAt) }

// unattached returns the account's file with this id, unless it is part of a post or has expired.
func (p *Platform) unattached(account state.Account, id string) (state.Container, bool) {
	c, ok := p.Store.Container(Name, id)
	return c, ok && c.AccountID == account.ID && c.PostID == "" && p.Clock.Now().Before(c.CreatedAt().Add(mediaLife))
}

// readMedia handles GET /api/v1/media/:id. A file that belongs to a post is not found.
func (p *Platform) readMedia(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, "write", "write:media")
	if !ok {
		return
	}
	c, found := p.unattached(account, r.PathValue("id"))
	switch {
	case !found:
		p.fail(w, notFound())
	case p.busy(c):
		p.write(w, http.StatusPartialContent, p.attachment(r.Request, c))
	case c.Failure != "":
		p.fail(w, failed())
	default:
		p.write(w, http.StatusOK, p.attachment(r.Request, c))
	}
}

// changeMedia handles PUT /api/v1/media/:id.
func (p *Platform) changeMedia(w http.ResponseWriter, r *faults.Request) {
	account, ok := p.authorized(w, r, "write", "write:media")
	if !ok {
		return
	}
	q, read := readParams(r)
	c, found := p.unattached(account, r.PathValue("id"))
	m := mediaOf(c)
	description, focus := q.text("description"), q.text("focus")
	with := p.checked(q)
	switch {
	case !read:
		with = badBody()
	case !found:
		with = notFound()
	case utf8.RuneCountInString(description) > maxDescription:
		with = notValid(fmt.Sprintf("Description is too long (maximum is %d characters)", maxDescription))
	case with == nil:
		with = setFocus(&m, focus)
	}
	if with != nil {
		p.fail(w, with)
		return
	}
	detail, err := json.Marshal(m)
	if err == nil {
		c, err = p.Store.ChangeContainer(Name, c.ID, func(c *state.Container) {
			c.Detail = detail
			if description != "" {
				c.AltText = strings.TrimSpace(description)
			}
		})
	}
	if with := p.broken("a file could not be changed", r.PathValue("id"), err); with != nil {
		p.fail(w, with)
		return
	}
	p.write(w, http.StatusOK, p.attachment(r.Request, c))
}

// attachment renders a file (entities/MediaAttachment). A file that is being processed has no URL.
func (p *Platform) attachment(r *http.Request, c state.Container) map[string]any {
	m := mediaOf(c)
	out := map[string]any{
		"id": c.ID, "type": m.Kind, "url": nil, "preview_url": p.File(r, c.Media[0]), "remote_url": nil, "preview_remote_url": nil, "text_url": nil,
		"description": nil, "blurhash": "UFBWY:8_0Jxv4mx]t8t64.%M-:IUWGWAt6M}",
		"meta": map[string]any{"focus": map[string]any{"x": m.FocusX, "y": m.FocusY}},
	}
	if c.AltText != "" {
		out["description"] = c.AltText
	}
	if !p.busy(c) {
		out["url"] = p.File(r, c.Media[0])
	}
	if meta, ok := out["meta"].(map[string]any); ok && m.Height > 0 {
		meta["original"] = map[string]any{
			"width": m.Width, "height": m.Height, "size": fmt.Sprintf("%dx%d", m.Width, m.Height), "aspect": float64(m.Width) / float64(m.Height),
		}
	}
	return out
}
