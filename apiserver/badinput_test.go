// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf16"

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

func zipped(body string) string {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := io.WriteString(w, body)
	Expect(err).NotTo(HaveOccurred())
	Expect(w.Close()).To(Succeed())
	return out.String()
}

func inUTF16(body string) string {
	var out bytes.Buffer
	for _, unit := range utf16.Encode([]rune(body)) {
		out.Write([]byte{byte(unit >> 8), byte(unit)})
	}
	return out.String()
}

// objects counts the team's objects in Kubernetes that a request could have created.
func (t *team) objects(ctx context.Context) int {
	GinkgoHelper()
	posts, media := &v1alpha1.PostList{}, &v1alpha1.MediaList{}
	Expect(admin.List(ctx, posts, client.InNamespace(t.namespace))).To(Succeed())
	Expect(admin.List(ctx, media, client.InNamespace(t.namespace))).To(Succeed())
	return len(posts.Items) + len(media.Items)
}

// field returns a text post's body with additional JSON.
func field(more string) string { return text("x", "a", draft, ","+more) }

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

	DescribeTable("in a body is refused by every operation that takes one",
		func(ctx context.Context, body func() string, status int, words string) {
			for _, path := range []string{"/posts", "/media/upload-url"} {
				t.call(ctx, "POST", path, body()).mustFail(status, "VALIDATION_ERROR", words)
			}
		},
		Entry("nothing", func() string { return "" }, 400, "the body is empty"),
		Entry("blanks", func() string { return " \n\t" }, 400, "not valid JSON"),
		Entry("a bare null", func() string { return "null" }, 400, "must be a JSON object"),
		Entry("a bare word", func() string { return "true" }, 400, "must be a JSON object"),
		Entry("a bare number", func() string { return "1e400" }, 400, "must be a JSON object"),
		Entry("a bare string", func() string { return `"text"` }, 400, "must be a JSON object"),
		Entry("an array", func() string { return "[]" }, 400, "must be a JSON object"),
		Entry("an array with the object in it", func() string { return "[" + field(`"a":1`) + "]" }, 400, "must be a JSON object"),
		Entry("an object that is cut off", func() string { return `{"category":"te` }, 400, "ends too early"),
		Entry("two objects", func() string { return "{}{}" }, 400, ""),
		Entry("a comma too many", func() string { return `{"category":"text",}` }, 400, "not valid JSON"),
		Entry("a comment", func() string { return "{/* hello */}" }, 400, "not valid JSON"),
		Entry("single quotes", func() string { return "{'category':'text'}" }, 400, "not valid JSON"),
		Entry("no number", func() string { return `{"a":NaN}` }, 400, "not valid JSON"),
		Entry("a form", func() string { return "category=text" }, 400, "not valid JSON"),
		Entry("two byte order marks", func() string { return "\ufeff\ufeff{}" }, 400, "not valid JSON"),
		Entry("a byte order mark alone", func() string { return "\ufeff" }, 400, "the body is empty"),
		Entry("UTF-16", func() string { return inUTF16(`{"category":"täxt"}`) }, 400, "not valid"),
		Entry("compressed", func() string { return zipped("{}") }, 400, "not valid UTF-8"),
		Entry("NUL bytes", func() string { return strings.Repeat("\x00", 100) }, 400, "not valid JSON"),
		Entry("bytes that are no text", func() string { return "{\"a\":\"\xc3\x28\"}" }, 400, "not valid UTF-8"),
		Entry("an overlong encoding of a slash", func() string { return "{\"a\":\"\xc0\xaf\"}" }, 400, "not valid UTF-8"),
		Entry("a surrogate in UTF-8", func() string { return "{\"a\":\"\xed\xa0\x80\"}" }, 400, "not valid UTF-8"),
		Entry("too deep", func() string { return `{"a":` + nested(64) + "}" }, 400, "nests deeper than 64 levels"),
		Entry("an abyss of arrays", func() string { return strings.Repeat("[", 500_000) }, 400, "nests deeper than 64 levels"),
		Entry("an abyss of objects", func() string { return strings.Repeat(`{"a":`, 200_000) }, 400, "nests deeper than 64 levels"),
		Entry("a name that stands twice", func() string { return `{"category":"text","name":"a","category":"text"}` }, 400, "category: stands twice in its object"),
		Entry("a name that stands twice, escaped", func() string { return `{"name":"a","n\u0061me":"b"}` }, 400, "name: stands twice in its object"),
		Entry("a name that stands twice where nobody looks", func() string { return `{"mood":[{"a":1,"a":1}]}` }, 400, "mood[0].a: stands twice in its object"),
		Entry("NUL in text", func() string { return `{"name":"a\u0000b"}` }, 400, `name: must not hold the NUL character`),
		Entry("half a surrogate pair", func() string { return `{"name":"\ud800"}` }, 400, `name: holds half a surrogate pair (\ud800)`),
		Entry("a byte over the limit", func() string { return "{" + strings.Repeat(" ", bodyLimit-1) + "}" }, 413, "larger than 1048576 bytes"),
		Entry("twice the limit", func() string { return strings.Repeat("a", 2*bodyLimit) }, 413, "larger than 1048576 bytes"),
	)

	DescribeTable("in a post is refused and named",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/posts", body).mustFail(400, "VALIDATION_ERROR", words)
		},
		Entry("NUL in a caption", `{"category":"text","targets":[{"connection_id":"x","caption":"a\u0000"}]}`, "targets[0].caption: must not hold the NUL character"),
		Entry("NUL in an id", `{"category":"text","targets":[{"connection_id":"x\u0000","caption":"a"}]}`, "targets[0].connection_id: must not hold the NUL character"),
		Entry("half an emoji in a caption", `{"category":"text","targets":[{"connection_id":"x","caption":"\ud83d"}]}`, "targets[0].caption: holds half a surrogate pair"),
		Entry("half an emoji in a card", `{"category":"tree","tree_cards":[{"caption":"a"},{"caption":"\ude00"}],"targets":[{"connection_id":"x"}]}`, "tree_cards[1].caption: holds half a surrogate pair"),
		Entry("a caption that stands twice", `{"category":"text","targets":[{"connection_id":"x","caption":"a","caption":"b"}]}`, "targets[0].caption: stands twice"),
		Entry("a draft that is also none", field(`"draft":false`), "draft: stands twice"),
		Entry("a huge thumbnail time", film("mp4", aimed("x"), `,"thumbnail_time":1e400`), "thumbnail_time: is a larger number than can be read"),
		Entry("a late thumbnail time", film("mp4", aimed("x"), `,"thumbnail_time":12345678901234567890`), "thumbnail_time: must be at most"),
		Entry("a negative thumbnail time", film("mp4", aimed("x"), `,"thumbnail_time":-1e-9`), "thumbnail_time: must be at least 0"),
		Entry("a time with a huge year", field(`"scheduled_at":"99999-01-01T00:00:00Z"`), "scheduled_at: must be a time in RFC 3339 form"),
		Entry("a time below zero", field(`"scheduled_at":"-0001-01-01T00:00:00Z"`), "scheduled_at: must be a time in RFC 3339 form"),
		Entry("a second that no day has", field(`"scheduled_at":"2030-12-30T23:59:60Z"`), "scheduled_at: must be a time in RFC 3339 form"),
		Entry("an offset that there is not", field(`"scheduled_at":"2030-01-01T00:00:00+99:99"`), "scheduled_at: must be a time in RFC 3339 form"),
		Entry("more targets than anybody has", `{"category":"text","targets":[`+strings.Repeat(`{"connection_id":"x","caption":"a"},`, 5000)+`{"connection_id":"x"}]}`, "targets: must have at most 100 items"),
		Entry("more cards than anybody writes", `{"category":"tree","tree_cards":[`+strings.Repeat(`{},`, 5000)+`{}],"targets":[{"connection_id":"x"}]}`, "tree_cards: must have at most 100 items"),
		Entry("an id of a megabyte", text(strings.Repeat("a", 1_000_000), "a"), "targets[0].connection_id: must have at most 253 characters"),
		Entry("a caption of a megabyte", text("facebook", strings.Repeat("é", 500_000)), "targets[0].caption: must have at most 65536 characters"),
		Entry("an id that is a path", text("../../kube-system/secrets", "a"), "no such connection"),
		Entry("an id in other scripts", text("ｘ", "a"), "no such connection"),
		Entry("a category in capitals", `{"category":"TEXT","targets":[{"connection_id":"x"}]}`, "category: must be one of"),
		Entry("a category with NUL", `{"category":"text\u0000","targets":[{"connection_id":"x"}]}`, "category: must not hold the NUL character"),
	)

	DescribeTable("in an upload is refused and named",
		func(ctx context.Context, body, words string) {
			t.call(ctx, "POST", "/media/upload-url", body).mustFail(400, "VALIDATION_ERROR", words)
		},
		Entry("a size of 20 digits", `{"name":"a.png","mime_type":"image/png","size_bytes":12345678901234567890}`, "size_bytes: must be a whole number"),
		Entry("a size without end", `{"name":"a.png","mime_type":"image/png","size_bytes":1e400}`, "size_bytes: must be a whole number"),
		Entry("a size with a fraction", `{"name":"a.png","mime_type":"image/png","size_bytes":10.5}`, "size_bytes: must be a whole number"),
		Entry("the least size", `{"name":"a.png","mime_type":"image/png","size_bytes":-9223372036854775808}`, "size_bytes: must be at least 1"),
		Entry("a name that is cut by NUL", `{"name":"a.png\u0000.exe","mime_type":"image/png","size_bytes":1}`, "name: must not hold the NUL character"),
		Entry("a name of a megabyte", upload(strings.Repeat("a", 1_000_000)+".png", "image/png", 1), "name: must have at most 1024 characters"),
		Entry("a type with parameters", upload("a.png", "image/png; charset=binary", 1), "mime_type: must be one of"),
	)

	It("of a wrong type is refused and named, in every field of every body", func(ctx SpecContext) {
		schemas := theContract().document.Components.Schemas
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

	DescribeTable("in the header of a body is refused",
		func(ctx context.Context, contentType string) {
			for path, body := range map[string]string{"/posts": text("x", "a"), "/media/upload-url": upload("a.png", "image/png", 1)} {
				header := map[string]string{"Authorization": "Bearer " + t.token, "Content-Type": contentType}
				do(ctx, instance, "POST", base+path, body, header).mustFail(415, "VALIDATION_ERROR", "application/json")
			}
		},
		Entry("nothing", ""),
		Entry("text", "text/plain"),
		Entry("a form", "application/x-www-form-urlencoded"),
		Entry("several parts", "multipart/form-data; boundary=a"),
		Entry("another JSON", "application/merge-patch+json"),
		Entry("two types", "application/json, application/json"),
		Entry("nonsense", "///"),
	)

	It("that is compressed is refused, with the encoding that is taken", func(ctx SpecContext) {
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

	It("is UTF-8, whatever its type says", func(ctx SpecContext) {
		latin := map[string]string{"Authorization": "Bearer " + t.token, "Content-Type": "application/json; charset=latin1"}
		do(ctx, instance, "POST", base+"/posts", "{\"category\":\"text\xe4\"}", latin).mustFail(400, "VALIDATION_ERROR", "UTF-8")
		do(ctx, instance, "POST", base+"/posts", text("nowhere-ä", "a"), latin).mustFail(400, "VALIDATION_ERROR", "nowhere-ä")
	})

	It("of unknown length is bounded like any other", func(ctx SpecContext) {
		endless := struct{ io.Reader }{strings.NewReader(`{"a":"` + strings.Repeat("a", 2*bodyLimit))}
		request, err := http.NewRequestWithContext(ctx, http.MethodPost, instance.site+base+"/posts", endless)
		Expect(err).NotTo(HaveOccurred())
		request.Header.Set("Content-Type", "application/json")
		request.Header.Set("Authorization", "Bearer "+t.token)
		response, err := http.DefaultClient.Do(request)
		Expect(err).NotTo(HaveOccurred())
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		Expect(err).NotTo(HaveOccurred())
		r := reply{response.StatusCode, response.Header, string(body)}
		r.conforms(ctx, request)
		r.mustFail(413, "VALIDATION_ERROR", "1048576 bytes")
	})

	DescribeTable("in the query of a list is refused and named",
		func(ctx context.Context, query, words string) {
			t.call(ctx, "GET", "/posts?"+query, "").mustFail(400, "VALIDATION_ERROR", words)
		},
		Entry("a page in scientific notation", "page=1e3", "page: must be a whole number"),
		Entry("a page with a point", "page=1.0", "page: must be a whole number"),
		Entry("a page in hexadecimal", "page=0x10", "page: must be a whole number"),
		Entry("a page beyond 64 bits that is none", "page=9223372036854775808a", "page: must be a whole number"),
		Entry("a page below 64 bits that is none", "page=-92233720368547758-09", "page: must be a whole number"),
		Entry("a page in other digits", "page=%D9%A3", "page: must be a whole number"),
		Entry("a page with a blank", "page=1%20", "page: must be a whole number"),
		Entry("a page with NUL", "page=1%00", "page: must be a whole number"),
		Entry("a list of pages", "page=1,2", "page: must be a whole number"),
		Entry("a limit in words", "limit=abc", "limit: must be a whole number"),
		Entry("an empty limit", "limit=", "limit: must be a whole number"),
		Entry("two pages", "page=1&page=2", "page: stands in the query more than once"),
		Entry("two equal limits", "limit=1&limit=1", "limit: stands in the query more than once"),
		Entry("two statuses", "status=draft&status=failed", "status: stands in the query more than once"),
		Entry("two platforms", "platform=x&page=1&platform=threads", "platform: stands in the query more than once"),
		Entry("an unknown status", "status=sent", "status: must be one of posted"),
		Entry("a status of details only", "status=cancelled", "status: must be one of posted"),
		Entry("a status in capitals", "status=DRAFT", "status: must be one of posted"),
		Entry("a status with NUL", "status=draft%00", "status: must be one of posted"),
		Entry("a status that is no text", "status=%ff", "status: must be one of posted"),
		Entry("a list of platforms", "platform=x,threads", "platform: must be one of youtube"),
		Entry("an empty platform", "platform=", "platform: must be one of youtube"),
		Entry("an escape that there is not", "status=%zz", "the query cannot be read"),
		Entry("half an escape", "page=1&a=%f", "the query cannot be read"),
		Entry("semicolons", "page=1;limit=2", "the query cannot be read"),
	)

	DescribeTable("in the query of a list that means something is taken",
		func(ctx context.Context, query string, page, limit int) {
			got := as[listBody](t.call(ctx, "GET", "/posts?"+query, ""))
			Expect([]int{got.Pagination.Page, got.Pagination.Limit}).To(Equal([]int{page, limit}))
		},
		Entry("nothing", "", 1, 20),
		Entry("parameters that nobody knows, as often as they please", "a=1&a=2&sort=id", 1, 20),
		Entry("the last page that all readers of JSON hold", "page=9007199254740991&limit=100", 9007199254740991, 100),
		Entry("one more", "page=9007199254740992&limit=100", 9007199254740991, 100),
		Entry("the last page of 64 bits", "page=9223372036854775807&limit=100", 9007199254740991, 100),
		Entry("the least numbers of 64 bits", "page=-9223372036854775808&limit=-9223372036854775808", 1, 1),
		Entry("numbers of more than 64 bits", "page=99999999999999999999&limit=99999999999999999999", 9007199254740991, 100),
		Entry("and below zero", "page=-99999999999999999999&limit=-99999999999999999999", 1, 1),
		Entry("a very long limit", "limit="+strings.Repeat("9", 15_000), 1, 100),
		Entry("zeros before a number", "page=007&limit=0100", 7, 100),
	)

	DescribeTable("in an id is an id that no post has",
		func(ctx context.Context, id string) {
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				t.call(ctx, method, "/posts/"+id, "").mustFail(404, "NOT_FOUND", "")
			}
		},
		Entry("NUL", "%00"),
		Entry("a name that NUL ends", "a%00b"),
		Entry("a dot", "%2e"),
		Entry("the folder above", "%2e%2e%2fposts"),
		Entry("a line break", "a%0d%0aX-Evil:%201"),
		Entry("bytes that are no text", "%c3%28"),
		Entry("text that runs backwards", "%E2%80%AEtsop"),
		Entry("an escape of an escape", "%2500"),
		Entry("more than a name may have", strings.Repeat("a", 254)),
		Entry("nearly as much as a header takes", strings.Repeat("a", 15_000)),
	)

	It("leaves nothing behind", func(ctx SpecContext) {
		Expect(t.objects(ctx)).To(Equal(objects), "no object")
		http.DefaultClient.CloseIdleConnections()
		Eventually(gleak.Goroutines).ShouldNot(gleak.HaveLeaked(goroutines), "no goroutine")
	})
})

var _ = Describe("a body of exactly the limit", func() {
	It("is taken, and what is not known of it is ignored", func(ctx SpecContext) {
		t := newTeam(ctx)
		t.connect(ctx, "x", v1alpha1.PlatformX)
		head := `{"mood":{"deep":` + nested(60) + `},"number":1e400,"category":"text","draft":true,"targets":[{"connection_id":"x","caption":"a","colour":[{}]}],"padding":"`
		body := head + strings.Repeat("a", bodyLimit-len(head)-2) + `"}`
		Expect(body).To(HaveLen(bodyLimit))
		Expect(t.create(ctx, body).Status).To(Equal("draft"))
	})
})

// misfits calls try with every variant of a body in which one value has a type that its schema does not allow, and with
// the path of that value. whole returns the body for a replaced value.
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
