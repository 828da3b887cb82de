// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/gleak"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// bodyLimit is the maximum size of a body, in bytes: 1 MiB.
const bodyLimit = 1 << 20

// nested returns JSON with the given nesting depth.
func nested(levels int) string {
	return strings.Repeat("[", levels) + strings.Repeat("]", levels)
}

// objects counts the team's objects in Kubernetes that a request could have created.
func (t *team) objects(ctx context.Context) int {
	GinkgoHelper()
	posts, media := &v1alpha1.PostList{}, &v1alpha1.MediaList{}
	Expect(admin.List(ctx, posts, client.InNamespace(t.namespace))).To(Succeed())
	Expect(admin.List(ctx, media, client.InNamespace(t.namespace))).To(Succeed())
	return len(posts.Items) + len(media.Items)
}

// Any invalid input gets an error envelope and leaves no object behind.
var _ = Describe("bad input", Ordered, func() {
	var (
		t          *team
		objects    int
		goroutines []gleak.Goroutine
	)
	BeforeAll(func(ctx context.Context) {
		t = studio(ctx)
		for _, path := range []string{"/posts", "/media/upload-url"} { // one-time work for the first request is done here
			t.call(ctx, "POST", path, "{}").mustFail(400, "VALIDATION_ERROR", "")
		}
		objects = t.objects(ctx)
		http.DefaultClient.CloseIdleConnections()
		goroutines = gleak.Goroutines()
	})

	DescribeTable("in a body is rejected by every operation with a body",
		func(ctx context.Context, body string, status int, words string) {
			for _, path := range []string{"/posts", "/media/upload-url"} {
				t.call(ctx, "POST", path, body).mustFail(status, "VALIDATION_ERROR", words)
			}
		},
		Entry("an empty body", "", 400, "the body is empty"),
		Entry("an array", "[]", 400, "must be a JSON object"),
		Entry("a truncated object", `{"category":"te`, 400, "ends unexpectedly"),
		Entry("two objects", "{}{}", 400, ""),
		Entry("an additional comma", `{"category":"text",}`, 400, "not valid JSON"),
		Entry("compressed", "\x1f\x8b\x08\x00", 400, "not valid UTF-8"),
		Entry("too deep", `{"a":`+nested(64)+"}", 400, "is nested deeper than 64 levels"),
		Entry("a duplicate name", `{"category":"text","name":"a","category":"text"}`, 400, "category: appears twice in its object"),
		Entry("NUL in text", `{"name":"a\u0000b"}`, 400, `name: must not contain the NUL character`),
		Entry("half of a surrogate pair", `{"name":"\ud800"}`, 400, `name: contains half a surrogate pair (\ud800)`),
		Entry("a byte over the limit", "{"+strings.Repeat(" ", bodyLimit-1)+"}", 413, "larger than 1048576 bytes"),
		Entry("twice the limit", strings.Repeat("a", 2*bodyLimit), 413, "larger than 1048576 bytes"),
	)

	DescribeTable("in a post is rejected with its path",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
		},
		Entry("NUL in a caption", `{"category":"text","targets":[{"connection_id":"x","caption":"a\u0000"}]}`, "targets[0].caption: must not contain the NUL character"),
		Entry("a duplicate caption", `{"category":"text","targets":[{"connection_id":"x","caption":"a","caption":"b"}]}`, "targets[0].caption: appears twice"),
		Entry("more targets than allowed", `{"category":"text","targets":[`+strings.Repeat(`{"connection_id":"x","caption":"a"},`, 5000)+`{"connection_id":"x"}]}`, "targets: must have at most 100 items"),
		Entry("a caption of a megabyte", text("facebook", strings.Repeat("é", 500_000)), "targets[0].caption: must have at most 65536 characters"),
	)

	DescribeTable("in an upload is rejected with its path",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/media/upload-url", body).mustFail(400, "VALIDATION_ERROR", words)
		},
		Entry("a size of 20 digits", `{"name":"a.png","mime_type":"image/png","size_bytes":12345678901234567890}`, "size_bytes: must be a whole number"),
		Entry("a name of a megabyte", upload(strings.Repeat("a", 1_000_000)+".png", "image/png", 1), "name: must have at most 1024 characters"),
		Entry("a type with parameters", upload("a.png", "image/png; charset=binary", 1), "mime_type: must be one of"),
	)

	It("of a wrong type is rejected with its path, in every field of every body", func(ctx SpecContext) {
		schemas := contractAt(base).document.Components.Schemas
		rows := 0
		for path, bodies := range map[string]map[string]string{
			"/posts": {
				"CreateTextPost":  text("x", "a"),
				"CreateImagePost": images(2, aimed("x")),
				"CreateVideoPost": film("mp4", aimed("youtube"), `,"thumbnail_time":1`),
				"CreateTreePost":  cards(showing("png"), toX),
			},
			"/media/upload-url": {"CreateMediaUploadRequest": upload("a.png", "image/png", 1)},
		} {
			for name, body := range bodies {
				var value any
				Expect(json.Unmarshal([]byte(body), &value)).To(Succeed())
				misfits(schemas[name].Value, "", value, func(value any) any { return value }, func(where string, value any) {
					sent, err := json.Marshal(value)
					Expect(err).NotTo(HaveOccurred())
					t.call(ctx, "POST", path, string(sent)).mustFail(400, "VALIDATION_ERROR", where+": ")
					rows++
				})
			}
		}
		Expect(rows).To(BeNumerically(">", 250), "the walk reaches every field")
	})

	DescribeTable("in the header of a body is rejected",
		func(ctx context.Context, contentType string) {
			for path, body := range map[string]string{"/posts": text("x", "a"), "/media/upload-url": upload("a.png", "image/png", 1)} {
				header := map[string]string{"Authorization": "Bearer " + t.token, "Content-Type": contentType}
				do(ctx, instance, "POST", base+path, body, header).mustFail(415, "VALIDATION_ERROR", "application/json")
			}
		},
		Entry("an empty body", ""),
		Entry("text", "text/plain"),
	)

	It("that is compressed is rejected, with the accepted encoding", func(ctx SpecContext) {
		for _, path := range []string{"/posts", "/media/upload-url"} {
			for encoding, refused := range map[string]bool{"gzip": true, "identity, br": true, "aes128gcm": true, "identity": false, "Identity": false, "": false} {
				header := map[string]string{"Authorization": "Bearer " + t.token, "Content-Encoding": encoding}
				r := do(ctx, instance, "POST", base+path, "{}", header)
				if !refused {
					r.mustFail(400, "VALIDATION_ERROR", "is missing")
					continue
				}
				r.mustFail(415, "VALIDATION_ERROR", "Content-Encoding")
				Expect(r.header.Get("Accept-Encoding")).To(Equal("identity"))
			}
		}
	})

	It("is read as UTF-8, whatever its type", func(ctx SpecContext) {
		latin := map[string]string{"Authorization": "Bearer " + t.token, "Content-Type": "application/json; charset=latin1"}
		do(ctx, instance, "POST", base+"/posts", "{\"category\":\"text\xe4\"}", latin).mustFail(400, "VALIDATION_ERROR", "UTF-8")
		do(ctx, instance, "POST", base+"/posts", text("nowhere-ä", "a"), latin).mustFail(400, "VALIDATION_ERROR", "nowhere-ä")
	})

	DescribeTable("in the query of a list is rejected with its path",
		func(ctx context.Context, query, words string) {
			t.call(ctx, "GET", "/posts?"+query, "").mustFail(400, "VALIDATION_ERROR", words)
		},
		Entry("a page in scientific notation", "page=1e3", "page: must be a whole number"),
		Entry("an empty limit", "limit=", "limit: must be a whole number"),
		Entry("two pages", "page=1&page=2", "page: appears more than once in the query"),
		Entry("a status of single posts", "status=cancelled", "status: must be one of posted"),
		Entry("a list of platforms", "platform=x,threads", "platform: must be one of youtube"),
		Entry("an invalid escape", "status=%zz", "the query cannot be read"),
		Entry("semicolons", "page=1;limit=2", "the query cannot be read"),
	)

	DescribeTable("in the query of a list that has a defined meaning is accepted",
		func(ctx context.Context, query string, page, limit int) {
			got := as[listBody](t.call(ctx, "GET", "/posts?"+query, ""))
			Expect([]int{got.Pagination.Page, got.Pagination.Limit}).To(Equal([]int{page, limit}))
		},
		Entry("an empty body", "", 1, 20),
		Entry("unknown parameters, repeated", "a=1&a=2&sort=id", 1, 20),
		Entry("the largest 64-bit page", "page=9223372036854775807&limit=100", 9007199254740991, 100),
		Entry("numbers beyond 64 bits", "page=99999999999999999999&limit=99999999999999999999", 9007199254740991, 100),
	)

	DescribeTable("in an id is an unknown id",
		func(ctx context.Context, id string) {
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				t.call(ctx, method, "/posts/"+id, "").mustFail(404, "NOT_FOUND", "")
			}
		},
		Entry("NUL", "%00"),
		Entry("the parent folder", "%2e%2e%2fposts"),
		Entry("a line break", "a%0d%0aX-Evil:%201"),
		Entry("more characters than a name may have", strings.Repeat("a", 254)),
	)

	It("has no lasting effects", func(ctx SpecContext) {
		// Informers may start their watches again at any time, on a new connection.
		known := []any{
			goroutines, gleak.IgnoringCreator("k8s.io/apimachinery/pkg/watch.NewStreamWatcherWithLogger"),
			gleak.IgnoringCreator("net/http.(*Transport).dialConn"),
		}
		Expect(t.objects(ctx)).To(Equal(objects), "no object")
		Eventually(func() []gleak.Goroutine {
			http.DefaultClient.CloseIdleConnections() // the last one may become idle only after its response was read
			return gleak.Goroutines()
		}).ShouldNot(gleak.HaveLeaked(known...), "no goroutine")
	})
})

