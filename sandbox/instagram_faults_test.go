// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"testing"
)

func TestInstagramOperations(t *testing.T) {
	b := start(t, "")
	s := newShelf(t, map[string][]byte{"a.jpg": jpegOf(t, 40, 40)})
	id := b.igContainer(query("image_url=" + s.url + "/a.jpg"))
	b.igStatus(id)
	b.read("instagram", "/instagram/v25.0/"+b.igPublish(id).text("id"))
	b.read("instagram", instagramPath+"/media")
	b.read("instagram", instagramPath+"/content_publishing_limit")
	b.read("instagram", "/instagram/v25.0/me")
	b.read("instagram", instagramPath)
	for operation, want := range map[string]int{
		"create": 1, "status": 1, "publish": 1, "read": 1, "list": 1, "publishing_limit": 1, "identity": 2, "upload": 0, "refresh_token": 0,
	} {
		if got := b.callsOn("instagram", operation); got != want {
			t.Errorf("counted %s %d times, want %d", operation, got, want)
		}
	}
}
