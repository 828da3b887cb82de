// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/must"
)

// doors are the ways to create a post with its files.
var doors = map[string]struct {
	reason string
	create func(h *herald, t *testing.T, d *draft)
}{
	"kubectl": {"files are uploaded to the address in their Media's status", (*herald).byKubectl},
	"web":     {"the form's script uploads files, and the form lists their ids", (*herald).byWeb},
	"v2":      {"files are uploaded to the address in the API's response", (*herald).byV2},
}

// kinds are the posts that go through each door, with different pictures each time.
var kinds = map[string]struct {
	reason string
	make   func(t *testing.T, shade uint8, first string) draft
}{
	"text": {"its facets count in bytes", func(_ *testing.T, _ uint8, first string) draft {
		return draft{category: v1alpha1.CategoryText, parts: []part{{text: first}}}
	}},
	"thread": {"each reply refers to a record that does not exist before", func(t *testing.T, shade uint8, first string) draft {
		return draft{category: v1alpha1.CategoryTree, parts: []part{
			{text: first},
			{text: first + ", two", files: [][]byte{gray(t, shade), gray(t, shade+1)}},
			{text: first + ", three", files: [][]byte{gray(t, shade+2)}},
		}}
	}},
	"video": {"its upload is the largest", func(t *testing.T, _ uint8, first string) draft {
		return draft{category: v1alpha1.CategoryVideo, parts: []part{{text: first, files: [][]byte{moving(t)}}}}
	}},
}

// byKubectl applies a post and its Media.
func (h *herald) byKubectl(t *testing.T, d *draft) {
	t.Helper()
	mime, file := d.fileType()
	files := 0
	spec, err := json.Marshal(d.spec(func(data []byte) string {
		files++
		name := fmt.Sprint(d.name, "-", files)
		h.kubectl(t, fmt.Sprintf(`
apiVersion: social.herald.dev/v1alpha1
kind: Media
metadata: {namespace: %s, name: %s}
spec: {fileName: %s, mimeType: %s, sizeBytes: %d, altText: %s}
`, team, name, file, mime, len(data), altText))
		var media v1alpha1.Media
		h.await(t, "the upload's address", func() (bool, error) {
			err := h.env.Client.Get(t.Context(), keyOf(name), &media)
			return media.Status.UploadURL != "", err
		})
		h.put(t, media.Status.UploadURL, string(mime), data)
		return name
	}))
	must.Succeed(t, err)
	h.kubectl(t, fmt.Sprintf(`
apiVersion: social.herald.dev/v1alpha1
kind: Post
metadata: {namespace: %s, name: %s}
spec: %s
`, team, d.name, spec))
}

// byWeb uploads the files and then sends the composer's form for all accounts, as the form's script does.
func (h *herald) byWeb(t *testing.T, d *draft) {
	t.Helper()
	form := url.Values{"key": {d.name}, "category": {string(d.category)}, "when": {"now"}, "target": h.accounts, "cards": {strconv.Itoa(len(d.parts))}}
	for _, account := range h.accounts {
		form.Set("language-"+account, d.language)
	}
	mime, file := d.fileType()
	for i, p := range d.parts {
		list, text := string(d.category), "caption"
		if d.category == v1alpha1.CategoryTree {
			list, text = fmt.Sprint("media-", i), fmt.Sprint("card-", i)
		}
		form.Set(text, p.text)
		for _, data := range p.files {
			id := h.uploadOnWeb(t, string(mime), file, data)
			form.Add(list, id)
			form.Add("alt-"+list+"-"+id, altText)
		}
	}
	h.web(t, "/teams/"+team+"/posts/new", form)
}

func (h *herald) uploadOnWeb(t *testing.T, mime, name string, data []byte) (id string) {
	t.Helper()
	announced := fmt.Sprintf(`{"name":%q,"mime_type":%q,"size_bytes":%d}`, name, mime, len(data))
	status, answer := h.send(t, h.person, http.MethodPost, h.site+"/teams/"+team+"/media", "application/json", []byte(announced), "")
	var made struct {
		ID  string `json:"id"`
		URL string `json:"upload_url"`
	}
	if err := json.Unmarshal(answer, &made); err != nil || status != http.StatusCreated || made.URL == "" {
		t.Fatalf("the upload gets the response %d %s", status, answer)
	}
	h.put(t, made.URL, mime, data)
	return made.ID
}

