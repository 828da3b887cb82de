// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"errors"
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMetadata(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	scopes := []any{"read", "draft", "publish"}
	server := map[string]any{
		"issuer": site, "authorization_endpoint": site + "/oauth/authorize", "token_endpoint": site + "/oauth/token",
		"registration_endpoint": site + "/oauth/register", "revocation_endpoint": site + "/oauth/revoke", "scopes_supported": scopes,
		"response_types_supported": []any{"code"}, "response_modes_supported": []any{"query"}, "grant_types_supported": []any{"authorization_code", "refresh_token"},
		"token_endpoint_auth_methods_supported": []any{"none"}, "revocation_endpoint_auth_methods_supported": []any{"none"},
		"code_challenge_methods_supported": []any{"S256"}, "authorization_response_iss_parameter_supported": true, "client_id_metadata_document_supported": true,
		"service_documentation": site + "/docs", "protected_resources": []any{site + "/mcp", site + "/mcp/v2"},
	}
	resource := map[string]any{
		"resource": site + "/mcp", "authorization_servers": []any{site}, "scopes_supported": scopes, "bearer_methods_supported": []any{"header"},
		"resource_name": "Herald", "resource_documentation": site + "/docs",
	}
	resourceV2 := maps.Clone(resource)
	resourceV2["resource"] = site + "/mcp/v2"
	for path, want := range map[string]map[string]any{
		"/.well-known/oauth-authorization-server": server, "/.well-known/oauth-authorization-server/mcp": server,
		"/.well-known/oauth-protected-resource": resource, "/.well-known/oauth-protected-resource/mcp": resource,
		"/.well-known/oauth-authorization-server/mcp/v2": server, "/.well-known/oauth-protected-resource/mcp/v2": resourceV2,
	} {
		got := w.send(http.MethodGet, path, "", "")
		if diff := cmp.Diff(want, got.values); diff != "" || got.header.Get("Access-Control-Allow-Origin") != "*" || got.header.Get("Content-Type") != jsonType {
			t.Errorf("%s: %v\n%s", path, got.header, diff)
		}
	}
	if named := w.ResourceMetadataURL(MCPPathV2); named != site+"/.well-known/oauth-protected-resource/mcp/v2" {
		t.Errorf("a 401 names %s", named)
	}
	if w.Handler("/.well-known/openid-configuration") != nil || w.Handler("/oauth/authorize") != nil || (*Server)(nil).Handler(TokenPath) != nil {
		t.Error("a path is served that is not of this server")
	}
}

// TestProxied verifies that the metadata announces that documents are not fetched, so clients register themselves
// instead.
func TestProxied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *Config) { c.Proxied = true })
	got := w.send(http.MethodGet, ServerMetadataPath, "", "")
	if got.values["client_id_metadata_document_supported"] != false || got.values["registration_endpoint"] == nil {
		t.Errorf("clients get %s", got.body)
	}
	_, err := w.Read(t.Context(), question("https://agent.example/client.json"), ada.Person)
	if page, ok := errors.AsType[*PageError](err); !ok || !strings.Contains(page.Message, "proxy") {
		t.Errorf("a client that uses one anyway: %v", err)
	}
}

func TestRegister(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, tc := range map[string]struct {
		body, kind, want string
	}{
		"least":                   {`{"redirect_uris":["` + loopURI + `"]}`, jsonType, ""},
		"unknown fields":          {`{"redirect_uris":["` + loopURI + `"],"jwks_uri":"https://a.example","software_id":"x","application_type":"native","contacts":[]}`, "application/json; charset=utf-8", ""},
		"a secret":                {`{"redirect_uris":["` + loopURI + `"],"token_endpoint_auth_method":"client_secret_basic"}`, jsonType, ""},
		"unsupported grant types": {`{"redirect_uris":["` + loopURI + `"],"grant_types":["authorization_code","password"],"response_types":["code","token"]}`, jsonType, ""},
		"no address":              {`{}`, jsonType, invalidRedirect},
		"a script":                {`{"redirect_uris":["https://a.example/cb","javascript:alert(1)"]}`, jsonType, invalidRedirect},
		"an unencrypted URL":      {`{"redirect_uris":["http://a.example/cb"]}`, jsonType, invalidRedirect},
		"many":                    {`{"redirect_uris":["a:1","a:2","a:3","a:4","a:5","a:6","a:7","a:8","a:9","a:10","a:11"]}`, jsonType, invalidRedirect},
		"other grants":            {`{"redirect_uris":["` + loopURI + `"],"grant_types":["client_credentials"]}`, jsonType, invalidMetadata},
		"other responses":         {`{"redirect_uris":["` + loopURI + `"],"response_types":["token"]}`, jsonType, invalidMetadata},
		"no JSON":                 {`redirect_uris=a`, jsonType, invalidMetadata},
		"wrong types":             {`{"redirect_uris":"` + loopURI + `"}`, jsonType, invalidMetadata},
		"a form":                  {`{"redirect_uris":["` + loopURI + `"]}`, "application/x-www-form-urlencoded", invalidMetadata},
		"long":                    {`{"redirect_uris":["` + loopURI + `"],"x":"` + string(make([]byte, maxRegistration)) + `"}`, jsonType, invalidMetadata},
	} {
		got := w.send(http.MethodPost, RegisterPath, tc.kind, tc.body)
		if got.text("error") != tc.want || (got.status == http.StatusCreated) != (tc.want == "") {
			t.Errorf("%s: %d %s, want %q", name, got.status, got.body, tc.want)
		}
		if tc.want == "" && (got.text("token_endpoint_auth_method") != "none" || got.text("client_id") == "" || got.values["client_secret"] != nil) {
			t.Errorf("%s: %s", name, got.body)
		}
	}
}

// TestThreatNames verifies that a client's name is shown as plain text on one line.
func TestThreatNames(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.send(http.MethodPost, RegisterPath, jsonType, `{"redirect_uris":["`+loopURI+`"],"client_name":" Cl\u202eaude\n\n(verified)\u0000\u200b ","client_uri":"javascript:alert(1)"}`)
	if got.text("client_name") != "Claude (verified)" || got.text("client_uri") != "" {
		t.Errorf("%s", got.body)
	}
}
