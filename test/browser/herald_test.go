// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package browser

import (
	"net/http"
	"net/http/httptest"
	"net/url"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/browser/chrome"
	"github.com/herald-social/herald/test/browser/web"
)

var _ = Describe("The API documentation", func() {
	DescribeTable("is accessible",
		func(path, name string) {
			page := newPage(chrome.Options{})
			must(page.Open(herald().Site() + path))
			inEveryLook(page, name)
			expectLight(page)
		},
		Entry("for version 1", "/docs", "docs"),
		Entry("for version 2", "/docs/v2", "docs-v2"),
	)
})

var _ = Describe("The sandbox", func() {
	var page *chrome.Page

	BeforeEach(func() { page = newPage(chrome.Options{}) })

	It("shows its accounts and their feeds", func() {
		must(page.Open(herald().Sandbox() + "/"))
		inEveryLook(page, "sandbox")
		must(page.GetByPartialName("link", "@herald.demo").Follow())
		must(page.WaitURL("/accounts/facebook/"))
		inEveryLook(page, "sandbox-account")
	})

	DescribeTable("asks the user for consent",
		func(platform, path string, query url.Values) {
			var answers []url.Values
			client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/callback" {
					answers = append(answers, r.URL.Query())
				}
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, err := w.Write([]byte(`<!doctype html><html lang="en"><title>Back</title><link rel="icon" href="data:,"><h1>Back</h1>`))
				Expect(err).NotTo(HaveOccurred())
			}))
			DeferCleanup(client.Close)
			for name, value := range map[string]string{
				"redirect_uri": client.URL + "/callback", "response_type": "code", "state": "s-1",
				"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256",
			} {
				query.Set(name, value)
			}
			consent := herald().Sandbox() + "/" + platform + path + "?" + query.Encode()

			must(page.Open(consent))
			inEveryLook(page, "consent-"+platform)
			must(page.Follow(func() error { return web.Allow(page, web.DemoHandle(platform)) }))
			must(page.Get("heading", "Back").Wait())

			must(page.Open(consent))
			must(page.Follow(func() error { return web.Deny(page) }))
			Expect(answers).To(HaveLen(2))
			Expect(answers[0].Get("code")).NotTo(BeEmpty())
			Expect(answers[1].Get("error")).To(Equal("access_denied"))
			for _, answer := range answers {
				Expect(answer.Get("state")).To(Equal("s-1"))
			}
		},
		Entry("X", "x", "/i/oauth2/authorize", url.Values{"client_id": {"herald"}, "scope": {"tweet.read tweet.write users.read offline.access"}}),
		Entry("Threads", "threads", "/oauth/authorize", url.Values{"client_id": {"herald"}, "scope": {"threads_basic,threads_content_publish"}}),
		Entry("Instagram", "instagram", "/oauth/authorize", url.Values{"client_id": {"herald"}, "scope": {"instagram_business_basic"}}),
		Entry("Facebook", "facebook", "/v25.0/dialog/oauth", url.Values{"client_id": {"herald"}, "scope": {"pages_show_list,pages_manage_posts"}}),
		Entry("TikTok", "tiktok", "/v2/auth/authorize/", url.Values{"client_key": {"herald"}, "scope": {"user.info.basic,video.publish"}}),
		Entry("YouTube", "youtube", "/o/oauth2/v2/auth", url.Values{"client_id": {"herald"}, "scope": {"https://www.googleapis.com/auth/youtube"}}),
	)
})
