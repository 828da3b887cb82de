// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
)

// Scopes are the permissions to create and change posts, and to upload files (AT Protocol, "Permissions"). putRecord needs
// both actions.
const Scopes = "atproto repo:app.bsky.feed.post?action=create&action=update blob:*/*"

// ClientDocumentPath is the path of Herald's client metadata document on the site. The document's address is the client
// id.
const ClientDocumentPath = "/oauth/bluesky/client-metadata.json"

// assertionLife is how long a client assertion is valid. Each one is used immediately.
const assertionLife = time.Minute

// clientKey identifies Herald to authorization servers (RFC 7523, private_key_jwt).
type clientKey struct {
	private *ecdsa.PrivateKey
	id      string
}

var errClientKey = errors.New("it is not a private key of the curve P-256 in PEM (PKCS #8): " +
	"create one with openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256")

// CheckClientKey returns an error if a string is not a key for Config.ClientSecret. The error does not contain the
// string.
func CheckClientKey(text string) error {
	_, err := parseClientKey(text)
	return err
}

// parseClientKey parses a key in the format of `openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256`.
func parseClientKey(text string) (*clientKey, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, errClientKey
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	private, ok := parsed.(*ecdsa.PrivateKey)
	if err != nil || !ok || private.Curve != elliptic.P256() {
		return nil, errClientKey
	}
	public := jose.JSONWebKey{Key: &private.PublicKey}
	sum, err := public.Thumbprint(crypto.SHA256)
	if err != nil {
		return nil, errClientKey
	}
	return &clientKey{private, base64.RawURLEncoding.EncodeToString(sum)}, nil
}

// assertion returns a proof of Herald's identity for one request to an issuer.
func (k *clientKey) assertion(clientID, issuer string, now time.Time) (string, error) {
	signing := jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: k.private, KeyID: k.id}}
	signer, err := jose.NewSigner(signing, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	return jwt.Signed(signer).Claims(map[string]any{
		"iss": clientID, "sub": clientID, "aud": issuer, "jti": rand.Text(), "iat": now.Unix(), "exp": now.Add(assertionLife).Unix(),
	}).Serialize()
}

// clientMetadata returns the document that identifies Herald (AT Protocol, "Client ID Metadata Document"). clientID is its
// address.
func (k *clientKey) clientMetadata(clientID, site string, redirectURIs []string) ([]byte, error) {
	return json.Marshal(map[string]any{
		"client_id": clientID, "client_name": "Herald", "client_uri": site, "application_type": "web", "redirect_uris": redirectURIs,
		"grant_types": []string{"authorization_code", "refresh_token"}, "response_types": []string{"code"}, "scope": Scopes,
		"dpop_bound_access_tokens": true, "token_endpoint_auth_method": "private_key_jwt", "token_endpoint_auth_signing_alg": "ES256",
		"jwks": jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &k.private.PublicKey, KeyID: k.id, Algorithm: string(jose.ES256), Use: "sig"}}},
	})
}
