// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package instagram

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/herald-social/herald/sandbox/graph"
)

const (
	// maxAltText is how many characters a description for the blind may have.
	maxAltText = 1000
	// maxCollaborators is how many accounts may be named as co-authors.
	maxCollaborators = 3
	minChildren      = 2
	maxChildren      = 10
	// maxOffset is more milliseconds than any video has.
	maxOffset = 24 * 60 * 60 * 1000
)

// order is a request for a container.
type order struct {
	detail
	caption                      string
	imageURL, videoURL, coverURL string
}

func (o *order) isVideo() bool { return o.Kind == kindVideo || o.Kind == kindReels }

// The parameters that say what a container shows, and those that only some kinds take. All others go with every kind.
var (
	anywhere = []string{"media_type", "user_tags", "product_tags", "location_id"}
	labels   = []string{"caption", "collaborators", "is_ai_generated", "is_paid_partnership", "branded_content_sponsor_ids"}
	taken    = map[string][]string{
		kindImage:    slices.Concat(anywhere, labels, []string{"image_url", "alt_text"}),
		kindCarousel: slices.Concat(anywhere, labels, []string{"children"}),
		kindReels: slices.Concat(anywhere, labels, []string{
			"video_url", "upload_type", "share_to_feed", "cover_url", "thumb_offset", "audio_name", "trial_params",
		}),
	}
	// takenByItems is what is taken of the children of a carousel: what is said about the whole stands with the parent.
	takenByItems = map[string][]string{
		kindImage: slices.Concat(anywhere, []string{"is_carousel_item", "image_url", "alt_text"}),
		kindVideo: slices.Concat(anywhere, []string{"is_carousel_item", "video_url", "upload_type", "thumb_offset"}),
	}
	documented = slices.Concat(taken[kindImage], taken[kindCarousel], taken[kindReels], takenByItems[kindVideo])
)

// readOrder reads the parameters of a container, or says why Instagram would refuse it before looking at any file.
func (l *login) readOrder(q *graph.Params) (order, *graph.Error) {
	asked := order{caption: q.Text("caption"), imageURL: q.Text("image_url"), videoURL: q.Text("video_url"), coverURL: q.Text("cover_url")}
	kind := q.Text("media_type")
	asked.Item = q.Bool("is_carousel_item", false)
	asked.Children, asked.Collaborators = listOf(q, "children"), listOf(q, "collaborators")
	asked.AltText, asked.AI = q.Text("alt_text"), q.Bool("is_ai_generated", false)
	asked.ThumbOffset = q.Integer("thumb_offset", 0, 0, maxOffset)
	asked.Awaited = l.linked && q.OneOf("upload_type", "resumable") != ""
	if share := q.Bool("share_to_feed", false); q.Text("share_to_feed") != "" {
		asked.ShareToFeed = &share
	}
	asked.Extras = l.extras(q)
	if bad := q.End(); bad != nil {
		return asked, bad
	}
	if bad := asked.setKind(kind); bad != nil {
		return asked, bad
	}
	bad := asked.check(q)
	return asked, bad
}

// setKind tells what a container is from its media_type.
func (o *order) setKind(name string) *graph.Error {
	switch {
	case name == kindStories:
		return graph.BadParam("Param media_type %s is not available here.", name).Because(0, "Not simulated",
			"The sandbox simulates pictures, reels and carousels on Instagram, not stories.")
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
		return unknownType("There is no media_type " + name + ".")
	}
	return nil
}

// check applies what holds for a kind, and the limits of what people read.
func (o *order) check(q *graph.Params) *graph.Error {
	allowed := taken[o.Kind]
	if o.Item {
		allowed = takenByItems[o.Kind]
	}
	for _, name := range documented {
		if name == "is_carousel_item" && !o.Item {
			continue // said to be none
		}
		if q.Has(name) && !slices.Contains(allowed, name) {
			return graph.BadParam("Param %s is not allowed for %s.", name, o.describe())
		}
	}
	source := map[string]string{kindImage: "image_url", kindVideo: "video_url", kindReels: "video_url", kindCarousel: "children"}[o.Kind]
	switch given := q.Has(source) && q.Text(source) != ""; {
	case o.Awaited && given:
		return graph.BadParam("Only one of video_url and upload_type may be given.")
	case !o.Awaited && !given:
		return graph.BadParam("The parameter %s is required for %s.", source, o.describe())
	case utf8.RuneCountInString(o.AltText) > maxAltText:
		return graph.BadParam("Param alt_text must be at most %d characters long.", maxAltText)
	case len(o.Collaborators) > maxCollaborators:
		return graph.BadParam("Param collaborators must name at most %d accounts.", maxCollaborators)
	}
	return checkCaption(o.caption)
}

func (o *order) describe() string {
	if o.Item {
		return "a carousel item of media_type " + o.Kind
	}
	return "media_type " + o.Kind
}

// extras are the options that are kept as they came.
func (l *login) extras(q *graph.Params) map[string]any {
	kept := map[string]any{}
	for _, name := range []string{"user_tags", "product_tags"} {
		if value := q.JSON(name); value != nil {
			kept[name] = value
		}
	}
	for _, name := range []string{"location_id", "audio_name"} {
		if value := q.Text(name); value != "" {
			kept[name] = value
		}
	}
	if trial := q.JSON("trial_params"); trial != nil {
		kept["trial_params"] = trial
		checkTrial(q, trial)
	}
	if l.linked { // with Instagram Login, these are not known
		if q.Bool("is_paid_partnership", false) {
			kept["is_paid_partnership"] = true
		}
		if sponsors := listOf(q, "branded_content_sponsor_ids"); sponsors != nil {
			kept["branded_content_sponsor_ids"] = sponsors
		}
	}
	return kept
}

// checkTrial checks how a trial reel is to end.
func checkTrial(q *graph.Params, content json.RawMessage) {
	var trial struct {
		Strategy string `json:"graduation_strategy"`
	}
	if json.Unmarshal(content, &trial) != nil || !slices.Contains([]string{"MANUAL", "SS_PERFORMANCE"}, trial.Strategy) {
		q.Rejectf("Param trial_params must have a graduation_strategy of MANUAL or SS_PERFORMANCE.")
	}
}

// listOf returns a parameter that is a list: of JSON, or separated by commas. It is nil when it was not given.
func listOf(q *graph.Params, name string) []string {
	value := strings.TrimSpace(q.Text(name))
	if value == "" {
		return nil
	}
	if !strings.HasPrefix(value, "[") {
		return strings.Split(value, ",")
	}
	var items []any
	decoder := json.NewDecoder(strings.NewReader(value))
	decoder.UseNumber()
	if err := decoder.Decode(&items); err != nil {
		q.Rejectf("Param %s must be an array.", name)
		return nil
	}
	out := make([]string, len(items))
	for i, item := range items {
		switch v := item.(type) {
		case string:
			out[i] = v
		case json.Number:
			out[i] = v.String()
		default:
			q.Rejectf("Param %s must be an array of strings.", name)
		}
	}
	return out
}
