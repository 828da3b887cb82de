// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/herald-social/herald/api/v1alpha1"
)

// The recorded answers of version 1. ID and TIME stand for values that differ between runs.
const (
	recordedImage = `{"data":{"id":"ID","status":"scheduled","category":"image","media_ids":["picture"],"tree_cards":[],"scheduled_at":"TIME","can_cancel":true,` +
		`"platforms":[{"platform":"tiktok","connection_id":"acme-tiktok","account_name":"Account of acme-tiktok","status":"scheduled","caption":"Edited","youtube_title":null,"external_url":null,"error_message":null}],` +
		`"display_at":"TIME"}}`
	recordedTree = `{"data":{"id":"ID","status":"draft","category":"tree","media_ids":[],"tree_cards":[{"caption":"a","media_ids":[]},{"caption":"b","media_ids":[]}],` +
		`"scheduled_at":null,"can_cancel":true,` +
		`"platforms":[{"platform":"x","connection_id":"acme-x","account_name":"","status":"draft","caption":"","youtube_title":null,"external_url":null,"error_message":null}],` +
		`"display_at":"TIME"}}`
	recordedList = `{"data":[{"id":"ID","title":"Edited","status":"scheduled","category":"image","platforms":[{"platform":"tiktok","status":"scheduled"}],"display_at":"TIME"},` +
		`{"id":"ID","title":"a","status":"draft","category":"tree","platforms":[{"platform":"x","status":"draft"}],"display_at":"TIME"}],` +
		`"pagination":{"total":2,"page":1,"limit":20,"has_next":false}}`
	recordedCancel = `{"data":{"id":"ID","status":"cancelled"}}`
)

var (
	anyID   = regexp.MustCompile(`\bp[a-z2-7]{25}\b`)
	anyTime = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z`)
)

func recorded(of string) string {
	return anyTime.ReplaceAllString(anyID.ReplaceAllString(of, "ID"), "TIME")
}

var _ = Describe("Version 1 of the API", func() {
	// The spec uses everything that version 2 adds. Its document is compared with the contract's tables in
	// apiserver/openapi, and MCP's tools with a recording in apiserver/mcp.
	It("answers as recorded, byte for byte, even after calls of version 2", func(ctx context.Context) {
		t := newTeam(ctx)
		t.connect(ctx, "acme-x", v1alpha1.PlatformX)
		t.connect(ctx, "acme-tiktok", v1alpha1.PlatformTikTok)
		t.verified(ctx, "picture", v1alpha1.MimePNG, 1000)
		content := `{"category":"image","draft":true,"media_ids":["picture"],"alt_texts":["A cat"],"targets":[{"connection_id":"acme-tiktok","caption":"Hello","tiktok_draft":true,"is_ai_generated":true}]}`
		Expect(as[validationBody](t.callV2(ctx, "POST", "/posts/validate", content)).Data.Valid).To(BeTrue())
		image := t.createV2(ctx, content)
		r := t.patch(ctx, image, `{"targets":[{"connection_id":"acme-tiktok","caption":"Edited","tiktok_draft":true}]}`)
		Expect(r.status).To(Equal(200), r.body)
		edited := as[struct{ Data postV2 }](r).Data
		r = t.patch(ctx, edited, fmt.Sprintf(`{"draft":false%s}`, inAnHour()))
		Expect(r.status).To(Equal(200), r.body)
		Expect(edited.AltTexts).To(HaveExactElements(HaveValue(Equal("A cat"))))
		tree := t.createV2(ctx, `{"category":"tree","draft":true,"tree_cards":[{"caption":"a","alt_texts":[]},{"caption":"b"}],"targets":[{"connection_id":"acme-x"}]}`)
		Expect(t.find(ctx, "q=edited&sort=display_at&connection_id=acme-tiktok").Data).To(HaveLen(1))

		for path, want := range map[string]string{
			"/posts/" + image.ID: recordedImage, "/posts/" + tree.ID: recordedTree, "/posts": recordedList,
			"/posts?cursor=a&from=b&to=c&q=d&sort=e&category=f&connection_id=g": recordedList,
		} {
			r := t.call(ctx, "GET", path, "")
			Expect(recorded(r.body)).To(Equal(want), path)
			Expect(r.header).NotTo(HaveKey("Etag"))
			if strings.Contains(path, "?") {
				Expect(r.header.Get("Herald-Ignored")).To(Equal("category, connection_id, cursor, from, q, sort, to"))
			}
		}
		for path, body := range map[string]string{"/posts": content, "/media/upload-url": strings.TrimSuffix(upload("a.png", "image/png", 1), "}") + `,"alt_text":"A dog"}`} {
			r := t.call(ctx, "POST", path, body)
			Expect(r.status).To(Equal(201), r.body)
			Expect(r.header.Get("Herald-Ignored")).To(HavePrefix("alt_text"))
			Expect(r.body).NotTo(ContainSubstring("alt_text"))
		}
		for _, method := range []string{"PATCH", "PUT"} {
			r := t.call(ctx, method, "/posts/"+image.ID, "{}")
			Expect(r.status).To(Equal(405))
			Expect(r.header.Get("Allow")).To(Equal("DELETE, GET, HEAD"))
		}
		Expect(t.call(ctx, "POST", "/posts/validate", content).header.Get("Allow")).To(Equal("DELETE, GET, HEAD"))
		Expect(recorded(t.call(ctx, "DELETE", "/posts/"+image.ID, "").body)).To(Equal(recordedCancel))
	})
})
