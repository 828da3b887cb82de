// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"image/color"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"path"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/test/mediatest"
)

// Addresses of a trial in a browser.
const (
	site          = "http://127.0.0.1:8080"
	sandboxSite   = "http://127.0.0.1:9100"
	storeSite     = "http://127.0.0.1:9000"
	teamPages     = site + "/teams/" + demo + "/"
	secondAccount = "1500000000000000002"
)

// visitor is a browser without scripts: it keeps cookies, follows redirects and submits forms. The test may forward
// other ports than a trial's addresses contain.
type visitor struct {
	client http.Client
}

// answer is a page and its final address after redirects.
type answer struct {
	status int
	header http.Header
	from   *url.URL
	body   string
}

func newVisitor(ctx context.Context) *visitor {
	GinkgoHelper()
	forwarded := map[string]string{
		site: forward(ctx, &pods(ctx, "apiserver")[0], 8080), sandboxSite: forward(ctx, one(ctx, "sandbox"), 9100), storeSite: forward(ctx, one(ctx, "store"), 9000),
	}
	jar, err := cookiejar.New(nil)
	Expect(err).NotTo(HaveOccurred())
	var dialer net.Dialer
	return &visitor{client: http.Client{Jar: jar, Transport: &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return dialer.DialContext(ctx, network, strings.TrimPrefix(forwarded["http://"+address], "http://"))
		},
	}}}
}

// do sends a request as the site's pages do.
func (v *visitor) do(ctx context.Context, method, address, contentType string, body io.Reader) answer {
	GinkgoHelper()
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	Expect(err).NotTo(HaveOccurred())
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Origin", site)
	}
	response, err := v.client.Do(r)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	read, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return answer{response.StatusCode, response.Header, response.Request.URL, string(read)}
}

func (v *visitor) open(ctx context.Context, address string) answer {
	GinkgoHelper()
	return v.do(ctx, http.MethodGet, address, "", nil)
}

func (v *visitor) send(ctx context.Context, address string, form url.Values) answer {
	GinkgoHelper()
	return v.do(ctx, http.MethodPost, address, "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
}

// signIn uses a one-time link, printed by a command in the pod.
func (v *visitor) signIn(ctx context.Context) {
	GinkgoHelper()
	link := kubectl(ctx, "exec", "--namespace", home, "deploy/"+release+"-apiserver", "--", "/herald", "signin-link")
	Expect(link).To(HavePrefix(site + "/signin/link/"))
	// Replicas recognize a new link after a short delay.
	Eventually(func() int { return v.open(ctx, link).status }).WithContext(ctx).Should(Equal(http.StatusOK))
	Expect(v.open(ctx, teamPages).from.Path).To(Equal("/signin"), "opening a link does not sign in")
	home := v.send(ctx, link, nil)
	Expect(home.status).To(Equal(http.StatusOK), home.body)
	Expect(home.from.String()).To(Equal(teamPages), "the start page leads to the team")
	Expect(home.header.Get("Content-Security-Policy")).To(ContainSubstring(storeSite), "a browser may upload there")
	Expect(v.send(ctx, link, nil).status).To(Equal(http.StatusGone), "the link is used up")
}

// connect grants Herald access to an account on the platform's consent page, and returns the connection's name.
func (v *visitor) connect(ctx context.Context, platform, account string) string {
	GinkgoHelper()
	asked := v.send(ctx, teamPages+"connections/connect", url.Values{"platform": {platform}})
	Expect(asked.status).To(Equal(http.StatusOK), asked.body)
	_, consent, _ := strings.Cut(asked.header.Get("Refresh"), "url=")
	asked = v.open(ctx, consent)
	Expect(asked.status).To(Equal(http.StatusOK), asked.body)
	Expect(asked.from.String()).To(HavePrefix(sandboxSite+"/"), "the platform requests consent")
	// The page links to itself with the account as a parameter.
	query := asked.from.Query()
	query.Set("account", account)
	asked.from.RawQuery = query.Encode()
	connected := v.open(ctx, asked.from.String())
	Expect(connected.status).To(Equal(http.StatusOK), connected.body)
	Expect(connected.from.Path).To(Equal("/teams/"+demo+"/connections"), connected.body)
	return connected.from.Fragment
}

// upload sends a file to the store, like the page's script, and returns its ID.
func (v *visitor) upload(ctx context.Context, name, mimeType string, data []byte) string {
	GinkgoHelper()
	request, err := json.Marshal(map[string]any{"name": name, "mime_type": mimeType, "size_bytes": len(data)})
	Expect(err).NotTo(HaveOccurred())
	announced := v.do(ctx, http.MethodPost, teamPages+"media", "application/json", bytes.NewReader(request))
	Expect(announced.status).To(Equal(http.StatusCreated), announced.body)
	var place struct {
		ID        string `json:"id"`
		UploadURL string `json:"upload_url"`
	}
	Expect(json.Unmarshal([]byte(announced.body), &place)).To(Succeed())
	Expect(place.UploadURL).To(HavePrefix(storeSite + "/"))
	sent := v.do(ctx, http.MethodPut, place.UploadURL, mimeType, bytes.NewReader(data))
	Expect(sent.status).To(Equal(http.StatusOK), sent.body)
	Expect(sent.header.Get("Access-Control-Allow-Origin")).To(BeElementOf("*", site), "CORS allows the page to read the response")
	return place.ID
}

// inPages goes through a user's steps in a trial, starting from the sign-in link. It does not use an API key.
func inPages(ctx context.Context) {
	GinkgoHelper()
	_, err := platforms(ctx).Account(ctx, "x", secondAccount, nil)
	Expect(err).NotTo(HaveOccurred())
	v := newVisitor(ctx)
	v.signIn(ctx)
	account := v.connect(ctx, "x", secondAccount)

	picture, err := mediatest.Picture(color.RGBA{B: 200, A: 255})
	Expect(err).NotTo(HaveOccurred())
	file := v.upload(ctx, "sea.jpg", "image/jpeg", picture)
	form := url.Values{
		"key": {"a-person-of-the-e2e-tests"}, "category": {"image"}, "caption": {"written in a page"}, "image": {file},
		"target": {account}, "when": {"now"}, "zone": {"UTC"}, "cards": {"2"},
	}
	var post string
	Eventually(func(g Gomega) {
		page := v.send(ctx, teamPages+"posts/new", form)
		g.Expect(page.status).To(Equal(http.StatusOK), page.body)
		g.Expect(page.from.Path).To(MatchRegexp("/posts/[^/]+$"), page.body)
		g.Expect(path.Base(page.from.Path)).NotTo(Equal("new"), page.body)
		post = page.from.Scheme + "://" + page.from.Host + page.from.Path
	}).WithContext(ctx).Should(Succeed(), "the account must be probed before posting")
	Eventually(func() string { return v.open(ctx, post).body }).WithContext(ctx).
		Should(ContainSubstring(sandboxSite+"/x/"), "the page links to the published post")
	published, err := platforms(ctx).Posts(ctx, "x", secondAccount)
	Expect(err).NotTo(HaveOccurred())
	Expect(published).To(HaveLen(1))
	Expect(published[0].Text).To(Equal("written in a page"))
	Expect(published[0].Media).To(HaveLen(1))

	byAnAgent(ctx, v)

	gone := v.send(ctx, teamPages+"connections/"+account+"/disconnect", nil)
	Expect(gone.status).To(Equal(http.StatusOK), gone.body)
	Expect(v.send(ctx, site+"/signout", nil).status).To(Equal(http.StatusOK))
	Expect(v.open(ctx, teamPages).from.Path).To(Equal("/signin"), "the session has ended")
}
