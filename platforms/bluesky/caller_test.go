// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/dpop"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
	"github.com/herald-social/herald/test/must"
)

// provenAt returns a Platform and an OAuth token that is bound to a key. Their server demands a nonce and verifies the
// proofs; answer writes its responses.
func provenAt(t *testing.T, answer func(w http.ResponseWriter, r *http.Request)) (*Platform, platforms.Token) {
	t.Helper()
	s := &issuer{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "" {
			answer(w, r) // a public document
			return
		}
		proof := s.claimsOf(r.Header.Get("DPoP"), nil)
		hash := sha256.Sum256([]byte("access"))
		if r.Header.Get("Authorization") != "DPoP access" || proof["ath"] != base64.RawURLEncoding.EncodeToString(hash[:]) || proof["htm"] != r.Method {
			t.Errorf("the proof %v is for another request", proof)
		}
		w.Header().Set("DPoP-Nonce", "n")
		if proof["nonce"] != "n" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error":"use_dpop_nonce"}`))
			return
		}
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	key, err := dpop.NewProofKey()
	must.Succeed(t, err)
	of := bound{Key: key, DID: accountDID, PDS: server.URL, Issuer: server.URL}
	access, err := of.text("access")
	must.Succeed(t, err)
	return New(Config{Config: platforms.Config{APIURL: server.URL}}, transport.New(transport.Options{})), platforms.Token{Access: access}
}

func TestProvenCalls(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		status int
		body   string
		calls  int64
		class  platforms.Class
	}{
		"valid":       {"the first call has no nonce, and is repeated with the server's", 200, `{"did":"` + accountDID + `"}`, 2, ""},
		"expired":     {"the manager renews the token, and the call was not made", 401, `{"error":"invalid_token"}`, 2, platforms.ClassRefresh},
		"wrong clock": {"a new token would not help", 401, `{"error":"invalid_dpop_proof"}`, 2, platforms.ClassTransient},
		"new nonces":  {"the nodes of a server may have a nonce each, which is not the token's fault", 401, `{"error":"use_dpop_nonce"}`, 2, platforms.ClassTransient},
		"suspended":   {"the account's owner has to act, and a new token would not help", 401, `{"error":"AccountTakedown"}`, 2, ""},
		"proxy":       {"it proves nothing about the call", 401, "", 2, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var calls atomic.Int64
			calls.Store(1) // without a nonce
			p, token := provenAt(t, func(w http.ResponseWriter, _ *http.Request) {
				calls.Add(1)
				w.WriteHeader(tc.status)
				_, _ = w.Write([]byte(tc.body))
			})
			resp, failure := p.read(t.Context(), "identify", "/xrpc/com.atproto.server.getSession?a=b", token)
			if recorder.ClassOf(asError(failure)) != tc.class || calls.Load() != tc.calls || (resp == nil) != (tc.class != "") {
				t.Errorf("%s: %d calls, %v", tc.reason, calls.Load(), failure)
			}
		})
	}
}

// TestProvenPublish checks that the complete post is sent again when the server demands a nonce, and that a response
// that may come from a proxy leaves the outcome unknown.
func TestProvenPublish(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		status  int
		body    string
		outcome platforms.Outcome
		class   platforms.Class
	}{
		"posted":    {"the call with a nonce is complete", 200, "", platforms.Posted, ""},
		"expired":   {"the manager renews the token, and the post is sent again", 401, `{"error":"invalid_token"}`, platforms.NotSent, platforms.ClassRefresh},
		"suspended": {"the account's owner has to act", 401, `{"error":"AccountDeactivated"}`, platforms.Refused, platforms.ClassRestricted},
		"proxy":     {"it may have passed the call on", 401, "<html>", platforms.Unknown, platforms.ClassUnknown},
		"lost":      {"the server may have made the post", 0, "", platforms.Unknown, platforms.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			var sent []string
			p, token := provenAt(t, func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				must.Succeed(t, err)
				mu.Lock()
				sent = append(sent, string(body))
				mu.Unlock()
				if tc.status == 0 {
					panic(http.ErrAbortHandler)
				}
				w.WriteHeader(tc.status)
				var made put
				must.Succeed(t, json.Unmarshal(body, &made))
				_, _ = w.Write([]byte(cmp.Or(tc.body, `{"uri":"at://`+accountDID+`/app.bsky.feed.post/`+made.Key+`","cid":"bafy"}`)))
			})
			job := hello
			job.Account.ID, job.Account.Token = accountDID, token
			got := p.Publish(t.Context(), job)
			mu.Lock()
			defer mu.Unlock()
			if got.Outcome != tc.outcome || recorder.ClassOf(asError(got.Err)) != tc.class || len(sent) != 1 || !strings.Contains(sent[0], job.Content.Text) {
				t.Errorf("%s: got %+v, %v, after %q", tc.reason, got, got.Err, sent)
			}
		})
	}
}

func asError(failure *platforms.Error) error {
	if failure == nil {
		return nil
	}
	return failure
}

// TestIdentifyOnOwnServer checks that an account's own server, which anyone can run, cannot claim to be another account
// or to have another account's handle.
func TestIdentifyOnOwnServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, did, handle, owner string
		class                      platforms.Class
		want                       platforms.Identity
	}{
		"own":           {"the configured server confirms the handle", accountDID, "acme.example", accountDID, "", platforms.Identity{AccountID: accountDID, Username: "acme.example", DisplayName: "acme.example"}},
		"other account": {"a team's account would be replaced by one that nobody there controls", "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", "acme.example", accountDID, platforms.ClassReconnect, platforms.Identity{}},
		"other handle":  {"users would read a well-known name", accountDID, "known.example", "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", "", platforms.Identity{AccountID: accountDID, DisplayName: accountDID}},
		"no handle":     {"the handle is not a name", accountDID, "handle", accountDID, "", platforms.Identity{AccountID: accountDID, DisplayName: accountDID}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, token := provenAt(t, func(w http.ResponseWriter, r *http.Request) {
				switch {
				case r.URL.Path == resolvePath:
					_, _ = w.Write([]byte(`{"did":"` + tc.owner + `"}`))
				case strings.HasSuffix(r.URL.Path, ".getSession"):
					_, _ = w.Write([]byte(`{"did":"` + tc.did + `","handle":"` + tc.handle + `"}`))
				default:
					w.WriteHeader(http.StatusBadRequest) // the account has no profile
				}
			})
			got, err := p.Identify(t.Context(), token)
			if got != tc.want || recorder.ClassOf(err) != tc.class {
				t.Errorf("%s: got %+v, %v", tc.reason, got, err)
			}
		})
	}
}
