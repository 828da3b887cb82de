// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"crypto/rand"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"slices"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/request"
)

const (
	// maxRegistration is the maximum size of a registration, in bytes.
	maxRegistration = 16 << 10
	// nonceLength is the number of random characters, 5 bits each, that make a registration unique.
	nonceLength = 8
)

// clientMetadata is a client's metadata, from a registration or a document (RFC 7591, section 2). Other fields are
// ignored.
type clientMetadata struct {
	ClientID      string   `json:"client_id,omitempty"`
	Redirects     []string `json:"redirect_uris"`
	Name          string   `json:"client_name,omitempty"`
	URI           string   `json:"client_uri,omitempty"`
	Method        string   `json:"token_endpoint_auth_method,omitempty"`
	GrantTypes    []string `json:"grant_types,omitempty"`
	ResponseTypes []string `json:"response_types,omitempty"`
	Scope         string   `json:"scope,omitempty"`
	// IssuedAt is in seconds since 1970.
	IssuedAt int64 `json:"client_id_issued_at,omitempty"`
}

func (m *clientMetadata) check() *problem {
	switch {
	case len(m.Redirects) == 0:
		return refusef(http.StatusBadRequest, invalidRedirect, "redirect_uris is empty; add at least one redirect URI")
	case len(m.Redirects) > maxRedirects:
		return refusef(http.StatusBadRequest, invalidRedirect, "redirect_uris has %d addresses, more than %d", len(m.Redirects), maxRedirects)
	case len(m.GrantTypes) > 0 && !slices.Contains(m.GrantTypes, authorizationCode):
		return refusef(http.StatusBadRequest, invalidMetadata, "grant_types must contain %s", authorizationCode)
	case len(m.ResponseTypes) > 0 && !slices.Contains(m.ResponseTypes, responseCode):
		return refusef(http.StatusBadRequest, invalidMetadata, "response_types must contain %s", responseCode)
	}
	for i, address := range m.Redirects {
		if err := checkRedirect(address); err != nil {
			return refusef(http.StatusBadRequest, invalidRedirect, "redirect_uris[%d]: %v", i, err)
		}
	}
	return nil
}

// register serves client registration (RFC 7591). The client_id contains the whole registration. The server does not
// store registrations, so anonymous requests cannot fill its storage.
func (s *Server) register(w http.ResponseWriter, r *http.Request) {
	if allowed, _ := s.registrations.Allow(request.Address(r), w.Header()); !allowed {
		w.Header().Set("Connection", "close")
		refusef(http.StatusTooManyRequests, temporarily, "too many registrations from this address; wait a minute").write(w)
		return
	}
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != jsonType {
		refusef(http.StatusBadRequest, invalidMetadata, "send the metadata as %s", jsonType).write(w)
		return
	}
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRegistration))
	if err != nil {
		refusef(http.StatusBadRequest, invalidMetadata, "the body could not be read, or is longer than %d bytes", maxRegistration).write(w)
		return
	}
	var asked clientMetadata
	if err := json.Unmarshal(text, &asked); err != nil {
		refusef(http.StatusBadRequest, invalidMetadata, "the body is not a JSON object with the fields of RFC 7591").write(w)
		return
	}
	if wrong := asked.check(); wrong != nil {
		wrong.write(w)
		return
	}
	made := registration{
		Name: bridge.AgentName(asked.Name), URI: uriOf(asked.URI), Redirects: asked.Redirects, At: s.Clock.Now().Unix(), Nonce: rand.Text()[:nonceLength],
	}
	id := s.clientID(made)
	switch {
	case id == "":
		refusef(http.StatusServiceUnavailable, temporarily, "there are no keys yet; try again in a minute").write(w)
		return
	case len(id) > maxClientID:
		refusef(http.StatusBadRequest, invalidMetadata, "name, home page and addresses are too long together; shorten them").write(w)
		return
	}
	// The response replaces any requested authentication method with none (RFC 7591, section 3.2.1), because clients
	// use PKCE instead of a secret.
	writeJSON(w, http.StatusCreated, clientMetadata{
		ClientID: id, IssuedAt: made.At, Redirects: made.Redirects, Name: made.Name, URI: made.URI, Method: methodNone,
		GrantTypes: []string{authorizationCode, refreshToken}, ResponseTypes: []string{responseCode}, Scope: scopeText(scopesOffered),
	})
}
