// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

// site is a website: its pages by address.
type site map[string]fetch.Page

func (s site) Page(_ context.Context, address, _ string, _ int64) (fetch.Page, error) {
	page, ok := s[address]
	if !ok {
		return fetch.Page{}, errors.New("it does not resolve to a public address")
	}
	page.URL, _ = url.Parse(address)
	return page, nil
}

func TestReadMetadata(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, page string
		want         card
		image        string
	}{
		"open graph": {"pages describe themselves with Open Graph tags", `<head><title>A</title><meta property="og:title" content="B &amp; C"><meta property="og:image" content="/p.jpg"><meta property="og:description" content="D">`, card{Title: "B & C", Description: "D"}, "/p.jpg"},
		"plain": {"every page has a title", `<html><head><title>  A
 b </title><meta name="description" content="D"></head>`, card{Title: "A b", Description: "D"}, ""},
		"in the body": {"users of the page may have written it", `<head><title>A</title></head><body><meta property="og:title" content="B">`, card{Title: "A"}, ""},
		"twice":       {"the first one counts", `<meta property="og:title" content="A"><meta property="og:title" content="B">`, card{Title: "A"}, ""},
		"empty":       {"an empty page has no title", ``, card{}, ""},
		"no page":     {"binary data has no title", "\xff\xd8\xff<title", card{}, ""},
	} {
		got, image := readMetadata([]byte(tc.page))
		if diff := cmp.Diff(tc.want, got); diff != "" || image != tc.image {
			t.Errorf("%s: %s: the image is %q, and the card (-want +got):\n%s", name, tc.reason, image, diff)
		}
	}
}

func TestPrepareCard(t *testing.T) {
	t.Parallel()
	page := func(body string) fetch.Page { return fetch.Page{Type: "text/html", Body: []byte(body)} }
	const described = `<meta property="og:title" content="Launch"><meta property="og:image" content="/p.jpg">`
	jpeg := fetch.Page{Body: []byte("\xff\xd8\xff\xe0"), Whole: true}
	upload := recorder.Respond(http.StatusOK, `{"blob":{"$type":"blob","ref":{"$link":"bafkrei1"},"mimeType":"image/jpeg","size":4}}`)
	for name, tc := range map[string]struct {
		reason string
		site   site
		answer http.HandlerFunc
		want   string
		class  platforms.Class
	}{
		"picture":     {"the picture is uploaded like a file", site{"https://a.example/x": page(described), "https://a.example/p.jpg": jpeg}, upload, `card:{"title":"Launch","thumb":"bafkrei1;4;image/jpeg"}`, ""},
		"no picture":  {"a card does not need a picture", site{"https://a.example/x": page(described)}, upload, `card:{"title":"Launch"}`, ""},
		"large":       {"the lexicon allows 1 MB", site{"https://a.example/x": page(described), "https://a.example/p.jpg": {Body: jpeg.Body}}, upload, `card:{"title":"Launch"}`, ""},
		"script":      {"the name of a script does not make it a picture", site{"https://a.example/x": page(described), "https://a.example/p.jpg": {Body: []byte("<svg>"), Whole: true}}, upload, `card:{"title":"Launch"}`, ""},
		"unreachable": {"the post does not wait for the page", site{}, upload, "card:", ""},
		"a file":      {"only pages have cards", site{"https://a.example/x": {Type: "application/pdf"}}, upload, "card:", ""},
		"no upload":   {"the upload is retried", site{"https://a.example/x": page(described), "https://a.example/p.jpg": jpeg}, refuse(503, "NotEnoughResources"), "", platforms.ClassTransient},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _ := start(t, tc.answer)
			p.pages = tc.site
			job := hello
			job.Content.Text = "see https://a.example/x."
			if !p.Prepares(job.Content) {
				t.Fatal("the text contains an address")
			}
			got, failure := p.Prepare(t.Context(), job)
			class := platforms.Class("")
			if failure != nil {
				class = failure.Class
			}
			if got != tc.want || class != tc.class {
				t.Errorf("%s: got %s, %v, want %s", tc.reason, got, failure, tc.want)
			}
		})
	}
}

// TestPrepared tests the embed that results from a preparation.
func TestPrepared(t *testing.T) {
	t.Parallel()
	p := &Platform{pages: site{}}
	text := platforms.Content{Category: v1alpha1.CategoryText, Text: "see https://a.example/x."}
	for name, tc := range map[string]struct {
		reason, checkpoint string
		content            platforms.Content
		want               *embed
		ready              bool
	}{
		"card":         {"the card refers to the address in the text", `card:{"title":"A","description":"B"}`, text, &embed{Type: "app.bsky.embed.external", External: &external{URI: "https://a.example/x", Title: "A", Description: "B"}}, true},
		"no card":      {"the page could not be read", "card:", text, nil, true},
		"unprepared":   {"the page was not read yet", "", text, nil, false},
		"odd picture":  {"a checkpoint may have been changed by hand", `card:{"title":"A","thumb":"x"}`, text, nil, true},
		"nothing":      {"a text without address has no preparation", "", platforms.Content{Text: "hello"}, nil, true},
		"other's file": {"a checkpoint without files does not belong to a post with files", "card:", platforms.Content{Media: make([]platforms.File, 1)}, nil, false},
	} {
		got, ready := p.prepared(&platforms.Job{Content: tc.content, Checkpoint: tc.checkpoint})
		if !ready {
			got = nil
		}
		if diff := cmp.Diff(tc.want, got); diff != "" || ready != tc.ready {
			t.Errorf("%s: %s: ready %t, and (-want +got):\n%s", name, tc.reason, ready, diff)
		}
	}
}

// FuzzCard checks that any page results in a checkpoint that can be stored and read back.
func FuzzCard(f *testing.F) {
	for _, seed := range []string{"", "<title>A", `<meta property="og:title" content="` + strings.Repeat("&#1;", 300) + `">`, "<title>" + strings.Repeat("<\"\xff", 400), "<meta name=description content=x><title>a</title>"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, page string) {
		made, _ := readMetadata([]byte(page))
		checkpoint := made.checkpoint()
		got, ok := parseCard(checkpoint)
		if !ok || len(checkpoint) > maxCheckpoint {
			t.Fatalf("%q has %d bytes, and is a card: %t", checkpoint, len(checkpoint), ok)
		}
		if got.Title != "" && got.Title != made.Title || got.Description != "" && got.Description != made.Description {
			t.Errorf("%+v is read back as %+v", made, got)
		}
	})
}
