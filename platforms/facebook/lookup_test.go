// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package facebook

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest"
)

// post renders a listed post.
func post(t *testing.T, id, text string, at time.Time) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return `{"id":"` + id + `","message":` + string(quoted) + `,"created_time":"` + at.Format("2006-01-02T15:04:05-0700") + `","permalink_url":"/` + id + `"}`
}

func list(posts ...string) http.HandlerFunc {
	return says(200, `{"data":[`+strings.Join(posts, ",")+`]}`)
}

func TestLookup(t *testing.T) {
	later := noon.Add(time.Minute)
	fits := func(matches int, id string, at time.Time) platforms.LookupResult {
		return platforms.LookupResult{Matches: matches, ExternalID: id, ExternalURL: "https://fb.example/" + id, PostedAt: at}
	}
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		taken  string
		want   platforms.LookupResult
		class  platforms.Class
	}{
		"nothing":      {reason: "an empty list has no matches", answer: list()},
		"there":        {reason: "the same text is the post", answer: list(post(t, "42_2", "other", later), post(t, "42_1", "hello", noon)), want: fits(1, "42_1", noon)},
		"blanks":       {reason: "Facebook trims", answer: list(post(t, "42_1", "hello\n", noon)), want: fits(1, "42_1", noon)},
		"other text":   {reason: "another text belongs to another post", answer: list(post(t, "42_1", "hello!", noon))},
		"no text":      {reason: "a post without a text is another post", answer: says(200, `{"data":[{"id":"42_1","created_time":"2026-11-20T12:00:00+0000"}]}`)},
		"too old":      {reason: "a post older than the attempt cannot be its post", answer: list(post(t, "42_1", "hello", noon.Add(-time.Second)))},
		"taken":        {reason: "a post of another job is not this job's", answer: list(post(t, "42_2", "hello", later), post(t, "42_1", "hello", noon)), taken: "42_2", want: fits(1, "42_1", noon)},
		"two":          {reason: "two matches need a user's decision; the earlier one is named", answer: list(post(t, "42_2", "hello", later), post(t, "42_1", "hello", noon)), want: fits(2, "42_1", noon)},
		"listed twice": {reason: "a post that is listed twice is one post", answer: list(post(t, "42_1", "hello", noon), post(t, "42_1", "hello", noon)), want: fits(1, "42_1", noon)},
		"no list":      {reason: "a response without a list is not an empty list", answer: says(200, `{}`), class: platforms.ClassUnknown},
		"cut":          {reason: "a truncated response is not proof", answer: says(200, `{"data":[{"id":"4`), class: platforms.ClassUnknown},
		"odd entry":    {reason: "an entry without an id may be the post", answer: says(200, `{"data":[7]}`), class: platforms.ClassUnknown},
		"no end":       {reason: "a list without an end proves no absence", answer: says(200, `{"data":[],"paging":{"next":"https://x.example/?after=more"}}`), class: platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newFacebook(t, tc.answer)
			job := jobFor("hello")
			job.BelongsToOther = func(id string) bool { return id == tc.taken }
			got, err := p.Lookup(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
			r := server.Requests()[0]
			if r.Method != http.MethodGet || r.Path != "/v25.0/42/published_posts" || r.Token != "access" ||
				r.Query.Get("since") != strconv.FormatInt(noon.Unix()-1, 10) || r.Query.Get("limit") != "50" ||
				r.Query.Get("fields") != "id,message,created_time,permalink_url,attachments{media_type,target{id},subattachments{media_type,target{id}}}" {
				t.Errorf("requested %+v", r)
			}
		})
	}
}

// showing returns a listed post with attachments added.
func showing(post, attachments string) string {
	return strings.TrimSuffix(post, "}") + `,"attachments":{"data":[` + attachments + `]}}`
}

// photo and album return the attachments of a post with one photo and with several photos.
func photo(id string) string { return `{"media_type":"photo","target":{"id":"` + id + `"}}` }

func album(ids ...string) string {
	photos := make([]string, len(ids))
	for i, id := range ids {
		photos[i] = photo(id)
	}
	return `{"media_type":"album","target":{"id":"9"},"subattachments":{"data":[` + strings.Join(photos, ",") + `]}}`
}

