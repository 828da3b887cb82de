// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platformtest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/test/sandboxtest"
)

// Answer is a platform's response to a call.
type Answer struct {
	Status int
	// Body is sent as JSON, or as text if it is a string.
	Body any
}

// GraphRefusals returns errors of Meta's graphs, by code and subcode: limits of the app, the account and the Page,
// blocks, quotas, tokens, permissions, duplicates, missing containers, and outages ("Handling Errors" and "Error
// Codes").
func GraphRefusals() map[string]Answer {
	out := map[string]Answer{}
	for _, code := range [][2]int{
		{4, 0},
		{17, 0},
		{32, 0},
		{341, 0},
		{613, 0},
		{80002, 0},
		{4, 2207051},
		{368, 0},
		{368, 1390008},
		{9, 2207042},
		{190, 463},
		{10, 0},
		{200, 0},
		{25, 2207050},
		{506, 1455006},
		{24, 2207006},
		{24, 4279009},
		{100, 0},
		{100, 33},
		{100, 4279004},
		{9007, 2207027},
		{-2, 2207020},
		{1, 0},
		{2, 0},
	} {
		out[fmt.Sprintf("code %d/%d", code[0], code[1])] = Answer{Status: 400, Body: map[string]any{
			"error": map[string]any{"message": "m", "type": "OAuthException", "code": code[0], "error_subcode": code[1], "is_transient": code[0] < 3},
		}}
	}
	return out
}

// refusals returns responses that may arrive although the post was published: the platform's refusals, and responses in
// no platform's format, such as a proxy's. The suite's own refusals are tested with only one kind of post, because each
// takes a while.
func (s *Suite) refusals(withOwn bool) map[string]sandboxtest.Fault {
	const page = "<html><body><h1>%d</h1></body></html>"
	out := map[string]sandboxtest.Fault{
		"no words, 400":        {Status: 400, Body: ""},
		"no words, 429":        {Status: 429, Body: ""},
		"an empty object, 403": {Status: 403, Body: map[string]any{}},
		"a list, 400":          {Status: 400, Body: []any{}},
		"a page, 403":          {Status: 403, Body: fmt.Sprintf(page, 403)},
		"a page, 404":          {Status: 404, Body: fmt.Sprintf(page, 404)},
		"a page, 502":          {Status: 502, Body: fmt.Sprintf(page, 502)},
		"a page, 200":          {Status: 200, Body: fmt.Sprintf(page, 200)},
	}
	for _, refusal := range []string{"rate_limit", "spam", "permission", "invalid"} {
		out[refusal] = sandboxtest.Fault{Refusal: refusal}
	}
	for _, status := range []int{400, 401, 403, 404, 409, 410, 413, 416, 429, 500, 503} {
		out[fmt.Sprintf("in the platform's words, %d", status)] = sandboxtest.Fault{Status: status}
	}
	if !withOwn {
		return out
	}
	for name, answer := range s.Refusals {
		out[name] = sandboxtest.Fault{Status: answer.Status, Body: answer.Body}
	}
	return out
}

// testPublishedAndRefused makes the platform publish and yet respond with a refusal. The response must not count as a
// success, and a lookup from the time of the call must find the post.
func (s *Suite) testPublishedAndRefused(t *testing.T) {
	for i, category := range s.simplest(s.New(t, "http://herald.invalid")) {
		t.Run(string(category), func(t *testing.T) {
			f, p := s.publisher(t)
			all := s.refusals(i == 0)
			for _, name := range slices.Sorted(maps.Keys(all)) {
				t.Run(name, func(t *testing.T) {
					f.publishedAndRefused(t, p, f.post(t, category, "published, and refused: "+name), all[name])
				})
			}
		})
	}
}

// FuzzPublishedAndRefused is testPublishedAndRefused with arbitrary unsuccessful responses.
func (s *Suite) FuzzPublishedAndRefused(f *testing.F) {
	f.Add(403, "<html>")
	f.Add(400, `{"error":{"code":4,"error_subcode":2207051}}`)
	f.Add(429, `{"title":"Too Many Requests","errors":[null,{"code":"88"}]}`)
	f.Add(308, `{"error":{"code":"ok"}}`)
	f.Fuzz(func(t *testing.T, status int, body string) {
		if status < 300 || status > 599 {
			t.Skip("a success, or no status of HTTP")
		}
		fix, p := s.publisher(t)
		fix.publishedAndRefused(t, p, fix.job(t, "published, and refused"), sandboxtest.Fault{Status: status, Body: body})
	})
}

func (f *fixture) publishedAndRefused(t *testing.T, p platforms.Publisher, job platforms.Job, fault sandboxtest.Fault) {
	t.Helper()
	job = f.prepare(t, job)
	before := f.published(t)
	fault.Operation, fault.Kind = "publish", "publishes_and_refuses"
	f.fault(t, fault)
	got := p.Publish(t.Context(), job)
	f.clearFaults(t)
	f.fetched()
	posts := f.published(t)
	if len(posts) != len(before)+1 {
		t.Fatalf("the sandbox holds %d posts, and held %d before the call", len(posts), len(before))
	}
	id := posts[len(posts)-1].ID
	switch {
	case got.Outcome == platforms.NotSent:
		t.Errorf("got %+v (%v) for a call that was answered", got, got.Err)
	case got.Outcome == platforms.Posted && got.ExternalID != id:
		// The publisher may have verified the outcome itself.
		t.Errorf("a refusal is taken for the publication of %q", cmp.Or(got.ExternalID, "no post"))
	case got.Outcome != platforms.Posted && got.Err == nil:
		t.Errorf("got %+v, without an error", got)
	}
	f.checkNoSecrets(t, asError(got.Err))

	job.OperationID = got.OperationID
	found, err := p.Lookup(t.Context(), job)
	if err != nil || found.Matches != 1 || found.ExternalID != id {
		t.Errorf("found %+v, %v; want %s", found, err, id)
	}
}
