// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/openapi"
	"github.com/herald-social/herald/apiserver/strictjson"
)

func target(fields string) string {
	return `{"category":"text","targets":[{"connection_id":"a","caption":"b"},{` + fields + `}]}`
}

func with(fields string) string {
	return `{"category":"text","targets":[{"connection_id":"a","caption":"b"}],` + fields + `}`
}

func TestRefusedBodies(t *testing.T) {
	t.Parallel()
	const badTime = "must be a time in RFC 3339 form, such as 2026-12-01T09:00:00Z"
	tests := map[string]struct{ body, want string }{
		"empty":                  {"", "the body is empty; send a JSON object"},
		"null":                   {`null`, "the body must be a JSON object"},
		"no category":            {`{"targets":[{"connection_id":"a"}]}`, "category: is missing; it is one of image, text, tree, video"},
		"category null":          {`{"category":null,"targets":[{"connection_id":"a"}]}`, "category: must be a string, one of image, text, tree, video"},
		"category a number":      {`{"category":1,"targets":[{"connection_id":"a"}]}`, "category: must be a string, one of image, text, tree, video"},
		"unknown category":       {`{"category":"poem","targets":[{"connection_id":"a"}]}`, "category: must be one of image, text, tree, video"},
		"other capitals":         {`{"Category":"text","targets":[{"connection_id":"a"}]}`, "category: is missing; it is one of image, text, tree, video"},
		"category and others":    {`{"category":"poem","draft":1,"targets":[{"caption":1}],"scheduled_at":"now"}`, "category: must be one of image, text, tree, video; draft: must be a boolean; scheduled_at: " + badTime + "; targets[0].connection_id: is missing"},
		"no cards":               {`{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[]}`, "tree_cards: must have at least 1 item"},
		"too many cards":         {`{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[` + strings.Repeat(`{},`, 100) + `{}]}`, "tree_cards: must have at most 100 items"},
		"cards no list":          {`{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":{}}`, "tree_cards: must be an array"},
		"a card a string":        {`{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":["a"]}`, "tree_cards[0]: must be an object"},
		"card media a string":    {`{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[{"media_ids":"m"}]}`, "tree_cards[0].media_ids: must be an array"},
		"card media numbers":     {`{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[{"media_ids":[1]}]}`, "tree_cards[0].media_ids[0]: must be a string"},
		"card text a number":     {`{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[{"caption":1}]}`, "tree_cards[0].caption: must be a string or null"},
		"no video":               {`{"category":"video","targets":[{"connection_id":"a"}]}`, "media_id: is missing"},
		"no images":              {`{"category":"image","targets":[{"connection_id":"a"}],"media_ids":[]}`, "media_ids: must have at least 1 item"},
		"too many images":        {`{"category":"image","targets":[{"connection_id":"a"}],"media_ids":["m"` + strings.Repeat(`,"m"`, 35) + `]}`, "media_ids: must have at most 35 items"},
		"thumbnail a string":     {`{"category":"video","media_id":"m","targets":[{"connection_id":"a"}],"thumbnail_time":"1"}`, "thumbnail_time: must be a number"},
		"thumbnail negative":     {`{"category":"video","media_id":"m","targets":[{"connection_id":"a"}],"thumbnail_time":-1}`, "thumbnail_time: must be at least 0"},
		"thumbnail too late":     {`{"category":"video","media_id":"m","targets":[{"connection_id":"a"}],"thumbnail_time":1e9}`, "thumbnail_time: must be at most 2147483"},
		"thumbnail huge":         {`{"category":"video","media_id":"m","targets":[{"connection_id":"a"}],"thumbnail_time":1e999}`, "thumbnail_time: is a larger number than can be read"},
		"no targets":             {`{"category":"text"}`, "targets: is missing"},
		"targets null":           {`{"category":"text","targets":null}`, "targets: must be an array"},
		"targets an object":      {`{"category":"text","targets":{}}`, "targets: must be an array"},
		"targets empty":          {`{"category":"text","targets":[]}`, "targets: must have at least 1 item"},
		"too many targets":       {`{"category":"text","targets":[` + strings.Repeat(`{"connection_id":"a"},`, 100) + `{"connection_id":"a"}]}`, "targets: must have at most 100 items"},
		"a target null":          {`{"category":"text","targets":[null]}`, "targets[0]: must be an object"},
		"no category, a number":  {`{"targets":[1]}`, "category: is missing; it is one of image, text, tree, video; targets[0]: must be an object"},
		"no connection":          {target(`"caption":"b"`), "targets[1].connection_id: is missing"},
		"connection empty":       {target(`"connection_id":""`), "targets[1].connection_id: must not be empty"},
		"connection null":        {target(`"connection_id":null`), "targets[1].connection_id: must be a string"},
		"connection too long":    {target(`"connection_id":"` + strings.Repeat("a", 254) + `"`), "targets[1].connection_id: must have at most 253 characters"},
		"caption empty":          {target(`"connection_id":"a","caption":""`), "targets[1].caption: must not be empty"},
		"caption null":           {target(`"connection_id":"a","caption":null`), "targets[1].caption: must be a string"},
		"caption a list":         {target(`"connection_id":"a","caption":["b"]`), "targets[1].caption: must be a string"},
		"caption beyond storing": {target(`"connection_id":"a","caption":"` + strings.Repeat("ä", 65537) + `"`), "targets[1].caption: must have at most 65536 characters"},
		"title empty":            {target(`"connection_id":"a","youtube_title":""`), "targets[1].youtube_title: must not be empty"},
		"flag a string":          {target(`"connection_id":"a","is_ai_generated":"yes"`), "targets[1].is_ai_generated: must be a boolean"},
		"flag a number":          {target(`"connection_id":"a","tiktok_draft":1`), "targets[1].tiktok_draft: must be a boolean"},
		"unknown privacy":        {target(`"connection_id":"a","tiktok_privacy_level":"FRIENDS"`), "targets[1].tiktok_privacy_level: must be one of PUBLIC_TO_EVERYONE, SELF_ONLY"},
		"draft a string":         {with(`"draft":"true"`), "draft: must be a boolean"},
		"draft null":             {with(`"draft":null`), "draft: must be a boolean"},
		"time a number":          {with(`"scheduled_at":1764579600`), "scheduled_at: must be a string or null"},
		"time without zone":      {with(`"scheduled_at":"2026-12-01T09:00:00"`), "scheduled_at: " + badTime},
		"time a date":            {with(`"scheduled_at":"2026-12-01"`), "scheduled_at: " + badTime},
		"time empty":             {with(`"scheduled_at":""`), "scheduled_at: " + badTime},
		"an invalid day":         {with(`"scheduled_at":"2026-02-30T09:00:00Z"`), "scheduled_at: " + badTime},
		"several":                {`{"category":"text","targets":[{},{"connection_id":1}],"draft":0}`, "draft: must be a boolean; targets[0].connection_id: is missing; targets[1].connection_id: must be a string"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := readPost([]byte(tc.body))
			if err == nil {
				t.Fatal("the decoder accepts it")
			}
			if got := err.Error(); got != tc.want {
				t.Errorf("got  %q\nwant %q", got, tc.want)
			}
		})
	}
}

