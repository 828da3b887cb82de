// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxPhoto is how many bytes a photo may have: the newer one of the two numbers that the platform gives.
	maxPhoto = 10 << 20
	// maxPhotos is how many photos a post may have.
	maxPhotos = 10
	// photoLife is how long a photo waits to be attached to a post.
	photoLife = 24 * time.Hour
)

// photoTypes are the types of files that are taken for photos.
var photoTypes = []string{"image/jpeg", "image/png", "image/gif", "image/bmp", "image/tiff"}

// photoDetail are the options of a photo that are kept beside its caption.
type photoDetail struct {
	Alt string `json:"alt,omitempty"`
}

// photos is POST /{id}/photos: a publication, or the upload of what nobody sees yet, as the parameters say.
func (p *Platform) photos() http.HandlerFunc {
	publish, upload := p.Route(faults.Publish, p.photo), p.Route(faults.Upload, p.photo)
	return func(w http.ResponseWriter, r *http.Request) {
		r, params, bad := p.ReadForm(r, "source", maxPhoto)
		switch {
		case bad != nil:
			p.Route(faults.Upload, func(*graph.Call) (any, *graph.Error) { return nil, bad }).ServeHTTP(w, r)
		case params.Bool("published", true):
			publish.ServeHTTP(w, r)
		default:
			upload.ServeHTTP(w, r)
		}
	}
}

// photo takes a photo, and publishes it if it is to be.
func (p *Platform) photo(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Owner(scopePost, scopeRead)
	if bad != nil {
		return nil, bad
	}
	published, photo, bad := readPhoto(c)
	if bad != nil {
		return nil, bad
	}
	blob, bad := p.takePhoto(c)
	if bad != nil {
		return nil, bad
	}
	photo.Media = []state.Media{{SHA256: blob.SHA256, Bytes: blob.Bytes, MIMEType: blob.MIMEType}}
	photo, err := p.Store.CreateContainer(page.Key, photo, 0, graph.NewID)
	if err != nil {
		return nil, c.Broken("keep a photo", err)
	}
	if !published {
		return map[string]string{"id": photo.ID}, nil
	}
	draft := state.Draft{Text: photo.Text, Media: photo.Media, Parts: []string{photo.ID}, NewID: newID(page)}
	draft.Repeats = repeats(draft)
	post, err := p.Store.Publish(page.Key, draft)
	if err != nil {
		return nil, refusal(c, err)
	}
	return map[string]string{"id": photo.ID, "post_id": post.ID}, nil
}

// readPhoto reads what is said about a photo, or says why Facebook would refuse it.
func readPhoto(c *graph.Call) (published bool, photo state.Container, bad *graph.Error) {
	q := c.Params
	published = q.Bool("published", true)
	temporary := q.Bool("temporary", false)
	q.Text("url")
	photo.Text = q.Text("caption")
	detail, err := json.Marshal(photoDetail{Alt: q.Text("alt_text_custom")})
	if err != nil {
		return published, photo, c.Broken("encode a photo", err)
	}
	photo.Detail = detail
	missing := refuseMissing(q)
	if bad := q.End(); bad != nil {
		return published, photo, bad
	}
	switch {
	case missing != nil:
		return published, photo, missing
	case published && temporary:
		return published, photo, graph.BadParam("Param temporary needs published=false.")
	case utf8.RuneCountInString(photo.Text) > maxMessage:
		return published, photo, graph.BadParam("Param caption must be at most %d characters long.", maxMessage)
	}
	return published, photo, nil
}

// takePhoto returns the file that came with a call, or fetches it from where the call says it is.
func (p *Platform) takePhoto(c *graph.Call) (blobs.Blob, *graph.Error) {
	address, file := c.Params.Text("url"), c.File()
	switch {
	case address != "" && file != nil:
		return blobs.Blob{}, graph.BadParam("Only one of url and source may be given.")
	case address == "" && file == nil:
		return blobs.Blob{}, graph.Refusal(324, "(#324) Requires upload file")
	case file == nil:
		if where, err := url.Parse(address); err != nil || where.Host == "" || where.Scheme != "http" && where.Scheme != "https" {
			return blobs.Blob{}, graph.BadParam("Param url must be an absolute http or https address.")
		}
		// The platform goes on when the client has gone.
		blob, err := p.Blobs.Pull(context.WithoutCancel(c.Context()), address, maxPhoto)
		file = &graph.File{Blob: blob, Err: err}
	}
	_, unreachable := errors.AsType[*blobs.PullError](file.Err)
	switch {
	case unreachable:
		return blobs.Blob{}, graph.Refusal(389, "(#389) Unable to fetch the file from its URL")
	case errors.Is(file.Err, blobs.ErrTooLarge):
		return blobs.Blob{}, badPhoto()
	case file.Err != nil:
		return blobs.Blob{}, c.Broken("take a photo in", file.Err)
	case !slices.Contains(photoTypes, file.Blob.MIMEType):
		return blobs.Blob{}, badPhoto()
	}
	return file.Blob, nil
}

