// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// visible returns the publishing calls by platform and name. Each prepares its content and returns the response to the publishing call.
func visible() map[string]func(b *box) reply {
	film := movie("isom", 1080, 1920, 3*time.Second, 300_000)
	return map[string]func(b *box) reply{
		"x text":  func(b *box) reply { return b.tweet(textBody("hello")) },
		"x image": func(b *box) reply { return b.tweet(xBody("hello", "", b.xImage(xPicture(b.t, "png", 4, 4, 9)))) },
		"threads container": func(b *box) reply {
			id := b.container(url.Values{"text": {"hello"}})
			b.clock.Step(time.Second)
			return b.publishContainer(id)
		},
		"instagram container": func(b *box) reply {
			site := newShelf(b.t, map[string][]byte{"a": jpegOf(b.t, 640, 640)})
			return b.igPublish(b.igReady(url.Values{"image_url": {site.url + "/a"}, "caption": {"hello"}}))
		},
		"facebook feed": func(b *box) reply {
			return b.form("facebook", pagePath+"/feed", url.Values{"message": {"hello"}})
		},
		"facebook feed with photos": func(b *box) reply {
			return b.form("facebook", pagePath+"/feed", fbAttached("hello", b.fbPhoto(jpegOf(b.t, 640, 640)), b.fbPhoto(jpegOf(b.t, 320, 640))))
		},
		"facebook draft": func(b *box) reply {
			id := b.fbDraft(url.Values{"message": {"hello"}})
			return b.form("facebook", "/facebook/v25.0/"+id, url.Values{"is_published": {"true"}})
		},
		"facebook photo": func(b *box) reply {
			contentType, body := fbForm(b.t, jpegOf(b.t, 640, 640), "caption", "hello")
			return b.as("facebook", http.MethodPost, pagePath+"/photos", contentType, body)
		},
		"tiktok last chunk": func(b *box) reply {
			return b.uploadOnTikTok(b.onTikTok("video/init/", "{"+directPost+","+fromFile(len(film), len(film), 1)+"}"), film)
		},
		"tiktok photos": func(b *box) reply {
			site := fileServer(b.t, map[string][]byte{"/a": still(b.t, "jpeg", 640, 640)})
			return b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", site, "/a"))
		},
		"tiktok video to fetch": func(b *box) reply {
			site := fileServer(b.t, map[string][]byte{"/a": film})
			return b.pulledByTikTok("video/init/", `{`+directPost+`,"source_info":{"source":"PULL_FROM_URL","video_url":"`+site+`/a"}}`)
		},
		"youtube last chunk": func(b *box) reply {
			r, err := b.chunkOnYouTube(b.session(plainVideo, len(film)), film, 0, len(film))
			if err != nil {
				b.t.Fatal(err)
			}
			return r
		},
		"youtube whole video": func(b *box) reply {
			contentType, body := related(b.t, plainVideo, "video/mp4", film)
			return b.atGoogle(http.MethodPost, "/youtube/upload/youtube/v3/videos?uploadType=multipart&part=snippet,status", body, "Content-Type: "+contentType)
		},
	}
}

// afterwards returns a platform's posts after all processing.
func (b *box) afterwards(platform string) []any {
	b.t.Helper()
	b.clock.Step(time.Hour)
	return b.posted(platform)
}

func TestPublishesAndRefuses(t *testing.T) {
	meta, google := []string{"error", "code"}, []string{"error", "errors", "0", "reason"}
	// The wording of each refusal by platform: a response path and its value. A host without a wording has nil.
	words := map[string]map[string]struct {
		status int
		at     []string
		want   any
	}{
		"x": {
			"rate_limit": {429, []string{"title"}, "Too Many Requests"},
			"spam": {403, []string{"detail"}, "This request looks like it might be automated. To protect our users from spam and other malicious activity, " +
				"we can't complete this action right now. Please try again later."},
			"permission": {403, []string{"detail"}, "You are not permitted to perform this action."},
			"invalid":    {400, []string{"title"}, "Invalid Request"},
		},
		"threads":   {"rate_limit": {403, meta, 4.0}, "spam": {400, []string{"error", "error_subcode"}, 2207051.0}, "permission": {403, meta, 10.0}, "invalid": {400, meta, 100.0}},
		"instagram": {"rate_limit": {400, meta, 17.0}, "spam": {400, []string{"error", "error_subcode"}, 2207051.0}, "permission": {403, meta, 10.0}, "invalid": {400, meta, 100.0}},
		"facebook":  {"rate_limit": {400, meta, 32.0}, "spam": {400, meta, 368.0}, "permission": {403, meta, 200.0}, "invalid": {400, meta, 100.0}},
		"tiktok": {
			"rate_limit": {429, meta, "rate_limit_exceeded"}, "spam": {403, meta, "spam_risk_too_many_posts"},
			"permission": {401, meta, "scope_not_authorized"}, "invalid": {400, meta, "invalid_params"},
		},
		"tiktok last chunk": {"rate_limit": {429, nil, nil}, "spam": {403, nil, nil}, "permission": {403, nil, nil}, "invalid": {400, nil, nil}},
		"youtube": {
			"rate_limit": {403, google, "rateLimitExceeded"}, "spam": {400, google, "uploadLimitExceeded"},
			"permission": {403, google, "forbidden"}, "invalid": {400, google, "badRequest"},
		},
	}
	for call, publish := range visible() {
		platform, _, _ := strings.Cut(call, " ")
		of, ok := words[call]
		if !ok {
			of = words[platform]
		}
		for refusal, want := range of {
			t.Run(call+" "+refusal, func(t *testing.T) {
				b := start(t, "")
				b.fault(`{"platform":"` + platform + `","operation":"*","kind":"publishes_and_refuses","refusal":"` + refusal + `"}`)
				r := publish(b)
				if r.status != want.status || want.at == nil && r.body != "" || want.at != nil && r.at(want.at...) != want.want {
					t.Errorf("%d %s, want %d with %v", r.status, r.body, want.status, want.want)
				}
				if got := b.afterwards(platform); len(got) != 1 {
					t.Errorf("%d posts are there, want the one that was refused", len(got))
				}
			})
		}
	}
}