// FuzzCreatePost compares the decoder with the published schema: a body that can be parsed is accepted if and only if
// it matches the schema and two rules that a schema cannot express (see describes).
func FuzzCreatePost(f *testing.F) {
	for _, seed := range []string{
		"", "{}", with(`"draft":true`), with(`"scheduled_at":null`), with(`"scheduled_at":"2026-12-01T09:00:00.5+01:00","x":[{}]`),
		target(`"connection_id":"a","caption":"\ud83d\ude00","tiktok_privacy_level":"SELF_ONLY","tiktok_allow_duet":false`),
		target(`"connection_id":"a","caption":"b","caption":""`), `{"category":"text","targets":[{"connection_id":1e3}]}`,
		`{"category":"video","media_id":"m","thumbnail_time":-1.5e3,"targets":[{"connection_id":"a","youtube_title":"t"}]}`,
		`{"category":"image","media_ids":["m",""],"targets":[{"connection_id":"a"}]}`,
		`{"category":"tree","tree_cards":[{"caption":null,"media_ids":["m"]}],"targets":[{"connection_id":"a","caption":{}}]}`,
	} {
		f.Add([]byte(seed))
	}
	schema := schemaOf(f, "CreatePostRequest")
	f.Fuzz(func(t *testing.T, body []byte) {
		if _, err := strictjson.Parse(body); err != nil {
			return
		}
		_, err := readPost(body)
		if err != nil && err.Error() == "" {
			t.Errorf("%q returned no error", body)
		}
		if want := describes(t, schema, body); (err == nil) != want {
			t.Errorf("the schema allows %q: %t, but the decoder returned %v", body, want, err)
		}
	})
}

