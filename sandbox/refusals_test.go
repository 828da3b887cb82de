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
	photo := func(b *box) []byte { return jpegOf(b.t, 640, 640) }
	return map[string]func(b *box) reply{
		"x text":  func(b *box) reply { return b.tweet(textBody("hello")) },
		"x image": func(b *box) reply { return b.tweet(xBody("hello", "", b.xImage(xPicture(b.t, "png", 4, 4, 9)))) },
		"threads container": func(b *box) reply {
			id := b.container(url.Values{"text": {"hello"}})
			b.clock.Step(time.Second)
			return b.publishContainer(id)
		},
		"instagram container": func(b *box) reply {
			site := newShelf(b.t, map[string][]byte{"a": photo(b)})
			return b.igPublish(b.igReady(url.Values{"image_url": {site.url + "/a"}, "caption": {"hello"}}))
		},
		"facebook feed": func(b *box) reply { return b.feed("message=hello") },
		"facebook feed with photos": func(b *box) reply {
			return b.feed(fbAttached("hello", b.fbPhoto(photo(b)), b.fbPhoto(jpegOf(b.t, 320, 640))).Encode())
		},
		"facebook draft": func(b *box) reply {
			return b.form("facebook", "/facebook/v25.0/"+b.fbDraft(url.Values{"message": {"hello"}}), query("is_published=true"))
		},
		"facebook photo":    func(b *box) reply { return b.sendPhoto(photo(b), "caption", "hello") },
		"tiktok last chunk": func(b *box) reply { return b.uploadOnTikTok(b.startedOnTikTok(film), film) },
		"tiktok photos": func(b *box) reply {
			site := fileServer(b.t, map[string][]byte{"/a": photo(b)})
			return b.pulledByTikTok("content/init/", photosOn("DIRECT_POST", publicPhotos, "", site, "/a"))
		},
		"tiktok video to fetch": func(b *box) reply {
			site := fileServer(b.t, map[string][]byte{"/a": film})
			return b.pulledByTikTok("video/init/", `{`+directPost+`,"source_info":{"source":"PULL_FROM_URL","video_url":"`+site+`/a"}}`)
		},
		"mastodon status": func(b *box) reply { return b.toot("status=hello") },
		"mastodon status with an image": func(b *box) reply {
			return b.toot("status=hello&media_ids[]=" + b.mastodonImage())
		},
		"bluesky put": func(b *box) reply { return b.sky().put(skyKey+"2", skyRecord("hello")) },
		"bluesky put with an image": func(b *box) reply {
			s := b.sky()
			return s.put(skyKey+"2", skyRecord("hello", skyImages(s.upload("image/jpeg", photo(b)))))
		},
		"bluesky create": func(b *box) reply {
			return b.sky().send("repo.createRecord", `{"repo":"`+blueskyDID+`","collection":"app.bsky.feed.post","record":`+skyRecord("hello")+`}`)
		},
		"youtube last chunk": func(b *box) reply { return b.chunk(b.session(plainVideo, len(film)), film, 0, len(film)) },
		"youtube whole video": func(b *box) reply {
			contentType, body := related(b.t, plainVideo, "video/mp4", film)
			return b.atGoogle(http.MethodPost, youtubeInsert, body, "Content-Type: "+contentType)
		},
	}
}

