// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/net/html"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
)

// pagesNamespace is the installation's namespace in the page tests.
const pagesNamespace = "herald-pages"

// browser sends requests like a user's browser.
type browser struct {
	site    string
	cookies []*http.Cookie
}

// shown is a response as a browser receives it.
type shown struct {
	status int
	header http.Header
	body   string
}

// request returns a request from the browser. A form makes it a same-origin POST.
func (b *browser) request(ctx context.Context, path string, form url.Values) *http.Request {
	GinkgoHelper()
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r, err := http.NewRequestWithContext(ctx, method, b.site+path, body)
	Expect(err).NotTo(HaveOccurred())
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", b.site)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	for _, cookie := range b.cookies {
		r.AddCookie(cookie)
	}
	return r
}

// send sends a request without following redirects.
func (b *browser) send(r *http.Request) shown {
	GinkgoHelper()
	answer, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	Expect(err).NotTo(HaveOccurred())
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	Expect(err).NotTo(HaveOccurred())
	return shown{answer.StatusCode, answer.Header, string(body)}
}

func (b *browser) get(ctx context.Context, path string) shown {
	GinkgoHelper()
	return b.send(b.request(ctx, path, nil))
}

func (b *browser) post(ctx context.Context, path string, form url.Values) shown {
	GinkgoHelper()
	return b.send(b.request(ctx, path, form))
}

// field returns the value of one of a page's hidden fields.
func (s shown) field(name string) string {
	GinkgoHelper()
	page, err := html.Parse(strings.NewReader(s.body))
	Expect(err).NotTo(HaveOccurred())
	for n := range page.Descendants() {
		of := map[string]string{}
		for _, a := range n.Attr {
			of[a.Key] = a.Val
		}
		if n.Data == "input" && of["name"] == name {
			return of["value"]
		}
	}
	Fail("the page has no field " + name)
	return ""
}