// FuzzCreateMediaUpload compares the decoder with the published schema, and the decoded values with the body.
func FuzzCreateMediaUpload(f *testing.F) {
	for _, seed := range []string{
		"", "{}", `{"mime_type":"image/png","size_bytes":48213,"name":"launch.png"}`,
		`{"mime_type":"video/mp4","size_bytes":9223372036854775807,"name":"\ud83d\ude00.mp4","x":{"name":1}}`,
		`{"mime_type":"video/quicktime","size_bytes":1e3,"name":"a"}`, `{"mime_type":"image/jpeg","size_bytes":1.0,"name":"a"}`,
		`{"mime_type":"image/webp","size_bytes":-0,"name":""}`, `{"mime_type":"image/gif","size_bytes":9223372036854775808,"name":null}`,
		`{"mime_type":["image/png"],"size_bytes":"1","name":"../../etc/passwd\u0000"}`, `{"mime_type":"image/png","mime_type":"video/mp4","size_bytes":1,"name":"a"}`,
		`{"mime_type":"image/png","size_bytes":1,"name":"` + strings.Repeat("\u00e4", maxFile) + `"}`,
	} {
		f.Add([]byte(seed))
	}
	schema := schemaOf(f, "CreateMediaUploadRequest")
	f.Fuzz(func(t *testing.T, body []byte) {
		value, err := strictjson.Parse(body)
		if err != nil {
			return
		}
		got, err := CreateMediaUpload(value)
		if err != nil && err.Error() == "" {
			t.Errorf("%q returned no error", body)
		}
		want, described := describedUpload(t, schema, body)
		if (err == nil) != described {
			t.Fatalf("the schema allows %q: %t, but the decoder returned %v", body, described, err)
		}
		if diff := cmp.Diff(want, got.Spec); err == nil && diff != "" {
			t.Errorf("parsing %q changed its content (-want +got):\n%s", body, diff)
		}
	})
}

// describedUpload reports whether the schema accepts a body, and returns its values. The size must fit into 64 bits,
// which the validator does not check.
func describedUpload(t *testing.T, schema *openapi3.Schema, body []byte) (spec v1alpha1.MediaSpec, ok bool) {
	t.Helper()
	if !describes(t, schema, body) {
		return spec, false
	}
	var said map[string]json.RawMessage // a struct would also match names with other capitals
	var mime v1alpha1.MimeType
	var name string
	if err := errors.Join(json.Unmarshal(body, &said), json.Unmarshal(said["mime_type"], &mime), json.Unmarshal(said["name"], &name)); err != nil {
		t.Fatalf("the schema allows %q in a wrong format: %v", body, err)
	}
	size, ok := new(big.Float).SetPrec(1 << 12).SetString(string(said["size_bytes"]))
	if !ok {
		return spec, false // the exponent exceeds 32 bits
	}
	whole, exactly := size.Int64()
	return v1alpha1.MediaSpec{MimeType: mime, SizeBytes: whole, FileName: name}, exactly == big.Exact
}

func schemaOf(tb testing.TB, name string) *openapi3.Schema {
	tb.Helper()
	document, err := openapi3.NewLoader().LoadFromData(openapi.YAML())
	if err != nil {
		tb.Fatal(err)
	}
	return document.Components.Schemas[name].Value
}

// describes reports whether a body matches the schema and two rules that it cannot express: the grammar of times, and
// the fields that the target of a tree rejects.
func describes(t *testing.T, schema *openapi3.Schema, body []byte) bool {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	var value map[string]any
	if err := decoder.Decode(&value); err != nil {
		t.Fatal(err)
	}
	if at, ok := value["scheduled_at"].(string); ok {
		if _, err := time.Parse(time.RFC3339, at); err != nil {
			return false
		}
		delete(value, "scheduled_at") // the validator requires two digits for hours, Go one
	}
	if schema.VisitJSON(value) != nil {
		return false
	}
	targets, _ := value["targets"].([]any)
	for _, target := range targets {
		fields, _ := target.(map[string]any)
		for _, name := range []string{"caption", "youtube_title", "is_ai_generated", "tiktok_draft", "tiktok_auto_add_music"} {
			if _, ok := fields[name]; ok && value["category"] == "tree" {
				return false
			}
		}
	}
	return true
}
