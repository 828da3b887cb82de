// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package dpop creates proofs that a caller has the key that its tokens are bound to (RFC 9449).
package dpop

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"k8s.io/utils/lru"
)

// ProofKey is the private key that signs the proofs of a session. Its text is a secret.
type ProofKey struct{ private *ecdsa.PrivateKey }

// NewProofKey returns a new key.
func NewProofKey() (ProofKey, error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	return ProofKey{private}, err
}

// errKey does not contain the text, because it may be part of a key.
var errKey = errors.New("the text is not a key")

// ParseProofKey is the inverse of Text.
func ParseProofKey(text string) (ProofKey, error) {
	scalar, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return ProofKey{}, errKey
	}
	private, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar)
	if err != nil {
		return ProofKey{}, errKey
	}
	return ProofKey{private}, nil
}

// Text returns the key as 43 letters, digits, - and _.
func (k ProofKey) Text() (string, error) {
	scalar, err := k.private.Bytes()
	return base64.RawURLEncoding.EncodeToString(scalar), err
}

// Request describes the request that a proof is for.
type Request struct {
	Method, Address string
	// Token is the access token that the request sends; empty if it sends none.
	Token string
	// Nonce is the server's last nonce; empty at first.
	Nonce string
	At    time.Time
}

// Proof returns the value of the DPoP header for a request (RFC 9449, section 4.2).
func (k ProofKey) Proof(r *Request) (string, error) {
	address, err := url.Parse(r.Address)
	if err != nil {
		return "", errors.New("the request has no address")
	}
	address.RawQuery, address.Fragment = "", ""
	options := (&jose.SignerOptions{EmbedJWK: true}).WithType("dpop+jwt")
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: k.private}, options)
	if err != nil {
		return "", err
	}
	claims := map[string]any{"jti": rand.Text(), "htm": r.Method, "htu": address.String(), "iat": r.At.Unix()}
	if r.Nonce != "" {
		claims["nonce"] = r.Nonce
	}
	if r.Token != "" {
		hash := sha256.Sum256([]byte(r.Token))
		claims["ath"] = base64.RawURLEncoding.EncodeToString(hash[:])
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}

// Nonces holds the last nonce of each recently called server. Users choose the servers, so the number and the length of
// nonces are bounded.
type Nonces struct{ byOrigin *lru.Cache }

const (
	maxNonces    = 4096
	longestNonce = 256
)

// NewNonces returns Nonces without any.
func NewNonces() *Nonces { return &Nonces{byOrigin: lru.New(maxNonces)} }

// Of returns the nonce for an address, or "".
func (n *Nonces) Of(address *url.URL) string {
	found, _ := n.byOrigin.Get(origin(address))
	nonce, _ := found.(string)
	return nonce
}

// Update stores the nonce from a response, if there is one (RFC 9449, section 8.2).
func (n *Nonces) Update(address *url.URL, answer http.Header) {
	if nonce := answer.Get("DPoP-Nonce"); nonce != "" && len(nonce) <= longestNonce {
		n.byOrigin.Add(origin(address), nonce)
	}
}

func origin(address *url.URL) string { return address.Scheme + "://" + address.Host }
