// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"github.com/herald-social/herald/apiserver/access"
)

const (
	// registeredPrefix is the prefix of the client_id of a client that registered itself.
	registeredPrefix = "dcr_"
	// purposeClient is the signing purpose of client ids.
	purposeClient = "oauth-client"
	// maxClientID limits the length of a client_id, in bytes: it is part of the consent page's address, which is stored
	// in a cookie if the user has to sign in first.
	maxClientID = 1500
	// maxURI and maxRedirects limit a client's metadata: the length of its home page's URI, in bytes, and the number of
	// redirect URIs.
	maxURI, maxRedirects = 256, 10
	// signatureBytes is the length of a truncated HMAC: 128 bits.
	signatureBytes = 16
	// keyPrefix is the prefix of the hash that keyOfClient returns. No valid client_id has it.
	keyPrefix = "dcr:"
	// keyHex is the number of hex digits in that hash.
	keyHex = 32
)

// Client is an OAuth client.
type Client struct {
	// ID is the client_id.
	ID string `json:"i"`
	// Name and URI are the client's self-reported name and home page; both may be empty.
	Name string `json:"n,omitempty"`
	URI  string `json:"u,omitempty"`
	// Redirects are the registered redirect URIs.
	Redirects []string `json:"r"`
	// Verified reports that the id is the address of a metadata document on the client's own site.
	Verified bool `json:"v,omitempty"`
}

// Shown returns the client's display name: its name or, if it has none, its host.
func (c *Client) Shown() string {
	switch {
	case c.Name != "":
		return c.Name
	case c.Verified:
		return c.Host()
	default:
		return "An agent without a name"
	}
}

// Host returns a verified client's host, or "" for other clients.
func (c *Client) Host() string {
	if !c.Verified {
		return ""
	}
	return hostOf(c.ID)
}

// key returns the client's identifier in grants.
func (c *Client) key() string { return keyOfClient(c.ID) }

// keyOfClient returns the client_id, or its hash if the id contains a registration. It returns "" for an id that is
// itself such a hash: users who may read grants can see it there, and it must not identify them as the client.
func keyOfClient(id string) string {
	switch {
	case strings.HasPrefix(id, keyPrefix):
		return ""
	case !strings.HasPrefix(id, registeredPrefix):
		return id
	}
	sum := sha256.Sum256([]byte(id))
	return keyPrefix + hex.EncodeToString(sum[:])[:keyHex]
}

// client resolves a client_id. It fetches a metadata document only for a signed-in user.
func (s *Server) client(ctx context.Context, id string, who access.Person) (*Client, *PageError) {
	const title = "Unknown agent"
	switch {
	case id == "":
		return nil, pageErrorf(title, "The address that brought you here has no client_id.")
	case len(id) > maxClientID:
		return nil, pageErrorf(title, "Its client_id is too long.")
	case strings.HasPrefix(id, registeredPrefix):
		if c := s.registered(id); c != nil {
			return c, nil
		}
		return nil, pageErrorf(title, "It is not registered with this installation. Let it register again: remove Herald from its servers, then add it again.")
	case s.Proxied:
		return nil, pageErrorf(title, "Its client_id is the address of a metadata document, which this installation cannot fetch because it is behind a proxy. Let it register instead.")
	default:
		return s.documents.client(ctx, id, func() bool { allowed, _ := s.fetches.Allow(who.Name, http.Header{}); return allowed })
	}
}

// registration is the content of a self-registered client's client_id. The server therefore does not need to store it.
type registration struct {
	Name      string   `json:"n,omitempty"`
	URI       string   `json:"u,omitempty"`
	Redirects []string `json:"r"`
	// At is the time in seconds since 1970. Nonce makes each id unique.
	At    int64  `json:"t"`
	Nonce string `json:"x"`
}

// clientID returns a registration's id, or "" if there is no key.
func (s *Server) clientID(r registration) string {
	text, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	body := base64.RawURLEncoding.EncodeToString(text)
	code := s.Keys.Sign(purposeClient, body)
	if code == nil {
		return ""
	}
	return registeredPrefix + body + "." + base64.RawURLEncoding.EncodeToString(code[:signatureBytes])
}

// registered decodes a registered client's id, or returns nil if this installation did not sign it.
func (s *Server) registered(id string) *Client {
	body, code, ok := strings.Cut(strings.TrimPrefix(id, registeredPrefix), ".")
	if !ok || !s.signed(purposeClient, body, code) {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil
	}
	var r registration
	if json.Unmarshal(text, &r) != nil {
		return nil
	}
	return &Client{ID: id, Name: r.Name, URI: r.URI, Redirects: r.Redirects}
}

func (s *Server) signed(purpose, text, code string) bool {
	wanted := s.Keys.Sign(purpose, text)
	if wanted == nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(wanted[:signatureBytes])), []byte(code)) == 1
}

// uriOf returns a client's home page, or "" if it is not a valid link.
func uriOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != secure || u.Hostname() == "" || u.User != nil || len(u.String()) > maxURI {
		return ""
	}
	return u.String()
}