func TestPublishesAndRefusesByStatusAndBody(t *testing.T) {
	tests := []struct {
		name, reason, fault string
		status              int
		body                string
		header              map[string]string
	}{
		{
			"status", "the platform's general words for it", `"status":503`, 503,
			`{"title":"Service Unavailable","detail":"Service Unavailable","type":"about:blank","status":503}`,
			map[string]string{"X-Rate-Limit-Limit": "100"},
		},
		{
			"JSON", "it is answered as it is, and X's headers stay away", `"status":429,"body":{"title":"Too Many Requests"}`, 429,
			`{"title":"Too Many Requests"}`,
			map[string]string{"Content-Type": "application/json", "X-Rate-Limit-Reset": ""},
		},
		{
			"text", "a string is answered without its quotes", `"status":502,"body":"<h1>Bad Gateway</h1>","headers":{"content-type":"text/html"}`, 502,
			`<h1>Bad Gateway</h1>`,
			map[string]string{"Content-Type": "text/html"},
		},
		{"nothing", "an empty body is one", `"status":403,"body":""`, 403, "", map[string]string{"X-Rate-Limit-Reset": ""}},
		{"headers", "they may come alone", `"status":429,"headers":{"Retry-After":"7"}`, 429, "", map[string]string{"Retry-After": "7"}},
		{"success", "a platform may call an error a success", `"status":200,"body":{"errors":[]}`, 200, `{"errors":[]}`, nil},
		{
			"late", "a limit names when to come back", `"refusal":"rate_limit","retry_after_s":7`, 429,
			`{"title":"Too Many Requests","detail":"Too Many Requests","type":"about:blank","status":429}`,
			map[string]string{"X-Rate-Limit-Reset": fmt.Sprint(newClock().Now().Unix() + 8)},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			b.fault(`{"platform":"x","operation":"publish","kind":"publishes_and_refuses",` + tt.fault + `}`)
			r := b.tweet(textBody("hello"))
			if r.status != tt.status || strings.TrimSpace(r.body) != tt.body {
				t.Errorf("%s: %d %s, want %d %s", tt.reason, r.status, r.body, tt.status, tt.body)
			}
			for name, want := range tt.header {
				if got := r.header.Get(name); got != want {
					t.Errorf("%s: header %s is %q, want %q", tt.reason, name, got, want)
				}
			}
			if diff := cmp.Diff([]string{"hello"}, b.texts()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.reason, diff)
			}
		})
	}
}

