// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"encoding/json"
	"time"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// Container kinds. Only a request for an image has no media_type.
const (
	kindImage    = "IMAGE"
	kindVideo    = "VIDEO" // within a carousel
	kindReels    = "REELS"
	kindCarousel = "CAROUSEL"
)

// detail is a container's or post's stored data without its caption, under the parameter names.
type detail struct {
	Kind string `json:"media_type"`
	// Item means that the container can only be part of a carousel.
	Item bool `json:"is_carousel_item,omitempty"`
	// Awaited means that the upload is still pending.
	Awaited     bool     `json:"awaits_upload,omitempty"`
	Children    []string `json:"children,omitempty"`
	ThumbOffset int      `json:"thumb_offset,omitempty"` // in milliseconds
	// Parts are a published carousel's items, in the order of its files.
	Parts []detail `json:"parts,omitempty"`
}

// detailOf decodes a container's or post's detail.
func detailOf(content json.RawMessage) detail {
	var out detail
	if len(content) > 0 {
		// The content was encoded by this package. If decoding fails, the post is only shown incompletely.
		_ = json.Unmarshal(content, &out)
	}
	return out
}

// create handles POST /{id}/media.
func (l *login) create(c *graph.Call) (any, *graph.Error) {
	account, bad := l.owner(c, l.write)
	if bad != nil {
		return nil, bad
	}
	asked, bad := l.readOrder(c.Params)
	if bad != nil {
		return nil, bad
	}
	out := state.Container{Text: asked.caption, AltText: asked.altText}
	if bad := l.gather(c, account, &asked, &out); bad != nil {
		return nil, bad
	}
	content, err := json.Marshal(asked.detail)
	if err != nil {
		return nil, c.InternalError("encode a container", err)
	}
	out.Detail = content
	processing := time.Duration(0)
	if asked.isVideo() {
		processing = graph.VideoProcessing // images are ready immediately, on the platform too
	}
	container, err := l.Store.CreateContainer(account.Key, out, processing, graph.NewID)
	if err != nil {
		return nil, c.InternalError("keep a container", err)
	}
	if container.Source != "" {
		l.fetch(container)
	}
	answer := map[string]string{"id": container.ID}
	if asked.Awaited {
		answer["uri"] = l.APIURL(c.Request.Request) + uploadPath(c.PathValue("version"), container.ID)
	}
	return answer, nil
}

// gather collects a container's content. An invalid image or carousel child rejects the container. A video is fetched later, and an error
// in it becomes its processing result.
func (l *login) gather(c *graph.Call, account state.Account, asked *order, out *state.Container) *graph.Error {
	switch asked.Kind {
	case kindCarousel:
		return l.checkChildren(account, asked.Children)
	case kindImage:
		blob, bad := l.pullPicture(c, asked.imageURL)
		if bad == nil {
			bad = validateImage(blob)
		}
		out.Media = []state.Media{simulator.MediaOf(blob).Described(out.AltText)}
		return bad
	}
	if asked.Awaited {
		return nil
	}
	out.Source = asked.videoURL
	if !addressable(out.Source) {
		return unfetchable()
	}
	return nil
}

// checkChildren validates a carousel's children.
func (l *login) checkChildren(account state.Account, ids []string) *graph.Error {
	if len(ids) < minChildren || len(ids) > maxChildren {
		return badCarousel("A carousel needs 2 to 10 children.")
	}
	seen := map[string]bool{}
	for _, id := range ids {
		child, ok := l.Container(account, id)
		switch status := l.statusOf(child); {
		case !ok:
			return mediaNotFound(id)
		case !detailOf(child.Detail).Item:
			return badCarousel("Container " + id + " was not made as a carousel item.")
		case seen[id]:
			return badCarousel("Container " + id + " is named twice.")
		case status == graph.Expired:
			return mediaExpired(id)
		case status != graph.Finished:
			return notReady(id)
		}
		seen[id] = true
	}
	return nil
}
