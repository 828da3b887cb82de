// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/apiserver/openapi"
)

// base and baseV2 are the path prefixes of the API's versions.
const (
	base   = "/api/v1"
	baseV2 = "/api/v2"
)

// reply is a response that has been validated against the OpenAPI document.
type reply struct {
	status int
	header http.Header
	body   string
}

// call sends a request with the team's API key.
func (t *team) call(ctx context.Context, method, path, body string) reply {
	GinkgoHelper()
	return do(ctx, instance, method, base+path, body, map[string]string{"Authorization": "Bearer " + t.token})
}

// do sends a request and validates the response against the OpenAPI document, which must describe its status, type and
// body for the operation. A response that belongs to no operation must still be an error envelope.
func do(ctx context.Context, to *running, method, path, body string, header map[string]string) reply {
	GinkgoHelper()
	request, err := http.NewRequestWithContext(ctx, method, to.site+path, strings.NewReader(body))
	Expect(err).NotTo(HaveOccurred())
	if method == http.MethodPost || method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, value := range header {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	r := reply{status: response.StatusCode, header: response.Header, body: string(answer)}
	Expect(r.header.Get("X-Request-Id")).NotTo(BeEmpty())
	if c := contractAt(request.URL.Path); c != nil && method != http.MethodHead {
		c.conforms(ctx, r, request)
		if r.status/100 == 2 && !strings.Contains(r.body, `"valid":false`) {
			c.describes(ctx, request, body)
		}
	}
	return r
}

type contract struct {
	base     string
	document *openapi3.T
	router   routers.Router
	// open is the router of the published document, which allows additional fields.
	open routers.Router
}

// contracts are the published documents, with two changes: they have no servers, which would be compared with the test
// server's address, and they allow no additional fields, because a response must not have undocumented fields.
var contracts = sync.OnceValue(func() []*contract {
	return []*contract{newContract(base, openapi.YAML()), newContract(baseV2, openapi.YAMLV2With(capabilities))}
})

// contractAt returns the document for a path, or nil.
func contractAt(path string) *contract {
	for _, c := range contracts() {
		if strings.HasPrefix(path, c.base) {
			return c
		}
	}
	return nil
}

func newContract(base string, published []byte) *contract {
	load := func() *openapi3.T {
		document, err := openapi3.NewLoader().LoadFromData(published)
		Expect(err).NotTo(HaveOccurred())
		document.Servers = nil
		return document
	}
	open, err := legacy.NewRouter(load())
	Expect(err).NotTo(HaveOccurred())
	document := load()
	for _, schema := range document.Components.Schemas {
		if schema.Value.Type.Is(openapi3.TypeObject) {
			schema.Value.AdditionalProperties = openapi3.AdditionalProperties{Has: new(false)}
		}
	}
	router, err := legacy.NewRouter(document)
	Expect(err).NotTo(HaveOccurred())
	return &contract{base, document, router, open}
}

var beyond64Bits = regexp.MustCompile(`[0-9]{19}`)

// describes validates a successful request against the document, which must describe every request that the service
// accepts.
func (c *contract) describes(ctx context.Context, request *http.Request, body string) {
	GinkgoHelper()
	if beyond64Bits.MatchString(request.URL.RawQuery) {
		return // the validator parses an integer into 64 bits
	}
	bare := request.Clone(ctx)
	bare.URL.Path = strings.TrimPrefix(bare.URL.Path, c.base)
	bare.Body = io.NopCloser(strings.NewReader(body))
	route, params, err := c.open.FindRoute(bare)
	Expect(err).NotTo(HaveOccurred())
	Expect(openapi3filter.ValidateRequest(ctx, &openapi3filter.RequestValidationInput{
		Request: bare, PathParams: params, Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, MultiError: true},
	})).To(Succeed(), "%s %s with %s was served", request.Method, request.URL, body)
}

func (c *contract) conforms(ctx context.Context, r reply, request *http.Request) {
	GinkgoHelper()
	Expect(r.header.Get("Content-Type")).To(Equal("application/json; charset=utf-8"))
	bare := request.Clone(ctx)
	bare.URL.Path = strings.TrimPrefix(bare.URL.Path, c.base)
	bare.URL.RawPath = ""
	route, params, err := c.router.FindRoute(bare)
	if err != nil || strings.HasSuffix(bare.URL.Path, "/") { // the validator treats /posts/ as /posts
		Expect(r.status).To(BeElementOf(http.StatusUnauthorized, http.StatusNotFound, http.StatusMethodNotAllowed))
		var body any
		Expect(json.Unmarshal([]byte(r.body), &body)).To(Succeed())
		Expect(c.document.Components.Schemas["Error"].Value.VisitJSON(body)).To(Succeed())
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: bare, PathParams: params, Route: route},
		Status:                 r.status,
		Header:                 r.header,
		Options:                &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	input.SetBodyBytes([]byte(r.body))
	Expect(openapi3filter.ValidateResponse(ctx, input)).To(Succeed(), "%s %s returned %d %s", request.Method, request.URL, r.status, r.body)
}

// as decodes a response.
func as[T any](r reply) T {
	GinkgoHelper()
	var out T
	Expect(json.Unmarshal([]byte(r.body), &out)).To(Succeed())
	return out
}

type postBody struct {
	Data post `json:"data"`
}

type post struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Status      string   `json:"status"`
	Category    string   `json:"category"`
	MediaIDs    []string `json:"media_ids"`
	ScheduledAt *string  `json:"scheduled_at"`
	CanCancel   bool     `json:"can_cancel"`
	Platforms   []struct {
		Platform     string  `json:"platform"`
		ConnectionID string  `json:"connection_id"`
		AccountName  string  `json:"account_name"`
		Status       string  `json:"status"`
		Caption      string  `json:"caption"`
		ExternalURL  *string `json:"external_url"`
		ErrorMessage *string `json:"error_message"`
	} `json:"platforms"`
	DisplayAt string `json:"display_at"`
}

type listBody struct {
	Data       []post `json:"data"`
	Pagination struct {
		Total   int  `json:"total"`
		Page    int  `json:"page"`
		Limit   int  `json:"limit"`
		HasNext bool `json:"has_next"`
	} `json:"pagination"`
}

func (l listBody) ids() []string {
	out := []string{}
	for i := range l.Data {
		out = append(out, l.Data[i].ID)
	}
	return out
}

type errorBody struct {
	Error struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// mustFail expects an error with the given status, code and part of the message.
func (r reply) mustFail(status int, code, words string) {
	GinkgoHelper()
	Expect(r.status).To(Equal(status), "%s", r.body)
	body := as[errorBody](r)
	Expect(body.Error.Code).To(Equal(code), "%s", r.body)
	Expect(body.Error.Message).To(ContainSubstring(words))
}

// create creates a post and expects success.
func (t *team) create(ctx context.Context, body string) post {
	GinkgoHelper()
	r := t.call(ctx, "POST", "/posts", body)
	Expect(r.status).To(Equal(http.StatusCreated), "%s", r.body)
	return as[postBody](r).Data
}
