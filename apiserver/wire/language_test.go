// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"strings"
	"testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/strictjson"
)

func TestLanguage(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, target, want, wrong string }{
		"Language": {"the usual form", `{"connection_id":"c","language":"en"}`, "en", ""},
		"Script":   {"Chinese has two", `{"connection_id":"c","language":"zh-Hant-TW"}`, "zh-Hant-TW", ""},
		"Null":     {"responses have it so", `{"connection_id":"c","language":null}`, "", ""},
		"Empty":    {"a form sends it so", `{"connection_id":"c","language":""}`, "", ""},
		"Name":     {"platforms want a tag", `{"connection_id":"c","language":"English"}`, "", "targets[0].language: must be the tag of a language"},
		"Case":     {"the resource accepts one spelling", `{"connection_id":"c","language":"pt-br"}`, "", "targets[0].language: must be the tag of a language"},
		"Number":   {"it is a text", `{"connection_id":"c","language":7}`, "", "targets[0].language: must be a string or null"},
		"NoObject": {"the target's own problem is enough", `7`, "", "targets[0]: must be an object"},
	} {
		for _, category := range []string{`"text"`, `"tree","tree_cards":[{"caption":"a"},{"caption":"b"}]`} {
			t.Run(name+category[:6], func(t *testing.T) {
				t.Parallel()
				read := func() strictjson.Value {
					body, err := strictjson.Parse([]byte(`{"category":` + category + `,"targets":[` + tc.target + `]}`))
					if err != nil {
						t.Fatal(err)
					}
					return body
				}
				got, err := CreatePostV2(read())
				if tc.wrong != "" {
					if err == nil || !strings.Contains(err.Error(), tc.wrong) {
						t.Errorf("%s: %v, want %q", tc.reason, err, tc.wrong)
					}
					return
				}
				if err != nil || got.Spec.Targets[0].Language != tc.want {
					t.Errorf("%s: %+v, %v", tc.reason, got.Spec.Targets, err)
				}
				if shown := string(appendTarget(nil, &got.Spec.Targets[0])); tc.want != "" && !strings.Contains(shown, `,"language":"`+tc.want+`"`) || tc.want == "" && !strings.Contains(shown, `,"language":null`) {
					t.Errorf("%s: shown as %s", tc.reason, shown)
				}
				changed := UpdatePost(read(), &v1alpha1.PostSpec{Category: got.Spec.Category, Tree: got.Spec.Tree})
				if changed.Spec.Targets[0].Language != tc.want {
					t.Errorf("%s: an update reads %+v", tc.reason, changed.Spec.Targets)
				}
				if v1, _ := CreatePost(read()); v1.Spec.Targets[0].Language != "" {
					t.Errorf("version 1 reads %q", v1.Spec.Targets[0].Language)
				}
			})
		}
	}
}
