// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"encoding/json"
	"net/http"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
)

const (
	authorizationCode = "authorization_code"
	refreshToken      = "refresh_token"
	responseCode      = "code"
	methodNone        = "none"
	challengeS256     = "S256"
)

// scopesOffered are all scopes, lowest first. Each includes those before it.
var scopesOffered = bridge.Scopes

// serverMetadata is the authorization server metadata of RFC 8414.
type serverMetadata struct {
	Issuer                 string         `json:"issuer"`
	AuthorizationEndpoint  string         `json:"authorization_endpoint"`
	TokenEndpoint          string         `json:"token_endpoint"`
	RegistrationEndpoint   string         `json:"registration_endpoint"`
	RevocationEndpoint     string         `json:"revocation_endpoint"`
	Scopes                 []bridge.Scope `json:"scopes_supported"`
	ResponseTypes          []string       `json:"response_types_supported"`
	ResponseModes          []string       `json:"response_modes_supported"`
	GrantTypes             []string       `json:"grant_types_supported"`
	TokenMethods           []string       `json:"token_endpoint_auth_methods_supported"`
	RevocationMethods      []string       `json:"revocation_endpoint_auth_methods_supported"`
	Challenges             []string       `json:"code_challenge_methods_supported"`
	IssuerInAnswer         bool           `json:"authorization_response_iss_parameter_supported"`
	ClientMetadataDocument bool           `json:"client_id_metadata_document_supported"`
	Documentation          string         `json:"service_documentation"`
	ProtectedResources     []string       `json:"protected_resources"`
}

// resourceMetadata is the protected resource metadata of RFC 9728.
type resourceMetadata struct {
	Resource      string         `json:"resource"`
	Servers       []string       `json:"authorization_servers"`
	Scopes        []bridge.Scope `json:"scopes_supported"`
	Methods       []string       `json:"bearer_methods_supported"`
	Name          string         `json:"resource_name"`
	Documentation string         `json:"resource_documentation"`
}

func (s *Server) serverMetadata() serverMetadata {
	return serverMetadata{
		Issuer:                s.SiteURL,
		AuthorizationEndpoint: s.SiteURL + AuthorizePath, TokenEndpoint: s.SiteURL + TokenPath,
		RegistrationEndpoint: s.SiteURL + RegisterPath, RevocationEndpoint: s.SiteURL + RevokePath,
		Scopes: scopesOffered, ResponseTypes: []string{responseCode}, ResponseModes: []string{"query"},
		GrantTypes:   []string{authorizationCode, refreshToken},
		TokenMethods: []string{methodNone}, RevocationMethods: []string{methodNone}, Challenges: []string{challengeS256},
		IssuerInAnswer: true, ClientMetadataDocument: !s.Proxied,
		Documentation: s.SiteURL + "/docs", ProtectedResources: []string{s.Resource(), s.SiteURL + MCPPathV2},
	}
}

func (s *Server) resourceMetadata(path string) resourceMetadata {
	return resourceMetadata{
		Resource: s.SiteURL + path, Servers: []string{s.SiteURL}, Scopes: scopesOffered, Methods: []string{"header"},
		Name: "Herald", Documentation: s.SiteURL + "/docs",
	}
}

// routes returns the handlers for the paths that do not need a session. Clients of older MCP revisions also look for
// the authorization server's metadata below the MCP server's path.
func (s *Server) routes() map[string]http.Handler {
	server, resource := s.fixed("oauthServerMetadata", s.serverMetadata()), s.fixed("oauthResourceMetadata", s.resourceMetadata(MCPPath))
	return map[string]http.Handler{
		ServerMetadataPath: server, ServerMetadataPath + MCPPath: server, ServerMetadataPath + MCPPathV2: server,
		ResourceMetadataPath: resource, ResourceMetadataPath + MCPPath: resource,
		ResourceMetadataPath + MCPPathV2: s.fixed("oauthResourceMetadata", s.resourceMetadata(MCPPathV2)),
		TokenPath:                        s.open("oauthToken", http.MethodPost, s.token),
		RevokePath:                       s.open("oauthRevoke", http.MethodPost, s.revoke),
		RegisterPath:                     s.open("oauthRegister", http.MethodPost, s.register),
	}
}

func (s *Server) fixed(operation string, document any) http.Handler {
	body, _ := json.Marshal(document) // strings and booleans always marshal
	return s.open(operation, http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
		if wrong := s.stranger(r, limits.SurfaceOAuth); wrong != nil {
			wrong.write(w)
			return
		}
		w.Header().Set("Content-Type", jsonType)
		w.Header().Set("Cache-Control", "public, max-age=300")
		if r.Method == http.MethodHead {
			return
		}
		_, _ = w.Write(body) // the client may have disconnected
	})
}

const jsonType = "application/json"

// open serves clients from every origin. It does not read cookies, so web pages have no more permissions than programs.
func (s *Server) open(operation, method string, serve http.HandlerFunc) http.Handler {
	allowed := method
	if method == http.MethodGet {
		allowed += ", " + http.MethodHead
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request.From(r.Context()).Operation = operation
		head := w.Header()
		head.Set("Cache-Control", "no-store")
		head.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
		head.Set("Referrer-Policy", "no-referrer")
		head.Set("Access-Control-Allow-Origin", "*")
		switch {
		case r.Method == method, method == http.MethodGet && r.Method == http.MethodHead:
			serve(w, r)
		case r.Method == http.MethodOptions:
			if wrong := s.stranger(r, limits.SurfacePreflights); wrong != nil {
				wrong.write(w)
				return
			}
			head.Set("Access-Control-Allow-Methods", allowed)
			head.Set("Access-Control-Allow-Headers", "Content-Type, Authorization, MCP-Protocol-Version")
			head.Set("Access-Control-Max-Age", "86400")
			w.WriteHeader(http.StatusNoContent)
		default:
			head.Set("Allow", allowed+", "+http.MethodOptions)
			s.fail(w, r, refusef(http.StatusMethodNotAllowed, invalidRequest, "this address supports only %s", allowed))
		}
	})
}
