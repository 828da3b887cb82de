// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials stores the tokens of connected accounts in Secrets. It reads them, stores renewed ones before
// they are used, and caches them briefly.
//
// The Secret that a Connection refers to is the input: users or their tools write it, and Herald only reads it. Herald
// keeps the tokens that it uses in a separate Secret, the working copy, which is made from an input and records which
// one. So a tool that restores an old input has no effect.
//
// A rotating refresh token works only once. A manager therefore claims the working copy before it renews a token
// (Store.Claim), so that two managers running at the same time never spend the same refresh token. It retries until the
// new token is stored (Store.Save), because losing it means losing the account.
package credentials

import (
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ClaimAnnotation marks a Secret whose token is being renewed. Its value is "<holder> <time in RFC 3339>": the process
// that renews the token, and when it started. It is removed when the renewed token is stored.
const ClaimAnnotation = "social.herald.dev/renewal"

// RenewedAnnotation is when Herald last renewed the Secret's token, in RFC 3339. Together with expiresAt it yields the
// lifetime of the platform's tokens.
const RenewedAnnotation = "social.herald.dev/renewed-at"

// Token is an account's token. It has the same fields as platforms.Token, so the types convert to each other.
type Token struct {
	// Access is sent with every call. It is never logged.
	Access string
	// Refresh renews Access. It is empty if the platform has no refresh tokens.
	Refresh string
	// ExpiresAt is when Access expires, or zero if it does not.
	ExpiresAt time.Time
	// RefreshExpiresAt is when Refresh expires, or zero if it does not or that is unknown.
	RefreshExpiresAt time.Time
	// Scopes are the granted scopes, separated by spaces.
	Scopes string
	// App is the client id of the installation's app if the token is known to belong to it, and empty otherwise: users
	// may supply tokens of any app. Platform responses about "the app" concern this one.
	App string
	// Server is the address of the account's server, from its Connection, on a platform whose users choose it.
	Server string
	// ClientID and ClientSecret are those of the app on the server that the token was issued to, if Herald registered it.
	ClientID, ClientSecret string
}

// Fingerprint returns a hash of the access and refresh tokens, which identifies them without revealing them.
func (t Token) Fingerprint() string { return hashTexts(t.Access, t.Refresh) }

// Credentials is a token that was read from a working copy, or from an input that has no working copy yet.
type Credentials struct {
	Token Token
	// Version is the resourceVersion of the Secret.
	Version string
	// Other is the input's hash if the working copy was not made from it, and empty otherwise.
	Other string
	// ClaimedBy and ClaimedAt are the process that started to renew the token, and when. They are empty without a claim.
	ClaimedBy string
	ClaimedAt time.Time
	// RenewedAt is when Herald last renewed the token, or zero if it never has.
	RenewedAt time.Time

	provenance provenance
}

// Lifetime returns the time from the token's renewal to its expiry, or zero if that is unknown.
func (c Credentials) Lifetime() time.Duration {
	if c.RenewedAt.IsZero() || !c.Token.ExpiresAt.After(c.RenewedAt) {
		return 0
	}
	return c.Token.ExpiresAt.Sub(c.RenewedAt)
}

// decode parses the Secret of a Connection's account. It trims white space around the values, because a
// Secret made from a file ends in a newline.
func decode(secret *corev1.Secret, conn *v1alpha1.Connection, apps Apps) (Credentials, error) {
	value := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	c := Credentials{
		Token: Token{
			Access:  value(v1alpha1.CredentialsAccessToken),
			Refresh: value(v1alpha1.CredentialsRefreshToken),
			Scopes:  value(v1alpha1.CredentialsScopes),
			Server:  conn.Spec.Server,

			ClientID: value(v1alpha1.CredentialsClientID), ClientSecret: value(v1alpha1.CredentialsClientSecret),
		},
		Version: secret.ResourceVersion,
	}
	switch {
	case c.Token.Access == "":
		return Credentials{}, invalid(secret, v1alpha1.CredentialsAccessToken, "is missing or empty; put the account's access token there")
	case !sendable(c.Token.Access):
		return Credentials{}, invalid(secret, v1alpha1.CredentialsAccessToken, "contains spaces or control characters; put only the access token there")
	case !sendable(c.Token.Refresh):
		return Credentials{}, invalid(secret, v1alpha1.CredentialsRefreshToken, "contains spaces or control characters; put only the refresh token there")
	}
	var err error
	if c.Token.ExpiresAt, err = decodeTime(secret, v1alpha1.CredentialsExpiresAt); err != nil {
		return Credentials{}, err
	}
	if c.Token.RefreshExpiresAt, err = decodeTime(secret, v1alpha1.CredentialsRefreshExpiresAt); err != nil {
		return Credentials{}, err
	}
	c.Token.App = apps.Identify(conn.Spec.Platform, secret.Annotations[AppMarkAnnotation], c.Token.Access, c.Token.Refresh)
	c.ClaimedBy, c.ClaimedAt = parseClaim(secret.Annotations[ClaimAnnotation])
	c.RenewedAt = timeOf(secret.Annotations[RenewedAnnotation])
	return c, nil
}

// decodeTime parses a token's expiry. It returns zero if the key is missing or empty.
func decodeTime(secret *corev1.Secret, key string) (time.Time, error) {
	at := strings.TrimSpace(string(secret.Data[key]))
	if at == "" {
		return time.Time{}, nil
	}
	ends, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return time.Time{}, invalid(secret, key, "is not a time such as 2026-12-01T09:00:00Z; correct it, or remove the key if the token does not expire")
	}
	return ends.UTC(), nil
}

// sendable reports whether a token is valid in an HTTP header (RFC 6750, section 2.1, interpreted liberally).
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f })
}

// encode returns a token as a merge patch's data. It never removes a refresh token: that would lose the account.
func encode(token Token) map[string]any {
	data := map[string]any{
		v1alpha1.CredentialsAccessToken: []byte(token.Access),

		v1alpha1.CredentialsExpiresAt:        nil,
		v1alpha1.CredentialsRefreshExpiresAt: nil,
	}
	if !token.RefreshExpiresAt.IsZero() {
		data[v1alpha1.CredentialsRefreshExpiresAt] = []byte(token.RefreshExpiresAt.UTC().Format(time.RFC3339))
	}
	if !token.ExpiresAt.IsZero() {
		data[v1alpha1.CredentialsExpiresAt] = []byte(token.ExpiresAt.UTC().Format(time.RFC3339))
	}
	if token.Refresh != "" {
		data[v1alpha1.CredentialsRefreshToken] = []byte(token.Refresh)
	}
	if token.Scopes != "" {
		data[v1alpha1.CredentialsScopes] = []byte(token.Scopes)
	}
	if token.ClientID != "" {
		data[v1alpha1.CredentialsClientID], data[v1alpha1.CredentialsClientSecret] = []byte(token.ClientID), []byte(token.ClientSecret)
	}
	return data
}

func claimText(holder string, at time.Time) string {
	return holder + " " + at.UTC().Format(time.RFC3339)
}

func parseClaim(text string) (holder string, at time.Time) {
	holder, stamp, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "", time.Time{}
	}
	return holder, at.UTC()
}
