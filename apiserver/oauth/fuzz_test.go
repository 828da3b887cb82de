// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"crypto/hmac"
	"crypto/sha256"
	"net/url"
	"strings"
	"testing"
	"time"
)

// FuzzRedirect checks, for any registered address, that the response goes to a site over HTTPS, to this machine, or to
// an application, and to no host other than the one displayed.
func FuzzRedirect(f *testing.F) {
	for _, address := range []string{
		"https://agent.example/back", "http://127.0.0.1:4711/cb", "http://[::1]/", "cursor://anysphere/cb", "com.example.app:/cb",
		"https://user@agent.example/", "https://agent.example\\@evil.example/", "https://аgent.example/", "javascript:alert(1)", "https://a/#b", "https:a",
	} {
		f.Add(address)
	}
	f.Fuzz(func(t *testing.T, address string) {
		if checkRedirect(address) != nil {
			return
		}
		u, err := url.Parse(address)
		if err != nil {
			t.Fatalf("%q was accepted, but is not a URL: %v", address, err)
		}
		switch {
		case len(address) > maxRedirect, u.User != nil, u.Fragment != "", strings.ContainsAny(address, " \\<>\"\r\n\t"):
			t.Errorf("%q was accepted", address)
		case u.Scheme == secure && (u.Host == "" || !strings.HasPrefix(strings.ToLower(address), "https://"+strings.ToLower(u.Host))):
			t.Errorf("%q names another host than %q", address, u.Host)
		case u.Scheme == unsecured && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1" && u.Hostname() != "localhost":
			t.Errorf("%q sends the response unencrypted", address)
		case u.Scheme == "javascript", u.Scheme == "data", u.Scheme == "file", u.Scheme == "blob":
			t.Errorf("%q is code or a file", address)
		}
	})
}

// FuzzClientDocument checks, for any document from an untrusted site, that the accepted values are limited, and that
// the client's id is the document's address.
func FuzzClientDocument(f *testing.F) {
	const id = "https://agent.example/client.json"
	f.Add(`{"client_id":"https://agent.example/client.json","redirect_uris":["https://agent.example/cb"],"client_name":"A"}`, "max-age=60")
	f.Add(`{"client_id":"https://agent.example/client.json","redirect_uris":["javascript:1"],"client_uri":"javascript:1"}`, "no-store")
	f.Add(`{"client_id":["x"],"redirect_uris":{}}`, "max-age=\"99999999999999999999\"")
	f.Add(`null`, "MAX-AGE=-1, max-age=1")
	f.Fuzz(func(t *testing.T, text, cacheControl string) {
		if life := lifeOf(cacheControl); life < failureLife || life > longestLife {
			t.Errorf("a document is remembered for %s", life)
		}
		client, err := clientOf(id, []byte(text))
		if err != nil {
			return
		}
		if client.ID != id || !client.Verified || len(client.Redirects) == 0 || len(client.Redirects) > maxRedirects {
			t.Errorf("accepted: %+v", client)
		}
		if client.URI != "" && !strings.HasPrefix(client.URI, "https://") {
			t.Errorf("the home page %q would be linked", client.URI)
		}
		for _, address := range client.Redirects {
			if err := checkRedirect(address); err != nil {
				t.Errorf("%q was accepted: %v", address, err)
			}
		}
	})
}

// fixedKeys signs with a key that the fuzzer cannot guess.
type fixedKeys struct{ Keys }

func (fixedKeys) Sign(purpose, text string) []byte {
	mac := hmac.New(sha256.New, []byte("a key of this test alone"))
	mac.Write([]byte(purpose + "\x00" + text))
	return mac.Sum(nil)
}

// FuzzSigned checks, for any client_id or refresh token, that only values that this installation has signed are
// accepted.
func FuzzSigned(f *testing.F) {
	s := &Server{Config: Config{Keys: fixedKeys{}}}
	ours := s.clientID(registration{Name: "A", Redirects: []string{"https://agent.example/cb"}, At: time.Unix(1e9, 0).Unix(), Nonce: "12345678"})
	f.Add(ours)
	f.Add(strings.TrimSuffix(ours, "A") + "B")
	f.Add("dcr_e30.")
	f.Add("hor_team-a.grant-1.1.AAAA.AAAA")
	f.Add("hor_team-a.grant-1.-1.AAAA.AAAA")
	f.Add("hor_....")
	f.Fuzz(func(t *testing.T, token string) {
		if client := s.registered(token); client != nil && token != ours && strings.TrimPrefix(token, registeredPrefix) != strings.TrimPrefix(ours, registeredPrefix) {
			t.Errorf("%q was parsed as our registration: %+v", token, client)
		}
		said, ok := s.readRefresh(token)
		if ok && (said.genuine || said.generation < 1 || said.namespace == "" || said.name == "" || len(token) > maxRefresh) {
			t.Errorf("%q was parsed as our token: %+v", token, said)
		}
	})
}
