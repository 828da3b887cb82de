// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"encoding/json"
	"strconv"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/state"
)

// mediaFields are the fields of a media that may be asked for. Those that have nothing to say here are left out.
var mediaFields = []string{
	"alt_text", "duration_ms", "height", "media_key", "non_public_metrics", "organic_metrics", "preview_image_url",
	"promoted_metrics", "public_metrics", "type", "url", "variants", "width",
}

// included is what a timeline adds beside its posts.
type included struct {
	Media []map[string]any `json:"media"`
}

// detailOf reads what createTweet kept beside a post's text.
func detailOf(post state.Post) detail {
	var out detail
	if len(post.Detail) > 0 {
		// It was encoded by createTweet; were it unreadable, the post would be shown without it.
		_ = json.Unmarshal(post.Detail, &out)
	}
	return out
}

func mediaKeys(attached []attachment) []string {
	out := make([]string, len(attached))
	for i, a := range attached {
		out[i] = a.Key
	}
	return out
}

// mediaLinks describes the short link at a post's end, once for each of its media.
func (p *Platform) mediaLinks(post state.Post, at urlEntity, attached []attachment) []urlEntity {
	author, _ := p.Store.Account(state.Key{Platform: Name, ID: post.AccountID})
	out := make([]urlEntity, 0, len(attached))
	for i, a := range attached {
		part := "/photo/" + strconv.Itoa(i+1)
		if a.Kind != kindPhoto {
			part = "/video/1"
		}
		at.ExpandedURL = "https://x.com/" + author.Username + "/status/" + post.ID + part
		at.DisplayURL = "pic.x.com/" + at.URL[len(shortLink):]
		at.MediaKey = a.Key
		out = append(out, at)
	}
	return out
}

// include lists the media of posts, each once; nil when there are none.
func (p *Platform) include(r *faults.Request, posts []state.Post, fields []string) *included {
	var (
		out  included
		seen = map[string]bool{}
	)
	for _, post := range posts {
		for i, a := range detailOf(post).Media {
			if seen[a.Key] || i >= len(post.Media) {
				continue
			}
			seen[a.Key] = true
			address := p.SiteURL(r.Request) + "/_media/" + post.Media[i].SHA256
			object := map[string]any{"media_key": a.Key, "type": a.Kind}
			for _, field := range fields {
				if value := mediaField(field, a, post.Media[i], address); value != nil {
					object[field] = value
				}
			}
			out.Media = append(out.Media, object)
		}
	}
	if len(out.Media) == 0 {
		return nil
	}
	return &out
}

// mediaField returns nil for a field that this media does not have.
func mediaField(field string, a attachment, file state.Media, address string) any {
	switch field {
	case "width":
		return a.Width
	case "height":
		return a.Height
	case "alt_text":
		if a.Alt != "" {
			return a.Alt
		}
	case "duration_ms":
		if a.Kind == kindVideo {
			return a.DurationMS
		}
	case "url":
		if a.Kind == kindPhoto {
			return address
		}
	case "variants":
		if a.Kind != kindPhoto {
			return []map[string]string{{"content_type": file.MIMEType, "url": address}}
		}
	}
	return nil
}