func TestPublishesAndRefusesLeavesOthersAlone(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"*","kind":"publishes_and_refuses","refusal":"spam","times":2}`)
	if r := b.get("/x/2/users/me"); r.status != http.StatusOK {
		t.Errorf("* makes it meet what publishes nothing: %d", r.status)
	}
	if r := b.tweet(`{"text":""}`); !isXProblem(r, http.StatusBadRequest, "") {
		t.Errorf("X's own refusal must be answered, since nothing was published: %d %s", r.status, r.body)
	}
	if r := b.tweet(textBody("hello")); r.status != http.StatusForbidden || !strings.Contains(r.body, "automated") {
		t.Errorf("%d %s", r.status, r.body)
	}
	if r := b.tweet(textBody("hello")); r.status != http.StatusForbidden || !strings.Contains(r.body, "duplicate") {
		t.Errorf("the fault is over, and the words are there already: %d %s", r.status, r.body)
	}
	b.post("afterwards")
	if diff := cmp.Diff([]string{"hello", "afterwards"}, b.texts()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestPublishesAndRefusesCardsOfATree(t *testing.T) {
	b := start(t, "")
	first := b.post("first")
	b.fault(`{"platform":"x","operation":"publish","kind":"publishes_and_refuses","refusal":"rate_limit"}`)
	if r := b.tweet(`{"text":"second","reply":{"in_reply_to_tweet_id":"` + first + `"}}`); r.status != http.StatusTooManyRequests {
		t.Errorf("%d %s", r.status, r.body)
	}
	if got := field(b.posted("x"), 1, "in_reply_to"); got != first {
		t.Errorf("the second card hangs from %v", got)
	}
}

func TestFaultsForAShareOfTheRequests(t *testing.T) {
	// refused returns which of 40 requests a draw refuses.
	refused := func(seed int) (out []int) {
		b := start(t, "")
		b.fault(fmt.Sprintf(`{"platform":"x","operation":"publish","kind":"publishes_and_refuses","refusal":"invalid","percent":25,"seed":%d,"times":5}`, seed))
		for i := range 40 {
			if r := b.tweet(textBody(fmt.Sprint("hello ", i))); r.status != http.StatusCreated {
				out = append(out, i)
			}
		}
		if got := b.texts(); len(got) != 40 {
			t.Errorf("%d posts are there, want all 40", len(got))
		}
		return out
	}
	one, other := refused(1), refused(2)
	if len(one) != 5 || one[4] == 4 {
		t.Errorf("requests %v are refused: want five, which is as often as it may be, and others between", one)
	}
	if diff := cmp.Diff(one, refused(1)); diff != "" {
		t.Errorf("the same seed draws the same requests (-want +got):\n%s", diff)
	}
	if cmp.Equal(one, other) {
		t.Errorf("another seed draws the same requests: %v", one)
	}
}

func TestBadRefusals(t *testing.T) {
	tests := []struct{ name, fault, want string }{
		{"nothing to answer", `"operation":"publish"`, "needs a status, or a refusal"},
		{"another operation", `"operation":"create","refusal":"spam"`, "works on operation publish"},
		{"unknown refusal", `"operation":"publish","refusal":"mood"`, `one of [\"rate_limit\" \"spam\" \"permission\" \"invalid\"]`},
		{"both", `"operation":"publish","refusal":"spam","status":403`, "leave out the refusal"},
		{"words of both", `"operation":"publish","refusal":"spam","body":{}`, "leave out the refusal"},
		{"no status", `"operation":"publish","status":99,"body":{}`, "use 200 to 599"},
		{"body of another kind", `"operation":"publish","kind":"status","body":{}`, "belong to kind publishes_and_refuses"},
		{"bad header", `"operation":"publish","status":403,"headers":{"a b":"c"}`, "cannot be a header"},
		{"bad header value", `"operation":"publish","status":403,"headers":{"a":"b\r\nc: d"}`, "cannot be a header"},
		{"no share", `"operation":"publish","refusal":"spam","percent":101`, "1 to 100"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := start(t, "")
			kind := `"kind":"publishes_and_refuses",`
			if strings.Contains(tt.fault, `"kind"`) {
				kind = ""
			}
			r := b.control(http.MethodPost, "/faults", `{"platform":"x",`+kind+tt.fault+`}`, http.StatusBadRequest)
			if !strings.Contains(r.body, tt.want) {
				t.Errorf("%s, want %q in it", r.body, tt.want)
			}
		})
	}
}

func TestFaultsAreShown(t *testing.T) {
	b := start(t, "")
	const (
		limit = `{"platform":"x","operation":"publish","kind":"publishes_and_refuses","times":2,"percent":100,"seed":7,"status":429,` +
			`"body":{"title":"Too Many Requests"},"headers":{"Content-Type":"application/json","Retry-After":"7"},"retry_after_s":60}`
		page = `{"platform":"x","operation":"publish","kind":"publishes_and_refuses","times":1,"status":502,` +
			`"body":"no","headers":{"Content-Type":"text/html"},"retry_after_s":60}`
	)
	for _, fault := range []string{limit, page} {
		if r := b.control(http.MethodPost, "/faults", fault, http.StatusCreated); strings.TrimSpace(r.body) != `{"data":`+fault+`}` {
			t.Errorf("%s, want what was asked for", r.body)
		}
	}
	b.tweet(textBody("hello"))
	want := `{"data":[` + strings.Replace(limit, `"times":2`, `"times":1`, 1) + `,` + page + `]}`
	if r := b.control(http.MethodGet, "/faults", "", http.StatusOK); strings.TrimSpace(r.body) != want {
		t.Errorf("%s, want %s", r.body, want)
	}
}
