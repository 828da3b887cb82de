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

	"github.com/herald-social/herald/apiserver/person"
)

const (
	// registeredPrefix begins the client_id of a client that registered itself.
	registeredPrefix = "dcr_"
	// purposeClient is what the ids of clients are signed for.
	purposeClient = "oauth-client"
	// maxClientID bounds a client_id: it stands in the address of the consent page, and that in the cookie of a sign-in on the way.
	maxClientID = 1500
	// maxURI and maxRedirects bound what a client says of itself.
	maxURI, maxRedirects = 256, 10
	// signatureBytes are kept of an HMAC: 128 bits.
	signatureBytes = 16
	// keyPrefix begins that hash. No client has an id that begins so.
	keyPrefix = "dcr:"
	// keyHex are the hex digits of a hash by which grants know a client that registered itself.
	keyHex = 32
)

// Client is who asks.
type Client struct {
	// ID is the client_id.
	ID string `json:"i"`
	// Name and URI are what the client says of itself; both may be empty.
	Name string `json:"n,omitempty"`
	URI  string `json:"u,omitempty"`
	// Redirects are where answers may be sent.
	Redirects []string `json:"r"`
	// Verified says that the id is the address of a document that the client's own site serves.
	Verified bool `json:"v,omitempty"`
}

// Shown is what people read: the name, or where it comes from.
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

// Host is that of a verified client; empty for others.
func (c *Client) Host() string {
	if !c.Verified {
		return ""
	}
	return hostOf(c.ID)
}

// key is by what a grant knows the client.
func (c *Client) key() string { return keyOfClient(c.ID) }

// keyOfClient is a client_id, or a hash of one that carries a registration. It is empty for such a hash: people who may look at
// grants read it there, and it makes nobody the client.
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

// client finds out who a client_id is. A metadata document is fetched for a person who is signed in, and for nobody else.
func (s *Server) client(ctx context.Context, id string, who person.Person) (*Client, *PageError) {
	const title = "The agent is not known"
	switch {
	case id == "":
		return nil, pageErrorf(title, "The address that brought you here has no client_id.")
	case len(id) > maxClientID:
		return nil, pageErrorf(title, "Its client_id is too long.")
	case strings.HasPrefix(id, registeredPrefix):
		if c := s.registered(id); c != nil {
			return c, nil
		}
		return nil, pageErrorf(title, "It has no registration here, or that of another installation. Have it register again: remove Herald from its servers, and add it anew.")
	case s.Proxied:
		return nil, pageErrorf(title, "It is known by a document at its client_id, and this installation, which is behind a proxy, fetches none. Have it register instead.")
	default:
		return s.documents.client(ctx, id, func() bool { allowed, _ := s.fetches.Allow(who.Name, http.Header{}); return allowed })
	}
}

// registration is what the client_id of a client that registered itself carries, so that nothing of it is stored.
type registration struct {
	Name      string   `json:"n,omitempty"`
	URI       string   `json:"u,omitempty"`
	Redirects []string `json:"r"`
	// At is when, in seconds since 1970, and Nonce makes each id another.
	At    int64  `json:"t"`
	Nonce string `json:"x"`
}

// clientID is the id of a registration; empty without a key.
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

// registered reads the id of a client that registered itself; nil if it is none of ours.
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

// signed reports whether a code proves that this installation knew a text.
func (s *Server) signed(purpose, text, code string) bool {
	wanted := s.Keys.Sign(purpose, text)
	if wanted == nil {
		return false
	}
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(wanted[:signatureBytes])), []byte(code)) == 1
}

// uriOf is a home page that a client gave itself, if it can be linked.
func uriOf(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != secure || u.Hostname() == "" || u.User != nil || len(u.String()) > maxURI {
		return ""
	}
	return u.String()
}
