// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"slices"

	"github.com/herald-social/herald/sandbox/graph"
)

const (
	minChildren = 2
	maxChildren = 10
	// maxOffset is longer than any video, in milliseconds.
	maxOffset = 24 * 60 * 60 * 1000
)

// order is a container request.
type order struct {
	detail
	caption, imageURL, videoURL, altText string
}

func (o *order) isVideo() bool { return o.Kind == kindVideo || o.Kind == kindReels }

// The parameters of each kind in addition to media_type. Parameters of a whole carousel belong to its parent
// container.
var (
	taken = map[string][]string{
		kindImage:    {"alt_text", "caption", "image_url"},
		kindCarousel: {"caption", "children"},
		kindReels:    {"caption", "video_url", "upload_type", "thumb_offset"},
	}
	takenByItems = map[string][]string{
		kindImage: {"alt_text", "is_carousel_item", "image_url"},
		kindVideo: {"is_carousel_item", "video_url", "upload_type", "thumb_offset"},
	}
	documented = []string{"alt_text", "caption", "children", "image_url", "is_carousel_item", "thumb_offset", "upload_type", "video_url"}
)

// readOrder reads a container's parameters. It returns an error if Instagram would reject them before fetching a file.
func (l *login) readOrder(q *graph.Params) (order, *graph.Error) {
	asked := order{caption: q.Text("caption"), imageURL: q.Text("image_url"), videoURL: q.Text("video_url"), altText: q.AltText("alt_text")}
	kind := q.Text("media_type")
	asked.Item = q.Bool("is_carousel_item", false)
	asked.Children = q.List("children")
	asked.ThumbOffset = q.Integer("thumb_offset", 0, 0, maxOffset)
	asked.Awaited = l.linked && q.OneOf("upload_type", "resumable") != ""
	if bad := q.Validate(); bad != nil {
		return asked, bad
	}
	if bad := asked.setKind(kind); bad != nil {
		return asked, bad
	}
	bad := asked.check(q)
	return asked, bad
}

// setKind derives the kind of a container from its media_type.
func (o *order) setKind(name string) *graph.Error {
	switch {
	case name == "" && o.videoURL != "" && o.imageURL == "":
		return unknownType("A video needs a media_type: REELS, or VIDEO for an item of a carousel.")
	case name == "":
		o.Kind = kindImage
	case name == kindVideo && !o.Item:
		return unknownType("Videos of their own are published as REELS; VIDEO is for items of a carousel.")
	case name == kindReels && o.Item:
		return unknownType("A reel cannot be an item of a carousel; its media_type is VIDEO.")
	case slices.Contains([]string{kindVideo, kindReels, kindCarousel}, name):
		o.Kind = name
	default:
		return unknownType("There is no media_type " + name + ", or the sandbox does not simulate it.")
	}
	return nil
}

// check enforces the kind's rules.
func (o *order) check(q *graph.Params) *graph.Error {
	allowed, what := taken[o.Kind], "media_type "+o.Kind
	if o.Item {
		allowed, what = takenByItems[o.Kind], "a carousel item of media_type "+o.Kind
	}
	for _, name := range documented {
		if q.Has(name) && !slices.Contains(allowed, name) && (name != "is_carousel_item" || o.Item) {
			return graph.BadParam("Param %s is not allowed for %s.", name, what)
		}
	}
	source := map[string]string{kindImage: "image_url", kindVideo: "video_url", kindReels: "video_url", kindCarousel: "children"}[o.Kind]
	switch given := q.Text(source) != ""; {
	case o.Awaited && given:
		return graph.BadParam("Only one of video_url and upload_type may be given.")
	case !o.Awaited && !given:
		return graph.BadParam("The parameter %s is required for %s.", source, what)
	}
	return checkCaption(o.caption)
}
