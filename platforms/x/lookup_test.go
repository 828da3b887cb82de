// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package x

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/unicode/norm"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// post renders a listed post.
func post(t *testing.T, id, text string, fields ...string) string {
	t.Helper()
	quoted, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return `{"id":"` + id + `","created_at":"2026-12-01T09:00:00.000Z","text":` + string(quoted) + strings.Join(append([]string{""}, fields...), ",") + `}`
}

func urls(entries ...string) string {
	return `"entities":{"urls":[` + strings.Join(entries, ",") + `]}`
}

func timeline(posts ...string) string {
	if len(posts) == 0 {
		return `{"meta":{"result_count":0}}`
	}
	return `{"data":[` + strings.Join(posts, ",") + `]}`
}

func TestLookup(t *testing.T) {
	var (
		before = snowflake(noon.Add(-time.Millisecond))
		first  = snowflake(noon)
		second = snowflake(noon.Add(time.Minute))
	)
	tests := map[string]struct {
		reason, text, listing, taken string
		want                         int
		id                           string
	}{
		"empty":         {reason: "an empty page proves absence", text: "hello", listing: timeline()},
		"there":         {reason: "the same text is the post", text: "hello", listing: timeline(post(t, first, "hello")), want: 1, id: first},
		"another text":  {reason: "another text is another post", text: "hello", listing: timeline(post(t, first, "hello!"))},
		"another case":  {reason: "another case belongs to another post", text: "hello", listing: timeline(post(t, first, "Hello"))},
		"too old":       {reason: "a post older than the attempt cannot be its post", text: "hello", listing: timeline(post(t, before, "hello"))},
		"taken":         {reason: "a post of another job is not this job's", text: "hello", listing: timeline(post(t, second, "hello"), post(t, first, "hello")), taken: second, want: 1, id: first},
		"two":           {reason: "two matches need a user's decision; the earlier one is named", text: "hello", listing: timeline(post(t, second, "hello"), post(t, first, "hello")), want: 2, id: first},
		"listed twice":  {reason: "a post that two pages show is one post", text: "hello", listing: timeline(post(t, first, "hello"), post(t, first, "hello")), want: 1, id: first},
		"reply":         {reason: "a job never publishes replies", text: "hello", listing: timeline(post(t, first, "hello", `"referenced_tweets":[{"type":"replied_to","id":"1"}]`))},
		"quote":         {reason: "X makes a quote of a text that ends in the address of a post", text: "hello", listing: timeline(post(t, first, "hello", `"referenced_tweets":[{"type":"quoted","id":"1"}]`)), want: 1, id: first},
		"escapes":       {reason: "X lists three characters as entities", text: "a & b < c > d", listing: timeline(post(t, first, "a &amp; b &lt; c &gt; d")), want: 1, id: first},
		"typed escapes": {reason: "a typed entity is escaped twice, and unescaped once", text: "&lt; &copy;", listing: timeline(post(t, first, "&amp;lt; &amp;copy;")), want: 1, id: first},
		"unescaped":     {reason: "a text that X did not escape still fits", text: "&amp;", listing: timeline(post(t, first, "&amp;")), want: 1, id: first},
		"blanks":        {reason: "X trims and may change blanks", text: "  a\r\nb\u00a0 c ", listing: timeline(post(t, first, "a\nb c")), want: 1, id: first},
		"composition":   {reason: "X composes letters", text: "cafe\u0301", listing: timeline(post(t, first, "café")), want: 1, id: first},
		"address": {
			reason: "an address is listed as one of t.co", text: "see https://example.com/Launch?a=1&b=2.",
			listing: timeline(post(t, first, "see https://t.co/abc.", urls(`{"url":"https://t.co/abc","expanded_url":"https://example.com/Launch?a=1&b=2","display_url":"example.com/Launch?a=1…"}`))),
			want:    1, id: first,
		},
		"another address": {
			reason: "another address makes another post", text: "see https://example.com/launch2",
			listing: timeline(post(t, first, "see https://t.co/abc", urls(`{"url":"https://t.co/abc","expanded_url":"https://example.com/launch","display_url":"example.com/launch"}`))),
		},
		"bare domains": {
			reason: "X adds a missing scheme", text: "Example.com, example.org/ and HTTP://example.net/",
			listing: timeline(post(t, first, "https://t.co/a, https://t.co/b and https://t.co/c", urls(
				`{"url":"https://t.co/a","expanded_url":"http://example.com"}`,
				`{"url":"https://t.co/b","expanded_url":"http://example.org/"}`,
				`{"url":"https://t.co/c","expanded_url":"http://example.net"}`))),
			want: 1, id: first,
		},
		"same address twice": {
			reason: "one entity may apply to two places", text: "example.com or example.com/",
			listing: timeline(post(t, first, "https://t.co/a or https://t.co/a", urls(`{"url":"https://t.co/a","expanded_url":"http://example.com"}`))),
			want:    1, id: first,
		},
		"international domain": {
			reason: "the displayed form shows the text as typed", text: "https://müller.example",
			listing: timeline(post(t, first, "https://t.co/a", urls(`{"url":"https://t.co/a","expanded_url":"https://xn--mller-kva.example","display_url":"müller.example"}`))),
			want:    1, id: first,
		},
		"escaped path": {
			reason: "X may percent-encode a URL", text: "https://example.com/ä",
			listing: timeline(post(t, first, "https://t.co/a", urls(`{"url":"https://t.co/a","expanded_url":"https://example.com/%C3%A4"}`))),
			want:    1, id: first,
		},
		"typed t.co": {
			reason: "a typed address of t.co stays unchanged", text: "https://t.co/a",
			listing: timeline(post(t, first, "https://t.co/a", urls(`{"url":"https://t.co/a","expanded_url":"https://elsewhere.example"}`))),
			want:    1, id: first,
		},
		"long post": {
			reason: "the full text of a long post is in note_tweet", text: "the whole text with https://example.com",
			listing: timeline(post(t, first, "the whole…", `"note_tweet":{"text":"the whole text with https://t.co/a","entities":{"urls":[{"url":"https://t.co/a","expanded_url":"https://example.com"}]}}`)),
			want:    1, id: first,
		},
		"attached media": {
			reason: "a post with media is not the post without", text: "hello",
			listing: timeline(post(t, first, "hello https://t.co/m", urls(`{"url":"https://t.co/m","expanded_url":"https://x.com/acme/status/1/photo/1","media_key":"3_1"}`))),
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, server := newX(t, Config{WebURL: "https://x.example"}, says(200, tc.listing))
			job := jobFor(tc.text)
			job.SearchFrom = noon
			job.BelongsToOther = func(id string) bool { return id == tc.taken }
			got, err := p.Lookup(t.Context(), job)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			want := platforms.LookupResult{Matches: tc.want}
			if tc.id != "" {
				want.ExternalID, want.ExternalURL = tc.id, "https://x.example/acme/status/"+tc.id
				want.PostedAt, _ = snowflakeTime(tc.id)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			for _, r := range server.Requests() {
				if r.Method != http.MethodGet {
					t.Errorf("a lookup sent a %s", r.Method)
				}
			}
		})
	}
}