// badPhoto is the answer to a file that is not taken for a photo.
func badPhoto() *graph.Error {
	return graph.Refusal(324, "(#324) Missing or invalid image file").Because(1366046, "Can't read files",
		"Photos must be smaller than 10 MB and saved as JPG, PNG, GIF, TIFF or BMP files.")
}

// attachedPhoto names a photo in a request for a post.
type attachedPhoto struct {
	ID string `json:"media_fbid"`
}

// readAttached reads the ids of the photos that a post is to have, from one list or from a parameter for each.
func readAttached(q *graph.Params) ([]string, *graph.Error) {
	bad := graph.BadParam("Param attached_media must be a list of objects with nothing but a media_fbid.")
	var listed []attachedPhoto
	if list := q.JSON("attached_media"); list != nil && !decode(list, &listed) {
		return nil, bad
	}
	for i := 0; q.Has(fmt.Sprintf("attached_media[%d]", i)); i++ {
		var one attachedPhoto
		if !decode(q.JSON(fmt.Sprintf("attached_media[%d]", i)), &one) || q.Has("attached_media") {
			return nil, bad
		}
		listed = append(listed, one)
	}
	ids := make([]string, len(listed))
	for i, one := range listed {
		if ids[i] = one.ID; one.ID == "" || slices.Contains(ids[:i], one.ID) {
			return nil, bad
		}
	}
	if len(ids) > maxPhotos {
		return nil, graph.BadParam("Param attached_media must have at most %d photos.", maxPhotos)
	}
	return ids, nil
}

// decode returns false for what is not of into's form, or has more fields.
func decode(content json.RawMessage, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into) == nil
}

// attach gives a post its photos, which nobody may have seen yet.
func (p *Platform) attach(draft *state.Draft, page state.Account, ids []string) *graph.Error {
	for _, id := range ids {
		photo, ok := p.photoOf(page, id)
		if !ok {
			return graph.BadParam("Param attached_media must name unpublished photos of this Page: %s is none.", id)
		}
		if photo.PostID != "" {
			return alreadyPosted()
		}
		draft.Media = append(draft.Media, photo.Media...)
	}
	draft.Parts = ids
	return nil
}

// alreadyPosted is the answer to photos that are part of a post.
func alreadyPosted() *graph.Error {
	return graph.BadParam("Param attached_media names photos that were posted before.").Because(1366051, "Already posted",
		"These photos were already posted.")
}

// photoOf returns a photo of page. One that waits for its post is gone after a while.
func (p *Platform) photoOf(page state.Account, id string) (state.Container, bool) {
	photo, ok := p.Store.Container(Name, id)
	if !ok || photo.AccountID != page.ID {
		return state.Container{}, false
	}
	return photo, photo.PostID != "" || p.Clock.Now().Before(photo.CreatedAt().Add(photoLife))
}

// photoNode shows a photo.
func (p *Platform) photoNode(r *http.Request, page state.Account, photo state.Container) graph.Node {
	file := photo.Media[0]
	blob, _ := p.Blobs.Get(file.SHA256) // one that is gone has no size
	at := photo.CreatedAt().Format(graph.TimeForm)
	values := map[string]any{
		"id": photo.ID, "created_time": at, "updated_time": at, "picture": p.fileURL(r, file), "width": blob.Width, "height": blob.Height,
		"images": []map[string]any{{"source": p.fileURL(r, file), "width": blob.Width, "height": blob.Height}},
		"from":   pageReference(page),
	}
	var kept photoDetail
	if err := json.Unmarshal(photo.Detail, &kept); err == nil && kept.Alt != "" {
		values["alt_text_custom"] = kept.Alt
	}
	if photo.Text != "" {
		values["name"] = photo.Text
	}
	if photo.PostID != "" {
		values["page_story_id"], values["link"] = photo.PostID, p.SiteURL(r)+p.PostPath(page.Username, photo.PostID)
	}
	return graph.Node{
		Type: "Photo", Values: values,
		Known: []string{
			"id", "album", "alt_text", "alt_text_custom", "backdated_time", "can_delete", "created_time", "event", "from", "height",
			"icon", "images", "link", "name", "name_tags", "page_story_id", "picture", "place", "target", "updated_time", "width",
		},
		Default: []string{"created_time", "name", "id"},
	}
}
