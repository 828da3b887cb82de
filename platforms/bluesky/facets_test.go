// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/platforms"
)

// resolveAll resolves every handle except those that contain "nobody".
func resolveAll(handle string) (string, *platforms.Error) {
	if strings.Contains(handle, "nobody") {
		return "", nil
	}
	return "did:plc:" + handle, nil
}

func TestFacets(t *testing.T) {
	t.Parallel()
	link := func(start, end int, uri string) facet {
		return facet{byteSlice{start, end}, []feature{{Type: linkFeature, URI: uri}}}
	}
	mention := func(start, end int, did string) facet {
		return facet{byteSlice{start, end}, []feature{{Type: mentionFeature, DID: did}}}
	}
	tag := func(start, end int, tag string) facet {
		return facet{byteSlice{start, end}, []feature{{Type: tagFeature, Tag: tag}}}
	}
	for name, tc := range map[string]struct {
		reason, text string
		want         []facet
	}{
		"plain":       {"most texts have no facets", "hello", nil},
		"bytes":       {"an umlaut has two bytes, and an emoji four", "ü🎉 https://a.example", []facet{link(7, 24, "https://a.example")}},
		"full stop":   {"the full stop ends the sentence, not the address", "see https://a.example.", []facet{link(4, 21, "https://a.example")}},
		"no scheme":   {"a link needs a scheme", "www.a.example", []facet{link(0, 13, "https://www.a.example")}},
		"mention":     {"handles are case-insensitive, and accounts are stored by their id", "hi @Acme.Test!", []facet{mention(3, 13, "did:plc:acme.test")}},
		"nobody":      {"a handle that does not exist stays plain", "@nobody.test", nil},
		"no domain":   {"every handle is a domain", "@acme", nil},
		"e-mail":      {"an e-mail address only looks like a mention", "me@acme.test", nil},
		"in a link":   {"the address comes first", "https://a.example/@acme.test#tag", []facet{link(0, 32, "https://a.example/@acme.test#tag")}},
		"tag":         {"the sign of a tag is not part of it", "#launch #über", []facet{tag(0, 7, "launch"), tag(8, 14, "über")}},
		"wide sign":   {"Japanese keyboards have a wide sign", "＃日本", []facet{tag(0, 9, "日本")}},
		"long tag":    {"the lexicon allows 64 characters", "#" + strings.Repeat("a", 65), nil},
		"longest tag": {"the tag has 64 characters", "#" + strings.Repeat("a", 64), []facet{tag(0, 65, strings.Repeat("a", 64))}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, failure := facets(tc.text, resolveAll)
			if failure != nil {
				t.Fatal(failure)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s", tc.reason, diff)
			}
		})
	}
}

// TestFacetsWithoutAnswer tests a text whose mention temporarily cannot be resolved. It must not be published without
// the link.
func TestFacetsWithoutAnswer(t *testing.T) {
	t.Parallel()
	down := platforms.Errorf(platforms.ClassTransient, "down")
	if got, failure := facets("hi @acme.test", func(string) (string, *platforms.Error) { return "", down }); failure != down || got != nil {
		t.Errorf("got %v, %v", got, failure)
	}
}

// FuzzFacets checks that facets are within the text, in order and without overlaps, that each begins and ends at a
// character, and has a feature with exactly one value, within the lexicon's limits.
func FuzzFacets(f *testing.F) {
	for _, seed := range []string{"", "ü🎉 https://a.example/#x @acme.test #日本", "https://a.exampleと https://b.example", "#a#b @@a.b", "\xff#a \xc3", "@a.b.c.d.", "＃a＃b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, failure := facets(text, resolveAll)
		if failure != nil {
			t.Fatal(failure)
		}
		end := 0
		for _, one := range all {
			at := one.Index
			if at.Start < end || at.End <= at.Start || at.End > len(text) {
				t.Fatalf("%q has a facet at %v after %d", text, at, end)
			}
			end = at.End
			if utf8.ValidString(text) && !utf8.ValidString(text[at.Start:at.End]) {
				t.Errorf("%q is cut within a character at %v", text, at)
			}
			what := one.Features[0]
			values := 0
			for _, value := range []string{what.URI, what.DID, what.Tag} {
				if value != "" {
					values++
				}
			}
			if values != 1 || len(what.Tag) > maxTagBytes {
				t.Errorf("%q has the feature %+v", text, what)
			}
		}
		if _, err := json.Marshal(all); err != nil {
			t.Error(err)
		}
	})
}
