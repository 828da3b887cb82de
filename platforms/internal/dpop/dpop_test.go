// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package dpop

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/google/go-cmp/cmp"
)

// TestProof verifies proofs as a server does, with the key in their header.
func TestProof(t *testing.T) {
	t.Parallel()
	key, err := NewProofKey()
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(1796115661, 0)
	for name, tc := range map[string]struct {
		reason  string
		request Request
		want    map[string]any
	}{
		"token request": {
			"there is no token yet, and no nonce",
			Request{Method: "POST", Address: "https://as.example/oauth/token", At: at},
			map[string]any{"htm": "POST", "htu": "https://as.example/oauth/token", "iat": 1796115661.0},
		},
		"call": {
			"the query is not part of the proof, and the token's hash is",
			Request{Method: "GET", Address: "https://pds.example/xrpc/a.b.c?d=e#f", Token: "token", Nonce: "n", At: at},
			map[string]any{"htm": "GET", "htu": "https://pds.example/xrpc/a.b.c", "iat": 1796115661.0, "nonce": "n", "ath": "PEaenWxYddN6Q_NT1PiOYfz4EsZu7jRXRlpAsNpBU-A"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := key.Proof(&tc.request)
			if err != nil {
				t.Fatal(err)
			}
			token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.ES256})
			if err != nil {
				t.Fatal(err)
			}
			header := token.Headers[0]
			if header.JSONWebKey == nil || !header.JSONWebKey.IsPublic() || header.ExtraHeaders["typ"] != "dpop+jwt" {
				t.Errorf("%s: the header is %+v", tc.reason, header)
			}
			got := map[string]any{}
			if err := token.Claims(header.JSONWebKey, &got); err != nil {
				t.Fatal(err)
			}
			if id, _ := got["jti"].(string); len(id) < 16 {
				t.Errorf("%s: a proof is used once, but its id is %q", tc.reason, id)
			}
			delete(got, "jti")
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: claims (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

func TestKeyText(t *testing.T) {
	t.Parallel()
	key, err := NewProofKey()
	if err != nil {
		t.Fatal(err)
	}
	text, err := key.Text()
	if err != nil || len(text) != 43 {
		t.Fatalf("a key has %d characters, %v", len(text), err)
	}
	again, err := ParseProofKey(text)
	if err != nil || !again.private.Equal(key.private) {
		t.Errorf("the key is not read back: %v", err)
	}
	for _, bad := range []string{"", "abc", text + "A", "\x00", text[:42] + "!"} {
		if _, err := ParseProofKey(bad); err == nil {
			t.Errorf("%q is read as a key", bad)
		}
	}
}

func TestNonces(t *testing.T) {
	t.Parallel()
	n := NewNonces()
	as, pds := &url.URL{Scheme: "https", Host: "as.example", Path: "/oauth/token"}, &url.URL{Scheme: "https", Host: "pds.example"}
	n.Update(as, http.Header{"Dpop-Nonce": {"first"}})
	n.Update(as, http.Header{})
	n.Update(&url.URL{Scheme: "https", Host: "as.example", Path: "/oauth/par"}, http.Header{"Dpop-Nonce": {"second"}})
	n.Update(pds, http.Header{"Dpop-Nonce": {strings.Repeat("a", longestNonce+1)}})
	if got := n.Of(as) + n.Of(pds); got != "second" {
		t.Errorf("the nonces are %q; each server has its own, the last one counts, and none is long", got)
	}
}
