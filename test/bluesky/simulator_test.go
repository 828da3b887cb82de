// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/sandbox"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/sandboxtest"
)

// servers start Bluesky's own server and the simulated one. The same must be true of both.
var servers = map[string]func(t *testing.T, handles ...string) *server{"own": start, "simulated": simulate}

// simulate starts the simulated server with accounts, at the root of its address.
func simulate(t *testing.T, handles ...string) *server {
	t.Helper()
	simulated, err := sandbox.New(sandbox.Options{Lenient: true}) // as for all third-party clients
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, simulated.Close()) })
	all := httptest.NewServer(simulated)
	t.Cleanup(all.Close)
	root := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = "/bluesky" + r.URL.Path
		simulated.ServeHTTP(w, r)
	}))
	t.Cleanup(root.Close)
	s := &server{URL: root.URL}
	for i, handle := range handles {
		did := "did:plc:" + strings.Repeat(string(rune('a'+i)), 24)
		made, err := sandboxtest.Client{URL: all.URL}.Account(t.Context(), "bluesky", did, map[string]any{"username": handle})
		must.Succeed(t, err)
		s.Accounts = append(s.Accounts, account{DID: did, Handle: handle, AppPassword: strings.TrimPrefix(made.AccessToken, handle+":")})
	}
	return s
}

// TestClient publishes with Bluesky's client, which must work with both servers, and checks that Herald finds the
// posts.
func TestClient(t *testing.T) {
	for name, begin := range servers {
		t.Run(name, func(t *testing.T) {
			program := node(t)
			s := begin(t, "bakery.test", "zoe.test")
			acme, zoe := &s.Accounts[0], &s.Accounts[1]
			picture := filepath.Join(envtest.Root(), "internal", "media", "probe", "testdata", "picture.jpg")
			command := exec.CommandContext(t.Context(), program, "write.mjs", s.URL, acme.Handle, acme.AppPassword, picture)
			var problems bytes.Buffer
			command.Stderr = &problems
			output, err := command.Output()
			if err != nil {
				t.Fatalf("%v: %s", err, problems.String())
			}
			type result struct {
				DID     string `json:"did"`
				Handle  string `json:"handle"`
				Text    string `json:"text"`
				Reply   string `json:"reply"`
				Refused string `json:"refused"`
				Missing string `json:"missing"`
				Taken   string `json:"taken"`
				Renewed bool   `json:"renewed"`
			}
			var got result
			must.Succeed(t, json.Unmarshal(output, &got))
			posts := s.read(t, acme)
			if len(posts) != 2 {
				t.Fatalf("there are %d posts: %+v", len(posts), posts)
			}
			want := result{
				DID: acme.DID, Handle: acme.Handle, Text: posts[0].URI, Reply: posts[1].URI, Refused: "AuthenticationRequired",
				Missing: "RecordNotFound", Taken: "InvalidSwap", Renewed: true,
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the client's calls (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]segment{
				{Text: "@zoe.test", Mention: zoe.DID}, {Text: "https://example.com/a", Link: "https://example.com/a"}, {Text: "#launch", Tag: "launch"},
			}, posts[0].Facets); diff != "" {
				t.Errorf("the links (-want +got):\n%s", diff)
			}
			if images := posts[1].Images; len(images) != 1 || images[0].Alt != "a cat" || images[0].Downloaded != images[0].Size || posts[1].Parent == nil || posts[1].Parent.URI != posts[0].URI {
				t.Errorf("the reply is %+v", posts[1])
			}
			found, err := newAt(t, s.URL).RecentPosts(t.Context(), platforms.Account{ID: acme.DID, Username: acme.Handle, Token: platforms.Token{Access: acme.token()}}, platforms.Recent{Since: time.Now().Add(-time.Hour), Limit: 9})
			if err != nil || len(found) != 1 || !strings.HasSuffix(posts[0].URI, found[0].ID) {
				t.Errorf("Herald lists %+v, %v", found, err)
			}
			job := acme.job(1, platforms.Content{Category: v1alpha1.CategoryText, Text: "from Herald"})
			key := publish(t, newAt(t, s.URL), job)
			if posts = s.read(t, acme); len(posts) != 3 || !strings.HasSuffix(posts[2].URI, "/"+key) {
				t.Errorf("the client does not read %s in %+v", key, posts)
			}
		})
	}
}