func TestPublishesAndRefuses(t *testing.T) {
	// The answer for each refusal by platform. TikTok's upload host answers without a body.
	answers := map[string]map[string]is{
		"x": {
			"rate_limit": {429, "title=Too Many Requests"},
			"spam": {403, "detail=This request looks like it might be automated. To protect our users from spam and other malicious activity, " +
				"we can't complete this action right now. Please try again later."},
			"permission": {403, "detail=You are not permitted to perform this action."}, "invalid": {400, "title=Invalid Request"},
		},
		"threads": {
			"rate_limit": {403, "error.code=4"}, "spam": {400, "error.error_subcode=2207051"},
			"permission": {403, "error.code=10"}, "invalid": {400, "error.code=100"},
		},
		"instagram": {
			"rate_limit": {400, "error.code=17"}, "spam": {400, "error.error_subcode=2207051"},
			"permission": {403, "error.code=10"}, "invalid": {400, "error.code=100"},
		},
		"facebook": {
			"rate_limit": {400, "error.code=32"}, "spam": {400, "error.code=368"},
			"permission": {403, "error.code=200"}, "invalid": {400, "error.code=100"},
		},
		"tiktok": {
			"rate_limit": {429, "error.code=rate_limit_exceeded"}, "spam": {403, "error.code=spam_risk_too_many_posts"},
			"permission": {401, "error.code=scope_not_authorized"}, "invalid": {400, "error.code=invalid_params"},
		},
		"tiktok last chunk": {"rate_limit": {429, "="}, "spam": {403, "="}, "permission": {403, "="}, "invalid": {400, "="}},
		"youtube": {
			"rate_limit": youtubeError(403, "rateLimitExceeded"), "spam": youtubeError(400, "uploadLimitExceeded"),
			"permission": youtubeError(403, "forbidden"), "invalid": youtubeError(400, "badRequest"),
		},
		"mastodon": {
			"rate_limit": mastodonError(429, "Too many requests"), "spam": mastodonError(403, "Your login is currently disabled"),
			"permission": mastodonError(403, "outside the authorized scopes"), "invalid": mastodonError(422, "Validation failed"),
		},
		"bluesky": {
			"rate_limit": blueskyError(429, "RateLimitExceeded"), "spam": blueskyError(401, "AccountTakedown"),
			"permission": blueskyError(401, "AccountDeactivated"), "invalid": blueskyError(400, "InvalidRequest"),
		},
	}
	for call, publish := range visible() {
		platform, _, _ := strings.Cut(call, " ")
		wants, ok := answers[call]
		if !ok {
			wants = answers[platform]
		}
		for refusal, want := range wants {
			t.Run(call+" "+refusal, func(t *testing.T) {
				b := start(t, "")
				b.fault(`{"platform":"` + platform + `","operation":"*","kind":"publishes_and_refuses","refusal":"` + refusal + `"}`)
				publish(b).want(t, "the refusal", want...)
				b.clock.Step(time.Hour)
				same(t, "the refused post is there after all processing", 1, len(b.posted(platform)))
			})
		}
	}
}

func TestPublishesAndRefusesByStatusAndBody(t *testing.T) {
	send := func(b *box, fault string) reply {
		b.fault(`{"platform":"x","operation":"publish","kind":"publishes_and_refuses",` + fault + `}`)
		r := b.tweet(textBody("hello"))
		same(t, fault+" publishes", []string{"hello"}, b.texts())
		return r
	}
	problem := func(status int, title string) string {
		return fmt.Sprintf(`={"title":%q,"detail":%q,"type":"about:blank","status":%d}`, title, title, status)
	}
	for _, row := range []row{
		{"a status has the platform's general error", `"status":503`, is{503, problem(503, "Service Unavailable"), "X-Rate-Limit-Limit: 100"}},
		{
			"a JSON body is sent unchanged, without X's headers", `"status":429,"body":{"title":"Too Many Requests"}`,
			is{429, `={"title":"Too Many Requests"}`, "Content-Type: application/json", "X-Rate-Limit-Reset: "},
		},
		{
			"a string body is sent without its quotes", `"status":502,"body":"<h1>Bad Gateway</h1>","headers":{"content-type":"text/html"}`,
			is{502, "=<h1>Bad Gateway</h1>", "Content-Type: text/html"},
		},
		{"a body may be empty", `"status":403,"body":""`, is{403, "=", "X-Rate-Limit-Reset: "}},
		{"headers without a body", `"status":429,"headers":{"Retry-After":"7"}`, is{429, "=", "Retry-After: 7"}},
		{"an error may have a success status", `"status":200,"body":{"errors":[]}`, is{200, `={"errors":[]}`}},
		{
			"a rate limit has an end", `"refusal":"rate_limit","retry_after_s":7`,
			is{429, problem(429, "Too Many Requests"), fmt.Sprint("X-Rate-Limit-Reset: ", newClock().Now().Unix()+8)},
		},
	} {
		send(start(t, ""), row.send).want(t, row.why, row.want...)
	}
}