var _ = Describe("a body of exactly the limit", func() {
	It("is accepted, and its unknown fields are ignored", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		head := `{"mood":{"deep":` + nested(60) + `},"number":1e400,"category":"text","draft":true,"targets":[{"connection_id":"x","caption":"a","colour":[{}]}],"padding":"`
		body := head + strings.Repeat("a", bodyLimit-len(head)-2) + `"}`
		Expect(body).To(HaveLen(bodyLimit))
		Expect(t.create(ctx, body).Status).To(Equal("draft"))
	})
})

// misfits calls try with every variant of a body in which one value has a type that its schema does not allow, and with
// that value's path. whole returns the body with the value replaced.
func misfits(of *openapi3.Schema, where string, value any, whole func(any) any, try func(where string, body any)) {
	if where != "" {
		for _, wrong := range unlike(of) {
			try(where, whole(wrong))
		}
	}
	switch v := value.(type) {
	case map[string]any:
		for name, property := range of.Properties {
			inner, path := v[name], name
			if where != "" {
				path = where + "." + name
			}
			misfits(property.Value, path, inner, func(changed any) any {
				object := maps.Clone(v)
				object[name] = changed
				return whole(object)
			}, try)
		}
	case []any:
		for i := range v {
			misfits(of.Items.Value, fmt.Sprintf("%s[%d]", where, i), v[i], func(changed any) any {
				array := slices.Clone(v)
				array[i] = changed
				return whole(array)
			}, try)
		}
	}
}