// TestLookupWithoutFields looks up a post on a server that ignores the field names.
func TestLookupWithoutFields(t *testing.T) {
	p, _ := newX(t, Config{}, says(200, timeline(`{"id":"`+snowflake(noon)+`","text":"something else"}`)))
	job := jobFor("hello")
	job.SearchFrom = noon
	if got, err := p.Lookup(t.Context(), job); err == nil {
		t.Errorf("got %+v: without links and files, the list is not proof", got)
	}
}

// TestLookupCard looks up a card that replies to post 1, among posts in X's known formats.
func TestLookupCard(t *testing.T) {
	const to, elsewhere = `"referenced_tweets":[{"type":"replied_to","id":"1"}]`, `"referenced_tweets":[{"type":"replied_to","id":"2"}]`
	id := snowflake(noon)
	tests := map[string]struct {
		reason, text, listed string
		fields               []string
		want                 int
		class                platforms.Class
	}{
		"unchanged text":    {"without mentions X lists the sent text", "hello", "hello", []string{to}, 1, ""},
		"mention in front":  {"X prepends the name of a previously mentioned user to a reply", "hello", "@bob hello", []string{to}, 1, ""},
		"mentions in front": {"X prepends the names of several users", "hello", "@bob @Alice_2 hello", []string{to}, 1, ""},
		"own mention":       {"a mention that was sent is part of the text", "@carol hello", "@bob @carol hello", []string{to}, 1, ""},
		"only a mention":    {"the mention may be the whole text", "@carol", "@bob @carol", []string{to}, 1, ""},
		"range": {
			"the displayed range is ignored", "hello", "@bob hello",
			[]string{to, `"display_text_range":[5,10]`},
			1, "",
		},
		"another text":  {"the text after the names must be equal", "hello", "@bob hello!", []string{to}, 0, ""},
		"inner mention": {"names elsewhere are recognized", "hello you", "hello @bob you", []string{to}, 0, ""},
		"from another":  {"a card with another parent belongs to another post", "hello", "@bob hello", []string{elsewhere}, 0, ""},
		"new name": {
			"X's OpenAPI document 2.167 has another name for the parent", "hello", "hello",
			[]string{`"referenced_posts":[{"type":"replied_to","id":"1"}]`},
			1, "",
		},
		"new names of a long post": {
			"X's OpenAPI document 2.167 has another name for the full text", "the whole text", "the whole…",
			[]string{`"referenced_posts":[{"type":"replied_to","id":"1"}]`, `"note_post":{"text":"the whole text"}`},
			1, "",
		},
		"no reference": {
			"a card without a reported parent may match, so absence is not proved",
			"hello", "hello", nil, 0, platforms.ClassUnknown,
		},
		"the first post of a conversation": {
			"X reports no parent, so the post is another one with the same text", "hello", "hello",
			[]string{`"conversation_id":"` + id + `"`},
			0, "",
		},
		"in a conversation": {
			"a reply without its parent", "hello", "hello", []string{`"conversation_id":"1"`}, 0, platforms.ClassUnknown,
		},
		"a reference of another kind": {
			"X reports a quoting post as not being a reply", "hello", "hello",
			[]string{`"referenced_tweets":[{"type":"quoted","id":"1"}]`},
			0, "",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newX(t, Config{}, says(200, timeline(post(t, id, tc.listed, tc.fields...))))
			job := jobFor(tc.text)
			job.Content.InReplyTo, job.SearchFrom = "1", noon
			got, err := p.Lookup(t.Context(), job)
			if got.Matches != tc.want || class(err) != tc.class || tc.want > 0 && got.ExternalID != id {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
		})
	}
}

