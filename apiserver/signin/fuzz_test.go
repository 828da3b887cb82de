// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package signin

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

// FuzzLocalPath checks that the browser stays on this site, regardless of the return address.
func FuzzLocalPath(f *testing.F) {
	for _, wanted := range []string{"/t/acme/posts?page=2", "//evil.example", "/\\evil.example", "/%2f/evil.example", "/%255cevil.example", "\thttps://evil.example", "/a#b", "/signin/callback", ""} {
		f.Add(wanted)
	}
	site, err := url.Parse("https://herald.example/signin")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, wanted string) {
		path := localPath(wanted)
		if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") || strings.ContainsAny(path, "\\\t\r\n\x00") {
			t.Fatalf("%q leads to %q", wanted, path)
		}
		next, err := site.Parse(path)
		if err != nil {
			t.Fatalf("%q redirects to %q, which is not a URL: %v", wanted, path, err)
		}
		if next.Host != site.Host || next.Scheme != site.Scheme || next.User != nil {
			t.Errorf("%q leads to %q", wanted, next)
		}
		if again := localPath(path); again != path {
			t.Errorf("%q leads to %q, and that to %q", wanted, path, again)
		}
	})
}

// FuzzClaims checks, for any claims from a provider, that no user gets a name reserved by Kubernetes, and that an
// unverified email is rejected.
func FuzzClaims(f *testing.F) {
	f.Add(`{"email":"ann@acme.example","email_verified":true,"groups":["a","b"]}`)
	f.Add(`{"email":"ann@acme.example","email_verified":"true","groups":"a"}`)
	f.Add(`{"email":"system:admin","email_verified":true,"groups":["system:masters",null]}`)
	f.Add(`{"email":"a\u0000b","email_verified":true}`)
	f.Add(`{"email":["a"],"email_verified":1}`)
	p := &provider{OIDC: &OIDC{UsernameClaim: "email", GroupsClaim: "groups"}, name: "the provider"}
	f.Fuzz(func(t *testing.T, text string) {
		var all claims
		if json.Unmarshal([]byte(text), &all) != nil {
			return
		}
		who, err := p.personOf(all)
		if err != nil {
			return
		}
		if !all.verified() {
			t.Errorf("%s: %q is not a verified email", text, who.Name)
		}
		for _, name := range append(who.Groups, who.Name) {
			if name == "" || len(name) > maxName || strings.HasPrefix(name, "system:") || strings.ContainsFunc(name, isControl) {
				t.Errorf("%s: the name %q was accepted", text, name)
			}
		}
	})
}
