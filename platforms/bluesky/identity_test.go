// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/platformtest/recorder"
)

const (
	accountDID  = "did:plc:z72i7hdynmk6r22z27h6tvur"
	resolvePath = "/xrpc/com.atproto.identity.resolveHandle"
	resource    = "/.well-known/oauth-protected-resource"
	issuerPath  = "/.well-known/oauth-authorization-server"
)

// documents returns the documents of one server that is the account's server, the directory and the authorization
// server at once, by path. HERE stands for its address.
func documents() map[string]string {
	return map[string]string{
		resolvePath: `{"did":"` + accountDID + `"}`,
		"/" + accountDID: `{"id":"` + accountDID + `","alsoKnownAs":["at://acme.example"],
			"service":[{"id":"#atproto_pds","type":"AtprotoPersonalDataServer","serviceEndpoint":"HERE"}]}`,
		resource: `{"resource":"HERE","authorization_servers":["HERE"]}`,
		issuerPath: `{"issuer":"HERE","pushed_authorization_request_endpoint":"HERE/oauth/par","authorization_endpoint":"HERE/oauth/authorize",
			"token_endpoint":"HERE/oauth/token","revocation_endpoint":"HERE/oauth/revoke","scopes_supported":["atproto"],
			"code_challenge_methods_supported":["S256"],"dpop_signing_alg_values_supported":["ES256"],
			"token_endpoint_auth_methods_supported":["none","private_key_jwt"],"client_id_metadata_document_supported":true,
			"authorization_response_iss_parameter_supported":true}`,
	}
}

// serveDocuments serves these documents, and returns a Platform that calls the server, and the server's address.
func serveDocuments(t *testing.T, served map[string]string) (*Platform, string) {
	t.Helper()
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, ok := served[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(text, "HERE", server.URL)))
	}))
	t.Cleanup(server.Close)
	return New(Config{Config: platforms.Config{APIURL: server.URL}, DirectoryURL: server.URL}, transport.New(transport.Options{})), server.URL
}

func TestResolve(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, typed string
		path, old, to string
		class         platforms.Class
	}{
		"handle":           {"users know their handle", "@Acme.example ", "", "", "", ""},
		"DID":              {"a renewal starts from the account's id", accountDID, "", "", "", ""},
		"foreign handle":   {"anyone can point a handle at any account", "acme.example", "/" + accountDID, "at://acme.example", "at://other.example", platforms.ClassPermanent},
		"other document":   {"a directory answers for the account that was requested", "acme.example", "/" + accountDID, `"id":"did`, `"id":"x:did`, platforms.ClassPermanent},
		"server inside":    {"an account's owner must not make Herald call the cluster's network", "acme.example", "/" + accountDID, "HERE", "http://10.0.0.1", platforms.ClassPermanent},
		"server and path":  {"a server is an origin", "acme.example", "/" + accountDID, "HERE", "https://pds.example/path", platforms.ClassPermanent},
		"no server":        {"there is nothing to call", "acme.example", "/" + accountDID, "#atproto_pds", "#other", platforms.ClassPermanent},
		"unknown handle":   {"the server does not find it", "acme.example", resolvePath, accountDID, "", platforms.ClassPermanent},
		"no account":       {"the directory does not know the id", "did:plc:aaaaaaaaaaaaaaaaaaaaaaaa", "", "", "", platforms.ClassPermanent},
		"page":             {"a proxy in front of the directory responds, which proves nothing", "acme.example", "/" + accountDID, "{", "<html>{", platforms.ClassUnknown},
		"path in the DID":  {"the DID becomes a part of an address", "acme.example", resolvePath, accountDID, "did:plc:../../etc/passwd", platforms.ClassPermanent},
		"single label":     {"a handle is a domain name", "acme", "", "", "", platforms.ClassPermanent},
		"control in it":    {"it becomes a part of an address", "acme.example\n", "", "", "", ""},
		"space in between": {"the same", "acme. example", "", "", "", platforms.ClassPermanent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := documents()
			if tc.path != "" {
				served[tc.path] = strings.Replace(served[tc.path], tc.old, tc.to, 1)
			}
			p, at := serveDocuments(t, served)
			got, failure := p.resolve(t.Context(), tc.typed)
			want := identity{}
			if tc.class == "" {
				want = identity{DID: accountDID, Handle: "acme.example", PDS: at}
			}
			if diff := cmp.Diff(want, got); diff != "" || recorder.ClassOf(asError(failure)) != tc.class {
				t.Errorf("%s: %v %s", tc.reason, failure, diff)
			}
		})
	}
}

func TestAuthServer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ reason, path, old, to string }{
		"as documented":     {"the documents are about themselves", "", "", ""},
		"another resource":  {"a server must not speak for another one", resource, `"resource":"HERE"`, `"resource":"https://pds.example"`},
		"two servers":       {"it would be open which one counts", resource, `["HERE"]`, `["HERE","https://as.example"]`},
		"server inside":     {"an account's owner must not make Herald call the cluster's network", resource, `["HERE"]`, `["http://10.0.0.1"]`},
		"another issuer":    {"a server must not issue tokens in the name of another one", issuerPath, `"issuer":"HERE"`, `"issuer":"https://as.example"`},
		"endpoint outside":  {"its address would not be checked", issuerPath, "HERE/oauth/token", "http://10.0.0.1/oauth/token"},
		"no PAR":            {"AT Protocol demands it", issuerPath, "HERE/oauth/par", ""},
		"no ES256":          {"Herald's keys are of this kind", issuerPath, "ES256", "RS256"},
		"no client secrets": {"Herald identifies itself by its key", issuerPath, "private_key_jwt", "client_secret_basic"},
		"no iss":            {"a response could come from another server", issuerPath, `iss_parameter_supported":true`, `iss_parameter_supported":false`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			served := documents()
			if tc.path != "" {
				served[tc.path] = strings.Replace(served[tc.path], tc.old, tc.to, 1)
			}
			p, at := serveDocuments(t, served)
			got, failure := p.authServerOf(t.Context(), at)
			want := authServer{}
			if tc.path == "" {
				want = authServer{Issuer: at, PAR: at + "/oauth/par", Authorize: at + "/oauth/authorize", Token: at + "/oauth/token", Revoke: at + "/oauth/revoke"}
			}
			if diff := cmp.Diff(want, got); diff != "" || (failure == nil) != (tc.path == "") {
				t.Errorf("%s: %v %s", tc.reason, failure, diff)
			}
		})
	}
}
