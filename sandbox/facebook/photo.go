// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

const (
	// maxPhoto is the maximum photo size, in bytes: the newer of the two documented numbers.
	maxPhoto = 10 << 20
	// maxPhotos is the maximum number of photos in a post.
	maxPhotos = 10
	// photoLife is how long an unpublished photo can be attached to a post.
	photoLife = 24 * time.Hour
)

// photoTypes are the accepted file types of photos.
var photoTypes = []string{"image/jpeg", "image/png", "image/gif", "image/bmp", "image/tiff"}

// photos returns the handler of POST /{id}/photos. Depending on the parameters, it publishes a photo or uploads an
// unpublished one.
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

// photo stores a photo and publishes it if requested.
func (p *Platform) photo(c *graph.Call) (any, *graph.Error) {
	page, bad := c.Owner(scopePost, scopeRead)
	if bad != nil {
		return nil, bad
	}
	published, caption, address := c.Params.Bool("published", true), c.Params.Text("caption"), c.Params.Text("url")
	altText := c.Params.AltText("alt_text_custom")
	c.Params.Unsimulated("scheduled_publish_time", "backdated_time")
	if bad := c.Params.Validate(); bad != nil {
		return nil, bad
	}
	if utf8.RuneCountInString(caption) > maxMessage {
		return nil, graph.BadParam("Param caption must be at most %d characters long.", maxMessage)
	}
	blob, bad := p.receivePhoto(c, address)
	if bad != nil {
		return nil, bad
	}
	photo, err := p.Store.CreateContainer(page.Key, state.Container{
		Text: caption, Media: []state.Media{simulator.MediaOf(blob).Described(altText)},
	}, 0, graph.NewID)
	if err != nil {
		return nil, c.InternalError("keep a photo", err)
	}
	if !published {
		return map[string]string{"id": photo.ID}, nil
	}
	draft := state.Draft{Text: caption, Media: photo.Media, Parts: []string{photo.ID}, NewID: newID(page)}
	draft.Repeats = repeats(draft)
	post, err := p.Store.Publish(page.Key, draft)
	if err != nil {
		return nil, refusal(c, err)
	}
	return map[string]string{"id": photo.ID, "post_id": post.ID}, nil
}

// receivePhoto returns the call's file, or downloads it from the call's address.
func (p *Platform) receivePhoto(c *graph.Call, address string) (blobs.Blob, *graph.Error) {
	file := c.File()
	if file == nil && address != "" {
		file = &graph.File{}
		// The platform continues after the client disconnects.
		file.Blob, file.Err = p.Blobs.Pull(context.WithoutCancel(c.Context()), address, maxPhoto, blobs.Follow)
		if _, unreachable := errors.AsType[*blobs.PullError](file.Err); unreachable {
			return blobs.Blob{}, badPhoto()
		}
	}
	switch {
	case file == nil:
		return blobs.Blob{}, graph.Refusal(324, "(#324) Requires upload file")
	case errors.Is(file.Err, blobs.ErrTooLarge), file.Err == nil && !slices.Contains(photoTypes, file.Blob.MIMEType):
		return blobs.Blob{}, badPhoto()
	case file.Err != nil:
		return blobs.Blob{}, c.InternalError("take a photo in", file.Err)
	}
	return file.Blob, nil
}

// badPhoto returns the error for an invalid photo.
func badPhoto() *graph.Error {
	return graph.Refusal(324, "(#324) Missing or invalid image file").Because(1366046, "Can't read files",
		"Photos must be smaller than 10 MB and saved as JPG, PNG, GIF, TIFF or BMP files.")
}

// readAttached reads the attached photos' IDs, from one parameter per photo or from one for all.
func readAttached(q *graph.Params) []string {
	objects := q.List("attached_media")
	for i := 0; q.Has(fmt.Sprintf("attached_media[%d]", i)); i++ {
		objects = append(objects, q.Text(fmt.Sprintf("attached_media[%d]", i)))
	}
	var ids []string
	for _, object := range objects {
		var one struct {
			ID string `json:"media_fbid"`
		}
		err := simulator.Decode([]byte(object), &one)
		if err != nil || one.ID == "" || slices.Contains(ids, one.ID) {
			q.Rejectf("Param attached_media must be objects with nothing but a media_fbid, each another one.")
		}
		ids = append(ids, one.ID)
	}
	if len(ids) > maxPhotos {
		q.Rejectf("Param attached_media must have at most %d photos.", maxPhotos)
	}
	return ids
}

// attach adds photos to a post. They must not be part of another post.
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

// alreadyPosted returns the error for photos that are part of a post.
func alreadyPosted() *graph.Error {
	return graph.BadParam("Param attached_media names photos that were posted before.").Because(1366051, "Already posted",
		"These photos were already posted.")
}

// photoOf returns a page's photo. An unpublished photo expires after photoLife.
func (p *Platform) photoOf(page state.Account, id string) (state.Container, bool) {
	photo, ok := p.Container(page, id)
	return photo, ok && !detailOf(photo.Detail).Draft && (photo.PostID != "" || p.Clock.Now().Before(photo.CreatedAt().Add(photoLife)))
}

func (p *Platform) photoNode(r *http.Request, page state.Account, photo state.Container) graph.Node {
	at := photo.CreatedAt().Format(graph.TimeForm)
	values := map[string]any{
		"id": photo.ID, "created_time": at, "updated_time": at, "picture": p.File(r, photo.Media[0]), "from": pageReference(page),
	}
	if photo.Text != "" {
		values["name"] = photo.Text
	}
	if photo.PostID != "" {
		values["page_story_id"], values["link"] = photo.PostID, p.SiteURL(r)+p.PostPath(page.Username, photo.PostID)
	}
	return graph.Node{
		Type: "Photo", Values: values,
		Known:   []string{"id", "created_time", "from", "link", "name", "page_story_id", "picture", "updated_time"},
		Default: []string{"created_time", "name", "id"},
	}
}