// TestMentionsOfAFirstPost lists a post that starts with a name and is not a reply. X adds names only to replies, so it
// is a different post.
func TestMentionsOfAFirstPost(t *testing.T) {
	p, _ := newX(t, Config{}, says(200, timeline(post(t, snowflake(noon), "@bob hello"))))
	if got, err := p.Lookup(t.Context(), jobFor("hello")); err != nil || got.Matches != 0 {
		t.Errorf("got %+v, %v", got, err)
	}
}

// TestLookupByEitherNames looks up a post on a server that supports only one set of field names.
func TestLookupByEitherNames(t *testing.T) {
	for _, parameter := range []string{"tweet.fields", "post.fields"} {
		t.Run(parameter, func(t *testing.T) {
			p, _ := newX(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
				answer := says(400, `{"title":"Invalid Request","type":"https://api.x.com/2/problems/invalid-request",`+
					`"errors":[{"message":"The query parameter is not one of those that are known"}]}`)
				if r.URL.Query().Has(parameter) {
					answer = says(200, timeline(post(t, snowflake(noon), "hello")))
				}
				answer(w, r)
			})
			if got, err := p.Lookup(t.Context(), jobFor("hello")); err != nil || got.Matches != 1 {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestLookupErrors(t *testing.T) {
	tests := map[string]struct {
		reason string
		answer http.HandlerFunc
		class  platforms.Class
	}{
		"not a page":     {"an object without posts and without meta is not proof", says(200, `{}`), platforms.ClassUnknown},
		"cut page":       {"a truncated page is not proof", says(200, `{"data":[{"id":"19`), platforms.ClassUnknown},
		"hidden account": {"X hides a timeline with status 200", says(200, `{"errors":[{"type":"https://api.twitter.com/2/problems/not-authorized-for-resource"}]}`), platforms.ClassReconnect},
		"page with gaps": {"errors next to the data mean that posts are missing", says(200, `{"data":[],"errors":[{"title":"Not Found"}],"meta":{"result_count":0}}`), platforms.ClassUnknown},
		"wrong count":    {"a wrong count is not proof", says(200, `{"data":[{"id":"1"}],"meta":{"result_count":2}}`), platforms.ClassUnknown},
		"refused":        {"a request that X refuses under either set of names is not evidence", says(400, `{"title":"Invalid Request"}`), platforms.ClassPermanent},
		"no end":         {"a timeline that X does not list to its end proves no absence", says(200, `{"data":[],"meta":{"result_count":0,"next_token":"more"}}`), platforms.ClassUnknown},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			p, _ := newX(t, Config{}, tc.answer)
			if _, err := p.Lookup(t.Context(), jobFor("hello")); class(err) != tc.class {
				t.Errorf("%s: got %v, want class %s", tc.reason, err, tc.class)
			}
		})
	}
}

func TestLookupReadsEveryPage(t *testing.T) {
	pages := map[string]string{
		"":   `{"data":[` + post(t, snowflake(noon.Add(2*time.Hour)), "newer") + `],"meta":{"result_count":1,"next_token":"p2"}}`,
		"p2": `{"data":[` + post(t, snowflake(noon.Add(time.Hour)), "hello") + `],"meta":{"result_count":1,"next_token":"p3"}}`,
		"p3": `{"data":[` + post(t, snowflake(noon), "hello") + `],"meta":{"result_count":1}}`,
	}
	p, server := newX(t, Config{}, func(w http.ResponseWriter, r *http.Request) {
		says(200, pages[r.URL.Query().Get("pagination_token")])(w, r)
	})
	job := jobFor("hello")
	job.SearchFrom = noon
	got, err := p.Lookup(t.Context(), job)
	if err != nil || got.Matches != 2 || got.ExternalID != snowflake(noon) {
		t.Errorf("got %+v, %v; want both matches, the earlier named", got, err)
	}
	if len(server.Requests()) != len(pages) {
		t.Errorf("%d requests for %d pages", len(server.Requests()), len(pages))
	}
	for _, r := range server.Requests() {
		query := r.Query
		if r.Path != "/2/users/42/tweets" || query.Get("max_results") != "100" || query.Get("since_id") != idBefore(noon) {
			t.Errorf("requested %+v", r)
		}
		if strings.Contains(query.Get("exclude"), "replies") {
			t.Error("the cards of trees are replies; they must be listed")
		}
	}
}

// FuzzMatch converts text with a URL to the form that X lists, and matches it.
func FuzzMatch(f *testing.F) {
	f.Add("see ", "launch", ".", true, false, `{"entities":{"urls":[{"url":1}]}}`)
	f.Add("a &lt; b & c", "", "\u00a0", false, true, `{"text":"","note_tweet":[]}`)
	f.Add("//", "x", "/", true, true, `{"entities":{"urls":[{"url":"a","expanded_url":"%zz"}]},"text":"aa"}`)
	f.Fuzz(func(t *testing.T, before, path, after string, scheme, slash bool, noise string) {
		if !utf8.ValidString(before) || !utf8.ValidString(after) {
			return // the Kubernetes API stores only valid UTF-8
		}
		address := "example.com/" + regexp.MustCompile("[^A-Za-z0-9_-]").ReplaceAllString(path, "-")
		expanded := "http://" + strings.TrimSuffix(address, "/")
		typed := strings.TrimSuffix(address, "/")
		if scheme {
			typed = "http://" + typed
		}
		if slash {
			typed += "/"
		}
		sent := before + typed + after
		listed := new(listedPost)
		listed.Text = jsondoc.Text(escape(before) + "https://t.co/0" + escape(after))
		listed.Entities.URLs = []shortened{{URL: "https://t.co/0", Expanded: jsondoc.Text(expanded)}}
		// An accent right after the URL would become part of it, and a short URL in the text itself would be a separate
		// entity.
		composes := norm.NFC.String(typed+after) != norm.NFC.String(typed)+norm.NFC.String(after)
		if !composes && !strings.Contains(before+after, "t.co") && !wantText(sent).matches(listed) {
			t.Errorf("%q is not found in %v", sent, listed)
		}
		if wantText(sent + "!").matches(listed) {
			t.Errorf("%q is found in %v", sent+"!", listed)
		}
		// Any listing must be parsed without a panic, and an empty text must not match anything.
		if doc, ok := jsondoc.Decode[*listedPost]([]byte(noise)); ok {
			wantText(sent).matches(doc)
			if wantText(" ").matches(doc) {
				t.Errorf("an empty text is found in %s", noise)
			}
		}
	})
}

func wantText(text string) expectedText { return expectedFrom(&platforms.Content{Text: text}) }

func escape(text string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(text)
}