func TestPublishesAndRefusesAffectsPublicationsOnly(t *testing.T) {
	b := start(t, "")
	b.fault(`{"platform":"x","operation":"*","kind":"publishes_and_refuses","refusal":"spam","times":2}`)
	b.get("/x/2/users/me").want(t, "a call that publishes nothing", 200)
	b.tweet(`{"text":""}`).want(t, "X's own refusal is returned, since nothing was published", xProblem(400, "")...)
	first := b.tweet(textBody("hello")).want(t, "a publication", 403, "~automated")
	b.tweet(textBody("hello")).want(t, "the fault is used up, and the text was published", 403, "~duplicate")
	same(t, "no ID is returned", "", first.text("data", "id"))
	root := b.post("afterwards")
	b.fault(`{"platform":"x","operation":"publish","kind":"publishes_and_refuses","refusal":"rate_limit"}`)
	b.tweet(replyBody("second", root)).want(t, "a reply", 429)
	same(t, "posts", []string{"hello", "afterwards", "second"}, b.texts())
	same(t, "the refused reply's parent", any(root), field(b.posted("x"), 2, "in_reply_to"))
}

func TestFaultPercentage(t *testing.T) {
	// refused returns the indexes of those of 40 requests that a seed refuses.
	refused := func(seed int) (out []int) {
		b := start(t, "")
		b.fault(fmt.Sprintf(`{"platform":"x","operation":"publish","kind":"publishes_and_refuses","refusal":"invalid",`+
			`"percent":25,"seed":%d,"times":5}`, seed))
		for i := range 40 {
			if r := b.tweet(textBody(fmt.Sprint("hello ", i))); r.status != http.StatusCreated {
				out = append(out, i)
			}
		}
		same(t, "posts", 40, len(b.texts()))
		return out
	}
	one := refused(1)
	if len(one) != 5 || one[4] == 4 {
		t.Errorf("requests %v were refused, want five in total, not in a row", one)
	}
	same(t, "the same seed refuses the same requests", one, refused(1))
	if cmp.Equal(one, refused(2)) {
		t.Errorf("another seed refuses the same requests: %v", one)
	}
}

func TestInvalidRefusals(t *testing.T) {
	b := start(t, "")
	send := func(fault string) reply {
		if !strings.Contains(fault, `"kind"`) {
			fault = `"kind":"publishes_and_refuses",` + fault
		}
		return b.control(http.MethodPost, "/faults", `{"platform":"x",`+fault+`}`, http.StatusBadRequest)
	}
	b.each(t, send, []row{
		{"a response is required", `"operation":"publish"`, is{"~needs a status, or a refusal"}},
		{"only publications are refused", `"operation":"create","refusal":"spam"`, is{"~works on operation publish"}},
		{
			"an unknown refusal", `"operation":"publish","refusal":"mood"`,
			is{`~one of [\"rate_limit\" \"spam\" \"permission\" \"invalid\"]`},
		},
		{"a refusal has its own status", `"operation":"publish","refusal":"spam","status":403`, is{"~leave out the refusal"}},
		{"a refusal has its own body", `"operation":"publish","refusal":"spam","body":{}`, is{"~leave out the refusal"}},
		{"a status out of range", `"operation":"publish","status":99,"body":{}`, is{"~use 200 to 599"}},
		{"only refusals have a body", `"operation":"publish","kind":"status","body":{}`, is{"~belong to kind publishes_and_refuses"}},
		{"an invalid header name", `"operation":"publish","status":403,"headers":{"a b":"c"}`, is{"~cannot be a header"}},
		{"an invalid header value", `"operation":"publish","status":403,"headers":{"a":"b\r\nc: d"}`, is{"~cannot be a header"}},
		{"a share above 100", `"operation":"publish","refusal":"spam","percent":101`, is{"~1 to 100"}},
	})
}

func TestListFaults(t *testing.T) {
	b := start(t, "")
	const (
		limit = `{"platform":"x","operation":"publish","kind":"publishes_and_refuses","times":2,"percent":100,"seed":7,"status":429,` +
			`"body":{"title":"Too Many Requests"},"headers":{"Content-Type":"application/json","Retry-After":"7"},"retry_after_s":60}`
		page = `{"platform":"x","operation":"publish","kind":"publishes_and_refuses","times":1,"status":502,` +
			`"body":"no","headers":{"Content-Type":"text/html"},"retry_after_s":60}`
	)
	for _, fault := range []string{limit, page} {
		b.control(http.MethodPost, "/faults", fault, http.StatusCreated).want(t, "the answer is the fault", `={"data":`+fault+`}`)
	}
	b.tweet(textBody("hello"))
	b.control(http.MethodGet, "/faults", "", http.StatusOK).
		want(t, "the remaining faults", `={"data":[`+strings.Replace(limit, `"times":2`, `"times":1`, 1)+`,`+page+`]}`)
}
