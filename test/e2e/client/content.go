// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "fmt"

// content contains the components of posts: the connections by platform, and the IDs of two files.
type content struct {
	connections   map[string]string
	picture, film string
}

// kinds are the categories and their platforms. Text posts are the most frequent.
var kinds = []struct {
	category  string
	platforms []string
}{
	{"text", []string{"x", "threads", "facebook"}},
	{"image", []string{"x", "instagram", "threads"}},
	{"text", []string{"x"}},
	{"video", []string{"youtube", "instagram"}},
	{"text", []string{"threads", "facebook"}},
	{"tree", []string{"x", "threads"}},
	{"text", []string{"x", "facebook"}},
	{"image", []string{"tiktok", "facebook"}},
	{"text", []string{"threads"}},
	{"video", []string{"tiktok", "x", "threads"}},
}

// body returns the request body of post number i. Each caption starts with the marker.
func (c content) body(i int, marker string) map[string]any {
	kind := kinds[i%len(kinds)]
	body := map[string]any{"category": kind.category}
	var targets []map[string]any
	for _, platform := range kind.platforms {
		target := map[string]any{"connection_id": c.connections[platform]}
		if kind.category != "tree" {
			target["caption"] = marker
		}
		if platform == "youtube" {
			target["youtube_title"] = marker
		}
		targets = append(targets, target)
	}
	body["targets"] = targets
	switch kind.category {
	case "image":
		body["media_ids"] = []string{c.picture}
	case "video":
		body["media_id"] = c.film
	case "tree":
		var cards []map[string]any
		for card := range 3 {
			cards = append(cards, map[string]any{"caption": fmt.Sprintf("%s, card %d", marker, card)})
		}
		body["tree_cards"] = cards
	}
	return body
}