var _ = Describe("The pages", Ordered, func() {
	var (
		server                       *running
		b, stranger                  *browser
		watched, written, led, other *team
		log                          output
	)

	link := func(ctx context.Context) string { return linkIn(ctx, pagesNamespace) }

	BeforeAll(func(ctx SpecContext) {
		grantWeb(ctx, pagesNamespace)
		Expect(admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: pagesNamespace, Name: webSecret}})).To(Succeed())
		watched, written, led, other = newTeam(ctx), newTeam(ctx), newTeam(ctx), newTeam(ctx)
		// The user behind the one-time link has a different role in each team, and none in the last.
		for role, of := range map[string]*team{"viewer": watched, "editor": written, "admin": led} {
			of.bindLink(ctx, role)
		}
		for _, t := range []*team{watched, written, led, other} {
			t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		}
		server = start(restricted, withWeb(&log), func(c *apiserver.Config) { c.Web.Namespace = pagesNamespace })
		DeferCleanup(func() { server.stop() })
		b, stranger = &browser{site: server.site}, &browser{site: server.site}
		Eventually(func() int { return b.get(ctx, "/signin").status }).WithTimeout(15 * time.Second).Should(Equal(http.StatusOK))
		b.cookies = visit(http.MethodPost, server.site+link(ctx)).cookies
		// RBAC decisions are cached for a few seconds and lists of teams for longer; the API server needs a moment to
		// apply stored roles.
		for _, t := range []*team{watched, written, led} {
			Eventually(func() int { return b.get(ctx, "/teams/"+t.namespace+"/").status }).WithTimeout(40 * time.Second).Should(Equal(http.StatusOK))
		}
	}, NodeTimeout(2*time.Minute))

	It("show each user what Kubernetes' own roles allow in the team's namespace", func(ctx SpecContext) {
		for path, want := range map[string][3]int{
			"": {200, 200, 200}, "posts": {200, 200, 200}, "calendar": {200, 200, 200}, "connections": {200, 200, 200}, "team": {200, 200, 200},
			"posts/new": {403, 200, 200}, "keys": {403, 200, 200},
		} {
			for i, t := range []*team{watched, written, led} {
				Expect(b.get(ctx, "/teams/"+t.namespace+"/"+path).status).To(Equal(want[i]), "%s as %s", path, []string{"viewer", "editor", "admin"}[i])
			}
			Expect(b.get(ctx, "/teams/"+other.namespace+"/"+path).status).To(Equal(http.StatusNotFound), "another team's page")
			Expect(stranger.get(ctx, "/teams/"+led.namespace+"/"+path).header.Get("Location")).To(HavePrefix("/signin?return_to="))
		}
		for i, t := range []*team{watched, written, led, other} {
			status := b.post(ctx, "/teams/"+t.namespace+"/keys", url.Values{"description": {"of a test"}}).status
			Expect(status).To(Equal([]int{403, 403, 201, 404}[i]))
		}
	})

	It("have security headers, and are compressed", func(ctx SpecContext) {
		r := b.request(ctx, "/teams/"+led.namespace+"/", nil)
		r.Header.Set("Accept-Encoding", "gzip")
		answer := b.send(r)
		for name, want := range map[string]string{
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Cache-Control": "no-store", "Content-Encoding": "gzip", "Vary": "Accept-Encoding",
		} {
			Expect(answer.header.Get(name)).To(Equal(want), name)
		}
		Expect(answer.header.Get("Content-Security-Policy")).To(And(ContainSubstring("default-src 'none'"), ContainSubstring("frame-ancestors 'none'"), Not(ContainSubstring("unsafe"))))
		Expect(answer.header.Get("Strict-Transport-Security")).To(BeEmpty(), "the site has no HTTPS")
	})

	It("create a post once however often a form is sent, and reject forms from other sites", func(ctx SpecContext) {
		at := "/teams/" + written.namespace + "/posts/new"
		form := url.Values{"key": {b.get(ctx, at).field("key")}, "category": {"text"}, "target": {"acme-threads"}, "caption": {"Hello"}, "when": {"draft"}}
		posts := func() int {
			var found v1alpha1.PostList
			Expect(admin.List(ctx, &found, client.InNamespace(written.namespace))).To(Succeed())
			return len(found.Items)
		}
		for _, from := range []map[string]string{
			{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
			{"Origin": "https://evil.example"},
			{"Sec-Fetch-Site": "cross-site"},
			{"Sec-Fetch-Site": "same-site"},
			{"Origin": "null", "Sec-Fetch-Site": "cross-site"},
			{"Origin": "null"},
		} {
			r := b.request(ctx, at, form)
			r.Header.Del("Origin")
			r.Header.Del("Sec-Fetch-Site")
			for name, value := range from {
				r.Header.Set(name, value)
			}
			Expect(b.send(r).status).To(Equal(http.StatusForbidden), "from %v", from)
		}
		Expect(posts()).To(BeZero())
		first := b.post(ctx, at, form)
		Expect(first.status).To(Equal(http.StatusSeeOther), first.body)
		Expect(b.post(ctx, at, form).header.Get("Location")).To(Equal(first.header.Get("Location")))
		Expect(posts()).To(Equal(1))
		page := b.get(ctx, first.header.Get("Location"))
		Expect(page.body).To(And(ContainSubstring("Hello"), ContainSubstring("The draft is saved."), ContainSubstring("herald:link")))
		Expect(b.get(ctx, strings.Replace(first.header.Get("Location"), written.namespace, led.namespace, 1)).status).To(Equal(http.StatusNotFound), "an id of another team")
	})

	It("stream a post's changes to its viewers, and end the stream when it is finished", func(ctx SpecContext) {
		at := "/teams/" + written.namespace + "/posts/new"
		form := url.Values{"key": {b.get(ctx, at).field("key")}, "category": {"text"}, "target": {"acme-threads"}, "caption": {"Live"}, "when": {"now"}}
		made := b.post(ctx, at, form)
		Expect(made.status).To(Equal(http.StatusSeeOther), made.body)
		path, _, _ := strings.Cut(made.header.Get("Location"), "?")
		id := path[strings.LastIndex(path, "/")+1:]

		answer, err := http.DefaultClient.Do(b.request(ctx, path+"/events", nil))
		Expect(err).NotTo(HaveOccurred())
		defer answer.Body.Close()
		Expect(answer.Header.Get("Content-Type")).To(Equal("text/event-stream"))
		lines := make(chan string, 1000)
		go func() {
			defer close(lines)
			for scanner := bufio.NewScanner(answer.Body); scanner.Scan(); {
				lines <- scanner.Text()
			}
		}()
		Eventually(lines).Should(Receive(ContainSubstring("Being published")))
		report := func(edit func(*v1alpha1.TargetStatus)) {
			Eventually(func() error {
				return setStatus(ctx, written.stored(ctx, id), func(s *v1alpha1.PostStatus) {
					if len(s.Targets) == 0 {
						s.Targets = []v1alpha1.TargetStatus{claimed(0, time.Now())}
						s.Targets[0].Platform = v1alpha1.PlatformThreads
					}
					edit(&s.Targets[0])
				})
			}).Should(Succeed())
		}
		report(func(t *v1alpha1.TargetStatus) { t.Message = "Threads is slow today" })
		Eventually(lines).Should(Receive(ContainSubstring("Threads is slow today.")))
		report(func(t *v1alpha1.TargetStatus) {
			t.Phase, t.State, t.ExternalID, t.PostedAt = v1alpha1.PhasePosted, v1alpha1.TargetPosted, "186", v1alpha1.NewTimePtr(time.Now())
		})
		Eventually(lines).Should(Receive(Equal("event: stop")))
		Eventually(lines).Should(BeClosed())
	})

	It("sign in to a new session, whatever session the browser had", func(ctx SpecContext) {
		planted := visit(http.MethodPost, server.site+link(ctx)).cookies
		answer := visit(http.MethodPost, server.site+link(ctx), planted...)
		Expect(answer.StatusCode).To(Equal(http.StatusSeeOther))
		Expect(answer.cookies).To(HaveLen(1))
		Expect(answer.cookies[0].Value).NotTo(Equal(planted[0].Value))
		Expect(answer.cookies[0].HttpOnly).To(BeTrue())
		Expect(answer.cookies[0].SameSite).To(Equal(http.SameSiteLaxMode))
	})

	It("do not log errors", func() {
		Expect(log.String()).NotTo(ContainSubstring("level=ERROR"))
	})
})