// TestLookupOfPhotos looks up posts with photos among posts with the same text.
func TestLookupOfPhotos(t *testing.T) {
	const text = "Sale!"
	later := noon.Add(time.Minute)
	found := func(certain bool) platforms.LookupResult {
		return platforms.LookupResult{Matches: 1, ExternalID: "42_1", ExternalURL: "https://fb.example/42_1", PostedAt: noon, Certain: certain}
	}
	one, bare := post(t, "42_1", text, noon), `{"id":"42_1","created_time":"2026-11-20T12:00:00+0000","permalink_url":"/42_1"}`
	link := `{"media_type":"link","target":{"url":"https://example.com"}}`
	tests := map[string]struct {
		reason, text string
		// photos are the job's photo ids; empty for a text post.
		photos string
		listed []string
		taken  string
		want   platforms.LookupResult
		class  platforms.Class
	}{
		"its photo":          {reason: "a photo belongs to one post", text: text, photos: "7", listed: []string{showing(one, photo("7"))}, want: found(true)},
		"its photos":         {reason: "an album names each", text: text, photos: "7,8", listed: []string{showing(one, album("7", "8"))}, want: found(true)},
		"one of its photos":  {reason: "Facebook may leave photos out of a list", text: text, photos: "7,8", listed: []string{showing(one, album("8"))}, want: found(true)},
		"edited text":        {reason: "users may edit the text", text: "Sail!", photos: "7", listed: []string{showing(one, photo("7"))}, want: found(true)},
		"no words":           {reason: "a photo does not need a text", photos: "7", listed: []string{showing(bare, photo("7"))}, want: found(true)},
		"taken":              {reason: "its photo is stronger evidence than another job's claim to the post", text: text, photos: "7", listed: []string{showing(one, photo("7"))}, taken: "42_1", want: found(true)},
		"listed twice":       {reason: "a post that is listed twice is one post", text: text, photos: "7", listed: []string{showing(one, photo("7")), showing(one, photo("7"))}, want: found(true)},
		"content not shown":  {reason: "Facebook may omit the content", text: text, photos: "7", listed: []string{one}, class: platforms.ClassUnknown},
		"photo, other text":  {reason: "another photo with another text belongs to another post", text: text, photos: "7", listed: []string{showing(post(t, "42_2", "Hello", later), photo("6"))}},
		"by hand":            {reason: "a photo with the same text may match, under an id that Facebook assigned to a copy", text: text, photos: "7", listed: []string{showing(one, photo("6"))}, class: platforms.ClassUnknown},
		"by hand, no words":  {reason: "the same without a text", photos: "7", listed: []string{showing(bare, photo("6"))}, class: platforms.ClassUnknown},
		"no id":              {reason: "a photo without an id is not proof", text: text, photos: "7", listed: []string{showing(one, `{"media_type":"photo"}`)}, class: platforms.ClassUnknown},
		"odd":                {reason: "an unknown attachment is not proof", text: text, photos: "7", listed: []string{showing(one, `7`)}, class: platforms.ClassUnknown},
		"by hand, too old":   {reason: "a post older than the attempt is not its post", text: text, photos: "7", listed: []string{showing(post(t, "42_1", text, noon.Add(-time.Minute)), photo("6"))}},
		"by hand, and its":   {reason: "the job's own photo identifies its post", text: text, photos: "7", listed: []string{showing(post(t, "42_2", text, later), photo("6")), showing(one, photo("7"))}, want: found(true)},
		"by hand, another's": {reason: "a photo of another job's post is ignored", text: text, photos: "7", listed: []string{showing(one, photo("6"))}, taken: "42_1"},
		"text":               {reason: "a text is found by its content", text: text, listed: []string{one}, want: found(false)},
		"text, photo":        {reason: "a text shows no photo", text: text, listed: []string{showing(one, photo("6"))}},
		"text, album":        {reason: "a text shows no album", text: text, listed: []string{showing(one, album("6", "7"))}},
		"text, video":        {reason: "a text shows no video", text: text, listed: []string{showing(one, `{"media_type":"video","target":{"id":"6"}}`)}},
		"address, video":     {reason: "unless an address in it leads to one", text: "see example.org/a", listed: []string{showing(post(t, "42_1", "see example.org/a", noon), `{"media_type":"video"}`)}, want: found(false)},
		"text, link":         {reason: "a link preview may be attached", text: text, listed: []string{showing(one, link)}, want: found(false)},
		"address, photo":     {reason: "an address in the text may lead to a photo", text: "see www.facebook.com/photo/6", listed: []string{showing(post(t, "42_1", "see www.facebook.com/photo/6", noon), photo("6"))}, want: found(false)},
		"text and photo":     {reason: "one of two posts with the same text is the text post", text: text, listed: []string{showing(post(t, "42_2", text, later), photo("6")), one}, want: found(false)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newFacebook(t, list(tc.listed...))
			job := jobFor(tc.text)
			if job.Checkpoint = tc.photos; tc.photos != "" {
				job.Content.Category = v1alpha1.CategoryImage
				job.Content.Media = make([]platforms.File, 1+strings.Count(tc.photos, ","))
			}
			job.BelongsToOther = func(id string) bool { return id == tc.taken }
			got, err := p.Lookup(t.Context(), job)
			if diff := cmp.Diff(tc.want, got); diff != "" || class(err) != tc.class {
				t.Errorf("%s: error %v (-want +got):\n%s", tc.reason, err, diff)
			}
		})
	}
}

func TestIdentify(t *testing.T) {
	page := platforms.Identity{AccountID: "42", DisplayName: "Acme", Username: "acme", IconURL: "https://cdn.example/a"}
	platformtest.Identify(t, newFacebook, "/v25.0/me?fields=id,name,username,picture{url}",
		identifies("Page", "it has an id, a name and a handle",
			says(200, `{"id":"42","name":"Acme","username":"acme","picture":{"data":{"url":"https://cdn.example/a"}}}`), page),
		identifies("no handle", "not every Page has a handle", says(200, `{"id":"42","name":"Acme"}`),
			platforms.Identity{AccountID: "42", DisplayName: "Acme"}),
		refuses("dead token", "a user has to reconnect the account", problem(400, 190, 460, false), platforms.ClassReconnect),
		refuses("checkpoint", "a user has to act on Facebook", problem(400, 100, 1404006, false), platforms.ClassRestricted),
		refuses("limited", "a limit expires", problem(400, 4, 0, false), platforms.ClassRateLimited),
		refuses("bad request", "a rejected request does not describe the Page", problem(400, 100, 0, false), platforms.ClassUnknown))
}
