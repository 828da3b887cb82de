// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver"
	"github.com/herald-social/herald/apiserver/openapi"
	"github.com/herald-social/herald/internal/apitoken"
)

func clientKey(o client.Object) types.NamespacedName { return client.ObjectKeyFromObject(o) }

var _ = Describe("API keys", func() {
	DescribeTable("are required for everything, and checked first",
		func(ctx context.Context, authorization string) {
			header := map[string]string{}
			if authorization != "" {
				header["Authorization"] = authorization
			}
			for _, request := range []struct{ method, path, body string }{
				{"GET", "/connections", ""},
				{"GET", "/connections?platform=myspace", ""},
				{"GET", "/posts", ""},
				{"GET", "/posts?page=x", ""},
				{"POST", "/posts", `[`},
				{"POST", "/posts", text("a", strings.Repeat("a", 2<<20))},
				{"POST", "/media/upload-url", `[`},
				{"GET", "/posts/p1", ""},
				{"DELETE", "/posts/p1", ""},
				{"PUT", "/posts", ""},
				{"GET", "/nowhere", ""},
				{"GET", "", ""},
			} {
				r := do(ctx, instance, request.method, base+request.path, request.body, header)
				r.mustFail(401, "UNAUTHORIZED", "")
				Expect(r.header.Get("WWW-Authenticate")).To(Equal("Bearer"))
			}
		},
		Entry("missing", ""),
		Entry("no scheme", "hrld_abc"),
		Entry("another scheme", "Basic aHJsZDphYmM="),
		Entry("no token", "Bearer "),
		Entry("mistyped", "Bearer hrld_abc"),
		Entry("unknown", "Bearer "+apitoken.New("nowhere", "none")),
		Entry("followed by more text", "Bearer hrld_abc def"),
		Entry("very long", "Bearer "+strings.Repeat("a", 15_000)),
	)

	It("are recognised whatever the scheme's capitalization", func(ctx context.Context) {
		t := newTeam(ctx)
		Expect(do(ctx, instance, "GET", base+"/posts", "", map[string]string{"Authorization": "bearer " + t.token}).status).To(Equal(200))
	})

	DescribeTable("become invalid within a second", func(ctx context.Context, end func(context.Context, *v1alpha1.APIKey) error, words string) {
		t := newTeam(ctx)
		Expect(end(ctx, t.key)).To(Succeed())
		Eventually(func() int { return t.call(ctx, "GET", "/posts", "").status }, time.Second).Should(Equal(401))
		t.call(ctx, "GET", "/posts", "").mustFail(401, "UNAUTHORIZED", words)
	},
		Entry("after their revocation", func(ctx context.Context, key *v1alpha1.APIKey) error {
			return admin.Patch(ctx, key, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"revoked":true}}`)))
		}, "revoked"),
		Entry("after their deletion", func(ctx context.Context, key *v1alpha1.APIKey) error { return admin.Delete(ctx, key) }, ""),
	)

	It("that the manager created are valid as soon as their status contains them", func(ctx context.Context) {
		t := newTeam(ctx)
		made, _ := t.newKey(ctx, "made", func(k *v1alpha1.APIKey) { k.Spec.Tokens = nil })
		token := apitoken.New(t.namespace, "made")
		made.Status.Tokens = []v1alpha1.APIKeyTokenStatus{{
			Name: v1alpha1.DefaultTokenName, CreatedAt: v1alpha1.NewTime(time.Now()), SHA256: apitoken.Hash(t.namespace, "made", token),
		}}
		Expect(admin.Status().Update(ctx, made)).To(Succeed())
		t.token = token
		Eventually(func() int { return t.call(ctx, "GET", "/posts", "").status }).Should(Equal(200))
	})

	It("cannot be taken over by copying their hash, even after they are deleted", func(ctx context.Context) {
		t, thief := newTeam(ctx), newTeam(ctx)
		hash := t.key.Spec.Tokens[0].SHA256
		copied := func(k *v1alpha1.APIKey) { k.Spec.Tokens[0].SHA256 = hash }
		thief.newKey(ctx, t.key.Name+"-too", copied)
		t.newKey(ctx, "another", copied)
		// A key with the same name as the victim's key, in another team.
		Expect(admin.Delete(ctx, thief.key)).To(Succeed())
		thief.newKey(ctx, t.key.Name, copied)
		works := func() int { return t.call(ctx, "GET", "/posts", "").status }
		Consistently(works, 300*time.Millisecond).Should(Equal(200))

		By("deleting the key, when the copies are the oldest with this hash")
		Expect(admin.Delete(ctx, t.key)).To(Succeed())
		Eventually(works).Should(Equal(401))
		Consistently(works, 500*time.Millisecond).Should(Equal(401), "a copied hash is rejected")

		By("applying the key again, like a restore")
		again := &v1alpha1.APIKey{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: t.key.Name}, Spec: t.key.Spec}
		Expect(admin.Create(ctx, again)).To(Succeed())
		Eventually(works).Should(Equal(200))
		sent := t.call(ctx, "POST", "/posts", "{}")
		Expect(sent.status).To(Equal(400), "the restored key authenticates its own team: %s", sent.body)
	})

	It("record their last use", func(ctx context.Context) {
		t := newTeam(ctx)
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, clientKey(t.key), t.key)).To(Succeed())
			g.Expect(t.key.Status.LastUsedAt).NotTo(BeNil())
			g.Expect(t.key.Status.LastUsedAt.Time).To(BeTemporally("~", time.Now(), 10*time.Second))
		}).Should(Succeed())
	})
})

var _ = Describe("writes of the apiserver", func() {
	It("have their own field manager, whatever the process's name", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		made := t.create(ctx, text("x", "Hello", inAnHour()))
		Expect(t.call(ctx, "DELETE", "/posts/"+made.ID, "").status).To(Equal(200))
		Expect(t.stored(ctx, made.ID).ManagedFields).To(HaveEach(HaveField("Manager", "herald-apiserver")))
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, clientKey(t.key), t.key)).To(Succeed())
			g.Expect(t.key.ManagedFields).To(ContainElement(SatisfyAll(HaveField("Manager", "herald-apiserver"), HaveField("Subresource", "status"))))
		}).Should(Succeed())
	})
})

var _ = Describe("listing connections", func() {
	It("lists the team's active accounts", func(ctx context.Context) {
		t := newTeam(ctx)
		other := newTeam(ctx)
		other.connect(ctx, "theirs", v1alpha1.PlatformX)
		first := t.connect(ctx, "b-first", v1alpha1.PlatformX)
		t.connect(ctx, "off", v1alpha1.PlatformX, func(c *v1alpha1.Connection) { c.Spec.Disabled = true })
		going := t.connect(ctx, "going", v1alpha1.PlatformX, func(c *v1alpha1.Connection) { c.Finalizers = []string{"example.com/keep"} })
		Expect(admin.Delete(ctx, going)).To(Succeed())
		second := t.connect(ctx, "a-second", v1alpha1.PlatformThreads)
		second.Status = v1alpha1.ConnectionStatus{
			AccountName: "Acme", IconURL: "https://img.example/a.png", ConnectedAt: v1alpha1.NewTimePtr(time.Date(2199, 1, 2, 3, 4, 5, 678e6, time.UTC)),
		}
		Expect(admin.Status().Update(ctx, second)).To(Succeed())

		want := fmt.Sprintf(`{"data":[`+
			`{"id":"b-first","platform":"x","account_name":null,"icon_url":null,"connected_at":%q},`+
			`{"id":"a-second","platform":"threads","account_name":"Acme","icon_url":"https://img.example/a.png","connected_at":"2199-01-02T03:04:05.678Z"}]}`,
			first.CreationTimestamp.UTC().Format("2006-01-02T15:04:05.000Z"))
		Eventually(func() string { return t.call(ctx, "GET", "/connections", "").body }).Should(Equal(want))
		threads := as[listBody](t.call(ctx, "GET", "/connections?platform=threads", ""))
		Expect(threads.ids()).To(Equal([]string{"a-second"}))
		Expect(t.call(ctx, "GET", "/connections?platform=youtube", "").body).To(Equal(`{"data":[]}`))
		t.call(ctx, "GET", "/connections?platform=myspace", "").mustFail(400, "VALIDATION_ERROR", "platform: must be one of youtube, tiktok")
		t.call(ctx, "GET", "/connections?platform=", "").mustFail(400, "VALIDATION_ERROR", "platform: ")

		going.Finalizers = nil
		Expect(admin.Get(ctx, clientKey(going), going)).To(Succeed())
		going.Finalizers = nil
		Expect(admin.Update(ctx, going)).To(Succeed())
	})
})

var _ = Describe("listing posts", func() {
	It("sorts, filters and pages", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-threads", v1alpha1.PlatformThreads)
		at := func(minute int) string { return fmt.Sprintf(`,"scheduled_at":"2199-01-01T00:%02d:00Z"`, minute) }
		late := t.create(ctx, text("acme-x", "The first thirty characters: äöü, and no more than that", at(30)))
		early := t.create(ctx, text("acme-threads", "early", at(10)))
		middle := t.create(ctx, text("acme-x", "middle", at(20)))
		kept := t.create(ctx, text("acme-x", "a draft", draft))
		gone := t.create(ctx, text("acme-x", "gone", at(25)))
		Expect(t.call(ctx, "DELETE", "/posts/"+gone.ID, "").status).To(Equal(200))

		list := func(query string) listBody { return as[listBody](t.call(ctx, "GET", "/posts"+query, "")) }
		all := list("")
		Expect(all.ids()).To(Equal([]string{late.ID, middle.ID, early.ID, kept.ID}), "newest display time first, without the cancelled one")
		Expect(all.Data[0].Title).To(Equal("The first thirty characters: ä"))
		Expect(all.Data[0].DisplayAt).To(Equal("2199-01-01T00:30:00.000Z"))
		Expect(all.Data[0].Platforms).To(HaveLen(1))
		Expect(all.Data[0].Platforms[0].Platform).To(Equal("x"))
		Expect(all.Data[0].Platforms[0].Status).To(Equal("scheduled"))
		Expect(all.Pagination).To(BeEquivalentTo(struct {
			Total   int  `json:"total"`
			Page    int  `json:"page"`
			Limit   int  `json:"limit"`
			HasNext bool `json:"has_next"`
		}{4, 1, 20, false}))

		Expect(list("?status=draft").ids()).To(Equal([]string{kept.ID}))
		Expect(list("?platform=threads").ids()).To(Equal([]string{early.ID}))
		Expect(list("?status=scheduled&platform=x").ids()).To(Equal([]string{late.ID, middle.ID}))
		Expect(list("?status=failed").Data).To(BeEmpty())

		page := list("?limit=3&page=1")
		Expect(page.ids()).To(HaveLen(3))
		Expect(page.Pagination.HasNext).To(BeTrue())
		page = list("?limit=3&page=2")
		Expect(page.ids()).To(Equal([]string{kept.ID}))
		Expect(page.Pagination.HasNext).To(BeFalse())
		page = list("?limit=2&page=2")
		Expect(page.Pagination.HasNext).To(BeFalse(), "a full last page is still the last")

		Expect(list("?page=0").Pagination.Page).To(Equal(1))
		Expect(list("?page=-7").Pagination.Page).To(Equal(1))
		Expect(list("?limit=0").Pagination.Limit).To(Equal(1))
		Expect(list("?limit=-1").Pagination.Limit).To(Equal(1))
		Expect(list("?limit=1000").Pagination.Limit).To(Equal(100))
		far := list("?page=9223372036854775807&limit=100")
		Expect(far.Data).To(BeEmpty())
		Expect(far.Pagination.Total).To(Equal(4))
		Expect(list("?page=99999999999999999999&limit=99999999999999999999").Pagination.Limit).To(Equal(100))

		for query, words := range map[string]string{
			"?page=x": "page: must be a whole number", "?limit=1.5": "limit: must be a whole number", "?limit=": "limit: ",
			"?page=99999999999999999999x": "page: ", "?status=cancelled": "status: must be one of posted, scheduled, processing, failed, draft",
			"?status=": "status: ", "?platform=X": "platform: must be one of",
		} {
			t.call(ctx, "GET", "/posts"+query, "").mustFail(400, "VALIDATION_ERROR", words)
		}
	})

	It("shows posts that were applied to Kubernetes", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/connections", "")).ids() }).Should(HaveLen(1))
		applied := &v1alpha1.Post{
			ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "launch"},
			Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText, Targets: []v1alpha1.PostTarget{
				{ConnectionRef: v1alpha1.LocalReference{Name: "acme-x"}, Caption: "We launched."},
			}},
		}
		Expect(admin.Create(ctx, applied)).To(Succeed())
		Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/posts?platform=x", "")).ids() }).Should(Equal([]string{"launch"}))
		Expect(t.call(ctx, "GET", "/posts/launch", "").status).To(Equal(200))
		Expect(admin.Delete(ctx, applied)).To(Succeed())
		Eventually(func() []string { return as[listBody](t.call(ctx, "GET", "/posts", "")).ids() }).Should(BeEmpty())
	})
})

var _ = Describe("the site", func() {
	It("rejects unknown paths in the shape of every error", func(ctx context.Context) {
		t := newTeam(ctx)
		t.call(ctx, "GET", "/nowhere", "").mustFail(404, "NOT_FOUND", "/nowhere")
		t.call(ctx, "GET", "", "").mustFail(404, "NOT_FOUND", "")
		t.call(ctx, "GET", "/posts/a/b", "").mustFail(404, "NOT_FOUND", "")
		t.call(ctx, "GET", "//posts", "").mustFail(404, "NOT_FOUND", "")
		t.call(ctx, "DELETE", "/connections/x", "").mustFail(404, "NOT_FOUND", "")
		for request, allowed := range map[string]string{
			"PUT /posts": "GET, HEAD, POST", "PATCH /posts": "GET, HEAD, POST", "POST /connections": "GET, HEAD", "OPTIONS /posts": "GET, HEAD, POST",
			"POST /posts/p1": "DELETE, GET, HEAD", "PUT /posts/p1": "DELETE, GET, HEAD", "PATCH /posts/p1": "DELETE, GET, HEAD",
			"DELETE /connections": "GET, HEAD", "GET /media/upload-url": "POST", "PUT /media/upload-url": "POST",
		} {
			method, path, _ := strings.Cut(request, " ")
			r := t.call(ctx, method, path, "")
			r.mustFail(405, "VALIDATION_ERROR", "does not support "+method)
			Expect(r.header.Get("Allow")).To(Equal(allowed))
		}
		do(ctx, instance, "GET", "/", "", nil).mustFail(404, "NOT_FOUND", "")
		do(ctx, instance, "GET", "/api/v1x", "", nil).mustFail(404, "NOT_FOUND", "")
		do(ctx, instance, "GET", "//health", "", nil).mustFail(404, "NOT_FOUND", "")
		r := do(ctx, instance, "POST", "/health", "", nil)
		r.mustFail(405, "VALIDATION_ERROR", "/health")
		Expect(r.header.Get("Allow")).To(Equal("GET, HEAD"))
	})

	It("answers HEAD like GET, without the body", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		created := t.call(ctx, "POST", "/posts", text("acme-x", "a", inAnHour()))
		id := as[postBody](created).Data.ID
		Expect(created.header.Get("Location")).To(Equal(base + "/posts/" + id))
		Expect(created.header.Get("Idempotency-Replayed")).To(BeEmpty())
		for _, path := range []string{"/posts", "/posts?status=draft", "/connections", created.header.Get("Location")[len(base):], "/posts/nothing", "/posts?page=x"} {
			get, head := t.call(ctx, "GET", path, ""), t.call(ctx, "HEAD", path, "")
			Expect(head.status).To(Equal(get.status), path)
			Expect(head.header.Get("Content-Length")).To(Equal(strconv.Itoa(len(get.body))), path)
			Expect(head.body).To(BeEmpty(), path)
		}
	})

	It("does not serve paths with a trailing slash, whatever the method", func(ctx context.Context) {
		t := newTeam(ctx)
		for _, method := range []string{"GET", "HEAD", "POST", "DELETE", "PUT", "OPTIONS"} {
			for _, path := range []string{"/posts/", "/connections/", "/media/upload-url/"} {
				r := t.call(ctx, method, path, "")
				Expect(r.status).To(Equal(http.StatusNotFound), "%s %s", method, path)
				Expect(r.header.Get("Allow")).To(BeEmpty())
			}
		}
	})

	It("is healthy without a key", func(ctx context.Context) {
		r := do(ctx, instance, "GET", "/health", "", nil)
		Expect(r.status).To(Equal(200))
		Expect(as[map[string]any](r)).To(Equal(map[string]any{"status": "ok"}))
		Expect(do(ctx, instance, "HEAD", "/health", "", nil).status).To(Equal(200))
	})

	It("serves identical OpenAPI documents", func(ctx context.Context) {
		y := do(ctx, instance, "GET", "/openapi.yaml", "", nil)
		Expect(y.body).To(Equal(string(openapi.YAML())))
		fromYAML, err := yaml.YAMLToJSON([]byte(y.body))
		Expect(err).NotTo(HaveOccurred())
		j := do(ctx, instance, "GET", "/openapi.json", "", nil)
		Expect(j.header.Get("Content-Type")).To(HavePrefix("application/json"))
		Expect(j.body).To(MatchJSON(fromYAML))
		document := as[struct {
			OpenAPI string `json:"openapi"`
			Info    struct {
				Version string `json:"version"`
			} `json:"info"`
			Paths map[string]map[string]json.RawMessage `json:"paths"`
		}](j)
		Expect(document.OpenAPI).To(Equal("3.0.3"))
		Expect(document.Info.Version).To(Equal("1.0.0"))
		var operations []string
		for _, methods := range document.Paths {
			for method, raw := range methods {
				if method == "parameters" {
					continue
				}
				var operation struct {
					ID string `json:"operationId"`
				}
				Expect(json.Unmarshal(raw, &operation)).To(Succeed())
				operations = append(operations, operation.ID)
			}
		}
		Expect(operations).To(ConsistOf("listConnections", "createMediaUploadUrl", "listPosts", "createPost", "getPost", "cancelPost"))
		for _, c := range contracts() {
			Expect(c.document.Validate(ctx)).To(Succeed(), c.base)
		}
	})

	It("serves its documentation as a page, without a key, scripts or other sites", func(ctx context.Context) {
		six := []string{"listConnections", "createMediaUploadUrl", "listPosts", "createPost", "getPost", "cancelPost"}
		for path, operations := range map[string][]string{"/docs": six, "/docs/v2": append(six, "updatePost", "retryPost")} {
			r := do(ctx, instance, "GET", path, "", nil)
			Expect(r.status).To(Equal(200), path)
			Expect(r.header.Get("Content-Type")).To(Equal("text/html; charset=utf-8"), path)
			Expect(r.header.Get("Content-Security-Policy")).To(MatchRegexp(`^default-src 'none'; connect-src 'self'; img-src data:; style-src 'sha256-[^']+';`))
			Expect(r.header.Get("Referrer-Policy")).To(Equal("no-referrer"), path)
			for _, id := range operations {
				Expect(r.body).To(ContainSubstring(`id="` + id + `"`))
			}
			Expect(r.body).To(MatchRegexp(`https://herald\.example\.com/api/v[12]/posts`), "the examples name the site")
			do(ctx, instance, "POST", path, "", nil).mustFail(405, "VALIDATION_ERROR", path)
		}
	})

	It("serves its documentation as text, without a key", func(ctx context.Context) {
		for path, contentType := range map[string]string{"/docs.md": "text/markdown; charset=utf-8", "/docs/v2.md": "text/markdown; charset=utf-8", "/llms.txt": "text/plain; charset=utf-8"} {
			r := do(ctx, instance, "GET", path, "", nil)
			Expect(r.status).To(Equal(200), path)
			Expect(r.header.Get("Content-Type")).To(Equal(contentType), path)
			Expect(r.body).To(HavePrefix("# Herald"), path)
			Expect(r.body).To(ContainSubstring("https://herald.example.com/"), "%s names the site", path)
			do(ctx, instance, "POST", path, "", nil).mustFail(405, "VALIDATION_ERROR", path)
		}
	})

	It("echoes a request id that is valid in a log, and generates one otherwise", func(ctx context.Context) {
		id := func(sent string) string {
			return do(ctx, instance, "GET", "/health", "", map[string]string{"X-Request-Id": sent}).header.Get("X-Request-Id")
		}
		Expect(id("client-17/a:b")).To(Equal("client-17/a:b"))
		Expect(id("")).To(MatchRegexp(`^[A-Z2-7]{26}$`))
		Expect(id(strings.Repeat("a", 129))).To(MatchRegexp(`^[A-Z2-7]{26}$`))
		Expect(id(`a" level=ERROR`)).To(MatchRegexp(`^[A-Z2-7]{26}$`))
		Expect(id("\u00e4")).To(MatchRegexp(`^[A-Z2-7]{26}$`))
	})

	It("counts requests by operation, never by id", func(ctx context.Context) {
		t := newTeam(ctx)
		t.call(ctx, "GET", "/posts/p123", "")
		do(ctx, instance, "POST", base+"/posts", "{}", nil)
		metrics := metricsOf(instance)
		Expect(metrics).To(ContainSubstring(`herald_http_requests_total{code="404",operation="getPost"}`))
		Expect(metrics).To(ContainSubstring(`herald_http_requests_total{code="401",operation="createPost"}`))
		Expect(metrics).To(ContainSubstring(`herald_http_request_duration_seconds_count{operation="listPosts"}`))
		Expect(metrics).To(ContainSubstring(`herald_post_index_posts `))
		Expect(metrics).NotTo(ContainSubstring("p123"))
		Expect(statusOf(instance.private + "/livez")).To(Equal(200))
	})
})

