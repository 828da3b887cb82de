// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package links

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFind(t *testing.T) {
	tests := []struct {
		name, text string
		want       []string
	}{
		{"an address alone", "https://example.com/a", []string{"https://example.com/a"}},
		{"two", "see http://a.example and https://b.example/x?y=1#z now", []string{"http://a.example", "https://b.example/x?y=1#z"}},
		{"the sentence's punctuation", "It is https://a.example/b. (Or https://a.example/c)!", []string{"https://a.example/b", "https://a.example/c"}},
		{"brackets of the address", "https://a.example/b_(c) [https://a.example/d]", []string{"https://a.example/b_(c)", "https://a.example/d"}},
		{"quotes", `"https://a.example/b"`, []string{"https://a.example/b"}},
		{"any case", "HTTPS://A.example", []string{"HTTPS://A.example"}},
		{"inside a word", "xhttps://a.example", nil},
		{"after a letter that is not Latin", "見https://a.example", nil},
		{"after punctuation", "見、https://a.example", []string{"https://a.example"}},
		{"a bare domain", "a.example", nil},
		{"a scheme alone", "https:// and http://.", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []string
			for _, l := range Find(tt.text) {
				got = append(got, tt.text[l[0]:l[1]])
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