// unlike returns values that a schema does not allow.
func unlike(of *openapi3.Schema) []any {
	all := []struct {
		is    string
		value any
	}{
		{"null", nil},
		{openapi3.TypeBoolean, true},
		{openapi3.TypeNumber, 1.5},
		{openapi3.TypeString, "word"},
		{openapi3.TypeArray, []any{}},
		{openapi3.TypeObject, map[string]any{}},
	}
	var out []any
	for _, one := range all {
		fits := of.Type.Is(one.is) && len(of.Enum) == 0 && of.Format != "date-time"
		if fits || one.is == "null" && of.Nullable {
			continue
		}
		out = append(out, one.value)
	}
	return out
}

// raw sends bytes and returns the response.
func raw(request string) (*http.Response, []byte) {
	GinkgoHelper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(instance.site, "http://"))
	Expect(err).NotTo(HaveOccurred())
	defer conn.Close() //nolint:errcheck // no longer needed
	_, err = io.WriteString(conn, request)
	Expect(err).NotTo(HaveOccurred())
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	Expect(err).NotTo(HaveOccurred())
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response, body
}

var _ = Describe("an invalid HTTP request", func() {
	DescribeTable("is answered in the shape of every error",
		func(request string, status int, words string) {
			response, body := raw(request)
			Expect(response.StatusCode).To(Equal(status), "%s", body)
			Expect(response.Header.Get("Content-Type")).To(Equal("application/json; charset=utf-8"))
			Expect(response.Header.Get("X-Request-Id")).NotTo(BeEmpty())
			var envelope struct {
				Error struct {
					Code    string `json:"code"`
					Message string `json:"message"`
				} `json:"error"`
			}
			Expect(json.Unmarshal(body, &envelope)).To(Succeed(), "%s", body)
			Expect(envelope.Error.Code).To(Equal("VALIDATION_ERROR"))
			Expect(envelope.Error.Message).To(ContainSubstring(words))
		},
		Entry("an invalid escape in an id", "GET /api/v1/posts/%zz HTTP/1.1\r\nHost: h\r\n\r\n", 400, "Bad Request"),
		Entry("no host", "GET /health HTTP/1.1\r\n\r\n", 400, "missing required Host header"),
		Entry("a length that is not a number", "POST /api/v1/posts HTTP/1.1\r\nHost: h\r\nContent-Length: x\r\n\r\n", 400, "Bad Request"),
		Entry("a header without a name", "GET /health HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400, "Bad Request"),
		Entry("headers that are too large", "GET /health HTTP/1.1\r\nHost: h\r\nX: "+strings.Repeat("a", 80<<10)+"\r\n\r\n", 431, "Request Header Fields Too Large"),
		Entry("an unsupported transfer encoding", "POST /api/v1/posts HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n", 501, "nsupported transfer encoding"),
		Entry("another version", "GET /health HTTP/3.0\r\nHost: h\r\n\r\n", 505, "HTTP Version Not Supported"),
	)

	It("does not affect the responses of handlers", func() {
		response, body := raw("GET /health HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
		Expect(response.StatusCode).To(Equal(http.StatusOK))
		Expect(string(body)).To(Equal("{\"status\":\"ok\"}\n"))
	})
})