var _ = Describe("stopping", func() {
	It("reports that it is not ready, continues serving, and completes requests in progress", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "silent-x", v1alpha1.PlatformX)
		own := start(restricted, func(c *apiserver.Config) { c.ShutdownDelay = 500 * time.Millisecond })
		header := map[string]string{"Authorization": "Bearer " + t.token}
		Eventually(func() int { return do(ctx, own, "GET", base+"/posts", "", header).status }).Should(Equal(200))

		slow := make(chan reply, 1)
		go func() {
			defer GinkgoRecover()
			slow <- do(ctx, own, "POST", base+"/posts", text("silent-x", "a"), header)
		}()
		connection := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Namespace: t.namespace, Name: "silent-x"}}
		Eventually(func(g Gomega) {
			g.Expect(admin.Get(ctx, clientKey(connection), connection)).To(Succeed())
			g.Expect(connection.Annotations).To(HaveKey(v1alpha1.ProbeAnnotation))
		}).Should(Succeed())
		own.cancel()
		Eventually(func() int { return statusOf(own.private + "/readyz") }).Should(Equal(503))
		Expect(do(ctx, own, "GET", base+"/posts", "", header).status).To(Equal(200), "requests succeed until the load balancer has removed the server")
		// The check's result arrives during shutdown.
		Eventually(func() int { return statusOf(own.site + "/health") }).Should(BeZero())
		Expect(answer(ctx, connection, connection.Annotations[v1alpha1.ProbeAnnotation])).To(Succeed())
		var r reply
		Eventually(slow).Should(Receive(&r))
		Expect(r.status).To(Equal(http.StatusCreated), "%s", r.body)
		Eventually(own.done).Should(Receive(Succeed()))
	})

	It("serves HTTPS with the given certificate", func(ctx context.Context) {
		certificate, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", nil, nil)
		Expect(err).NotTo(HaveOccurred())
		pair, err := tls.X509KeyPair(certificate, key)
		Expect(err).NotTo(HaveOccurred())
		own := start(restricted, func(c *apiserver.Config) {
			c.TLS = &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return &pair, nil }}
		})
		defer own.stop()
		roots := x509.NewCertPool()
		Expect(roots.AppendCertsFromPEM(certificate)).To(BeTrue())
		client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
		defer client.CloseIdleConnections()
		Eventually(func(g Gomega) {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.Replace(own.site, "http:", "https:", 1)+"/health", http.NoBody)
			g.Expect(err).NotTo(HaveOccurred())
			response, err := client.Do(request)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(response.Body.Close()).To(Succeed())
			g.Expect(response.StatusCode).To(Equal(http.StatusOK))
		}).Should(Succeed())

		By("answering invalid requests in the shape of every error, too")
		conn, err := tls.Dial("tcp", strings.TrimPrefix(own.site, "http://"), &tls.Config{RootCAs: roots})
		Expect(err).NotTo(HaveOccurred())
		defer conn.Close() //nolint:errcheck // no longer needed
		_, err = io.WriteString(conn, "GET /api/v1/posts/%zz HTTP/1.1\r\nHost: h\r\n\r\n")
		Expect(err).NotTo(HaveOccurred())
		answer, err := io.ReadAll(conn)
		Expect(err).NotTo(HaveOccurred())
		Expect(string(answer)).To(And(HavePrefix("HTTP/1.1 400"), ContainSubstring(`"code":"VALIDATION_ERROR"`)))
	})

	It("stops while it is waiting for the Kubernetes API", func() {
		nowhere := *restricted
		nowhere.Host = "https://127.0.0.1:1"
		own := run(configure(&nowhere))
		Eventually(func() int { return statusOf(own.private + "/livez") }).Should(Equal(200))
		Expect(statusOf(own.private + "/readyz")).To(Equal(503))
		own.stop()
	})
})
