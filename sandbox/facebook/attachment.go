// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"net/http"
	"strings"

	"github.com/herald-social/herald/sandbox/graph"
	"github.com/herald-social/herald/sandbox/state"
)

// attachment returns an attachment of a post.
func attachment(values map[string]any) graph.Node {
	return graph.Node{
		Type: "StoryAttachment", Values: values,
		Known:   []string{"description", "media", "media_type", "target", "title", "type", "url", "subattachments"},
		Default: []string{"media", "media_type", "subattachments", "target", "title", "type", "url"},
	}
}

// target returns an attachment's link target.
func target(id, address string) graph.Node {
	return graph.Node{
		Type: "StoryAttachmentTarget", Values: map[string]any{"id": id, "url": address}, Known: []string{"id", "url"}, Default: []string{"url"},
	}
}

// photoAttachment returns a post's single photo, or several photos as an album.
func (p *Platform) photoAttachment(r *http.Request, page state.Account, post state.Post) graph.Node {
	address := p.SiteURL(r) + p.PostPath(page.Username, post.ID)
	photos := make(graph.Edge, len(post.Media))
	for i, file := range post.Media {
		photos[i] = attachment(map[string]any{
			"media_type": "photo", "type": "photo", "target": target(post.Parts[i], address), "url": address, "media": p.picture(r, file),
		})
	}
	if len(photos) == 1 {
		if post.Text != "" {
			photos[0].Values["description"] = post.Text
		}
		return photos[0]
	}
	_, album, _ := strings.Cut(post.ID, "_")
	return attachment(map[string]any{
		"media_type": "album", "type": "album", "title": "Photos from " + page.DisplayName + "'s post",
		"target": target(album, address), "url": address, "media": p.picture(r, post.Media[0]), "subattachments": photos,
	})
}

// picture returns a file within an attachment.
func (p *Platform) picture(r *http.Request, file state.Media) graph.Node {
	blob, _ := p.Blobs.Get(file.SHA256) // a missing file has no size
	image := graph.Node{
		Type: "ImageSource", Values: map[string]any{"src": p.File(r, file), "width": blob.Width, "height": blob.Height},
		Known: []string{"height", "src", "width"}, Default: []string{"height", "src", "width"},
	}
	return graph.Node{
		Type: "StoryAttachmentMedia", Values: map[string]any{"image": image}, Known: []string{"image", "source"}, Default: []string{"image"},
	}
}
