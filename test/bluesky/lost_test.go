// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"sync"
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
)

// lostCall is a call whose connection is cut once. Its key in lostCalls is the post's text.
type lostCall struct {
	reason   string
	category v1alpha1.Category
	method   string
	fate     fate
}

var lostCalls = map[string]lostCall{
	"text, cut before":    {"a read proves that the server does not have the record", v1alpha1.CategoryText, putRecord, cutBefore},
	"text, cut after":     {"a read finds the record", v1alpha1.CategoryText, putRecord, cutAfter},
	"card, cut before":    {"the next card waits for this one's record", v1alpha1.CategoryTree, putRecord, cutBefore},
	"card, cut after":     {"the next card replies to the record that was found", v1alpha1.CategoryTree, putRecord, cutAfter},
	"picture, cut before": {"the file is uploaded again", v1alpha1.CategoryImage, uploadBlob, cutBefore},
	"picture, cut after":  {"an equal file is the same blob", v1alpha1.CategoryImage, uploadBlob, cutAfter},
	"video, cut before":   {"the uploaded video is used again", v1alpha1.CategoryVideo, putRecord, cutBefore},
	"video, cut after":    {"a read finds the record with its video", v1alpha1.CategoryVideo, putRecord, cutAfter},
}

// draft returns a post, and a part of the lost call's body that identifies it. In a thread, this call publishes the
// second of three parts.
func (c *lostCall) draft(t *testing.T, name string, shade uint8) (d draft, contains []byte) {
	t.Helper()
	d = draft{category: c.category, parts: []part{{text: name}}}
	switch c.category {
	case v1alpha1.CategoryTree:
		d.parts = []part{{text: "first of " + name}, {text: name, files: [][]byte{gray(t, shade)}}, {text: "last of " + name}}
		return d, []byte(`"text":"` + name + `"`)
	case v1alpha1.CategoryImage:
		d.parts[0].files = [][]byte{gray(t, shade), gray(t, shade+1)}
	case v1alpha1.CategoryVideo:
		d.parts[0].files = [][]byte{moving(t)}
	case v1alpha1.CategoryText:
	}
	if c.method == uploadBlob {
		return d, d.parts[0].files[1]
	}
	return d, []byte(name)
}

// TestLostCalls cuts the connection of one call of each post, before or after the server has processed it. Each post is
// published once, in full, without a user's decision.
func TestLostCalls(t *testing.T) {
	s := start(t, "bakery.test")
	drafts, contents, shade := map[string]*draft{}, map[string][]byte{}, uint8(0)
	for name, c := range lostCalls {
		d, contains := c.draft(t, name, shade)
		drafts[name], contents[name] = &d, contains
		shade += 10
	}
	var mu sync.Mutex
	address, cuts := cut(t, s, func(r request) fate {
		mu.Lock()
		defer mu.Unlock()
		for name, contains := range contents {
			if c := lostCalls[name]; c.method == r.method && bytes.Contains(r.body, contains) {
				delete(contents, name) // the next call of the post passes
				return c.fate
			}
		}
		return passes
	})
	h := startHerald(t, &configv1alpha1.Platform{Server: address}, nil)
	h.setUp(t, &s.Accounts[0])
	for _, d := range drafts {
		h.byV2(t, d)
	}
	h.posted(t, len(drafts))

	records, posts := 0, s.read(t, &s.Accounts[0])
	for name, d := range drafts {
		records += len(d.parts)
		t.Run(name, func(t *testing.T) {
			d.check(t, byText(posts))
			if t.Failed() {
				t.Error(lostCalls[name].reason)
			}
		})
	}
	if len(posts) != records {
		t.Errorf("the server has %d posts, want %d", len(posts), records)
	}
	if int(cuts.Load()) != len(lostCalls) {
		t.Errorf("%d calls were cut off, and none for %v", cuts.Load(), contents)
	}
}