// byV2 creates a post through version 2 of the API.
func (h *herald) byV2(t *testing.T, d *draft) {
	t.Helper()
	mime, file := d.fileType()
	target := map[string]any{"connection_id": connection, "language": d.language}
	if d.language == "" {
		delete(target, "language")
	}
	body := map[string]any{"category": d.category, "targets": []any{target}}
	var cards []map[string]any
	for _, p := range d.parts {
		ids := []string{}
		for _, data := range p.files {
			ids = append(ids, h.upload(t, string(mime), file, data))
		}
		cards = append(cards, map[string]any{"caption": p.text, "media_ids": ids})
	}
	switch d.category {
	case v1alpha1.CategoryTree:
		body["tree_cards"] = cards
	case v1alpha1.CategoryImage:
		body["media_ids"] = cards[0]["media_ids"]
	case v1alpha1.CategoryVideo:
		body["media_id"] = cards[0]["media_ids"].([]string)[0]
	case v1alpha1.CategoryText:
	}
	if d.category != v1alpha1.CategoryTree {
		target["caption"] = d.parts[0].text
	}
	post, err := json.Marshal(body)
	must.Succeed(t, err)
	h.create(t, string(post))
}

// TestHerald publishes each kind of post to Bluesky's server through each door, and reads everything back with
// Bluesky's client. The web application also connects a second account, and publishes to both.
func TestHerald(t *testing.T) {
	s := start(t, "bakery.test", "zoe.test")
	acme, zoe := &s.Accounts[0], &s.Accounts[1]
	h := startHerald(t, &configv1alpha1.Platform{Server: s.URL}, nil)
	h.setUp(t, acme)
	h.signIn(t)
	h.connectOnWeb(t, zoe)

	drafts, records, shade := map[string]map[string]*draft{}, map[string]int{}, uint8(0)
	for door, through := range doors {
		drafts[door] = map[string]*draft{}
		for kind, of := range kinds {
			d := of.make(t, shade, kind+" by "+door+" for @zoe.test #launch")
			d.name, d.language = kind+"-by-"+door, "pt-BR"
			through.create(h, t, &d)
			drafts[door][kind] = &d
			shade += 10
			records[door] += len(d.parts)
		}
	}
	if status, answer := h.call(t, http.MethodGet, "/api/v1/posts", ""); status != http.StatusOK || !bytes.Contains(answer, []byte(`"data":[]`)) {
		t.Errorf("version 1 lists %d %s", status, answer)
	}
	h.posted(t, len(doors)*len(kinds))

	ours, hers := s.read(t, acme), s.read(t, zoe)
	if len(ours) != records["kubectl"]+records["web"]+records["v2"] || len(hers) != records["web"] {
		t.Errorf("the accounts have %d and %d posts, of %v", len(ours), len(hers), records)
	}
	reached := map[string][][]post{"kubectl": {ours}, "v2": {ours}, "web": {ours, hers}}
	for door, through := range doors {
		for kind, of := range kinds {
			t.Run(kind+" by "+door, func(t *testing.T) {
				for _, posts := range reached[door] {
					d, published := drafts[door][kind], byText(posts)
					d.check(t, published)
					if t.Failed() {
						t.Fatalf("%s; %s", through.reason, of.reason)
					}
					if got := published[d.parts[0].text][0].Facets; len(got) != 2 || got[0].Mention != zoe.DID || got[1].Tag != "launch" {
						t.Errorf("%s: the mention and the hashtag are %+v", of.reason, got)
					}
				}
			})
		}
	}
}

// connectOnWeb connects an account by its app password, and waits until the team has both accounts.
func (h *herald) connectOnWeb(t *testing.T, a *account) {
	t.Helper()
	h.web(t, "/teams/"+team+"/connections/connect", url.Values{"platform": {"bluesky"}, "name": {"@" + a.Handle}, "password": {a.AppPassword}})
	h.await(t, "the account that was connected on the web", func() (bool, error) {
		status, answer := h.call(t, http.MethodGet, "/api/v2/connections?platform=bluesky", "")
		var connected struct {
			Data []struct {
				ID string `json:"id"`
			} `json:"data"`
		}
		err := json.Unmarshal(answer, &connected)
		h.accounts = nil
		for _, c := range connected.Data {
			h.accounts = append(h.accounts, c.ID)
		}
		return err == nil && len(h.accounts) == 2 && bytes.Contains(answer, []byte(a.Handle)), fmt.Errorf("the connections are %d %s", status, answer)
	})
}
