// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package platforms_test

import (
	"testing"

	"github.com/herald-social/herald/platforms"
)

func TestPictureURL(t *testing.T) {
	t.Parallel()
	for address, tc := range map[string]struct {
		reason string
		shown  bool
	}{
		"https://pbs.example/a.png?x=1":            {"as platforms have it", true},
		"http://127.0.0.1:9100/a.svg":              {"a simulated platform on this machine", true},
		"http://[::1]:9100/a.svg":                  {"and by its other address", true},
		"http://localhost:9100/a.svg":              {"and by its name", true},
		"http://pbs.example/a.png":                 {"who listens on the way sees who looks", false},
		"http://10.0.0.1/a.png":                    {"a page inside of a company", false},
		"http://127.0.0.1.evil.example/a":          {"a name is no address", false},
		"javascript:alert(1)":                      {"a script", false},
		"JaVaScRiPt:alert(1)":                      {"in any spelling", false},
		"data:image/svg+xml,<svg onload=alert(1)>": {"a picture with a script", false},
		"file:///etc/passwd":                       {"a file", false},
		"//pbs.example/a.png":                      {"it takes the scheme of the page", false},
		"/signout":                                 {"a page of Herald's", false},
		"https://user:word@pbs.example/a":          {"a password", false},
		"https:":                                   {"no host", false},
		"https:pbs.example/a":                      {"no host either", false},
		" https://pbs.example/a":                   {"not an address", false},
		"https://pbs.example/\x00":                 {"nor this", false},
		"":                                         {"no picture", false},
	} {
		want := ""
		if tc.shown {
			want = address
		}
		if got := platforms.PictureURL(address); got != want {
			t.Errorf("%q (%s): got %q", address, tc.reason, got)
		}
	}
}
