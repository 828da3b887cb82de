// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package strictjson

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestIgnored(t *testing.T) {
	t.Parallel()
	read := func(root Value) {
		root.Field("kind").Text(0, 10)
		List(root.Field("items"), 1, 2, func(v Value) string {
			if !v.Object() {
				return ""
			}
			return v.Field("name").Text(0, 10)
		})
	}
	for name, tc := range map[string]struct {
		reason, body string
		want         []string
	}{
		"Nothing":    {"all fields are known", `{"kind":"a","items":[{"name":"b"}]}`, nil},
		"Root":       {"fields are reported in the document's order", `{"since":1,"kind":"a","from":2}`, []string{"since", "from"}},
		"Deep":       {"the path is reported", `{"items":[{"name":"b"},{"nmae":"c"}]}`, []string{"items[1].nmae"}},
		"Whole":      {"fields of an ignored value are not reported", `{"more":{"kind":{"items":[{"x":1}]}}}`, []string{"more"}},
		"Capitals":   {"names are case-sensitive", `{"Kind":"a"}`, []string{"Kind"}},
		"Escaped":    {"an escaped name is the same name", `{"k\u0069nd":"a"}`, nil},
		"Empty":      {"an empty name is a name", `{"":1}`, []string{""}},
		"WrongType":  {"a value of a wrong type is reported elsewhere", `{"kind":{"x":1},"items":{"y":1}}`, nil},
		"NotRead":    {"excess items are not parsed", `{"items":[{"x":1},{"x":1},{"x":1}]}`, nil},
		"InAnArray":  {"an array in place of an object has no field names", `{"items":[[{"x":1}]]}`, nil},
		"AtMostFour": {"the number is limited", `{"a":1,"b":1,"c":1,"d":1,"e":1}`, []string{"a", "b", "c", "d"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root, err := Parse([]byte(tc.body))
			if err != nil {
				t.Fatal(err)
			}
			read(root)
			if diff := cmp.Diff(tc.want, root.Ignored(4)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
