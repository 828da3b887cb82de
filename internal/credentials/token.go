// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package credentials keeps the tokens of connected accounts in Secrets: it
// reads them, stores renewed ones before anybody uses them, and holds them in
// memory for as short as publishing at speed allows.
//
// A rotating refresh token is worth one call. Whoever renews a token first
// claims the Secret (Store.Claim), so that two managers that overlap never
// spend the same refresh token, and saves the answer with patience
// (Store.Save), because an answer that is lost costs the account.
package credentials

import (
	"strings"
	"time"
	"unicode"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

// ClaimAnnotation stands on a Secret whose token is being renewed: who renews
// it and since when, as "<holder> <time in RFC 3339>". It goes when the renewed
// token is stored.
const ClaimAnnotation = "social.herald.dev/renewal"

// RenewedAnnotation stands on a Secret whose token was renewed by Herald, and
// tells when, in RFC 3339. With expiresAt it tells how long the platform's
// tokens live.
const RenewedAnnotation = "social.herald.dev/renewed-at"

// Token is what a Secret holds for an account. It has the fields of
// platforms.Token, so that one converts to the other.
type Token struct {
	// Access is sent with every call. Never logged.
	Access string
	// Refresh renews Access; empty where the platform has none.
	Refresh string
	// ExpiresAt is when Access ends; zero where it does not.
	ExpiresAt time.Time
	// RefreshExpiresAt is when Refresh ends; zero where it does not, or where
	// the platform does not say.
	RefreshExpiresAt time.Time
	// Scopes are the granted scopes, separated by spaces.
	Scopes string
}

// Credentials is a token as it was read.
type Credentials struct {
	Token Token
	// Version is the resourceVersion of the Secret.
	Version string
	// ClaimedBy and ClaimedAt tell who began to renew the token, and when;
	// empty if nobody did.
	ClaimedBy string
	ClaimedAt time.Time
	// Controller is the UID of the object that the Secret goes with; empty if
	// somebody made it by hand.
	Controller types.UID
	// RenewedAt is when Herald last renewed the token; zero if it never did.
	RenewedAt time.Time
}

// Lifetime is how long the token lives from its renewal to its end; zero if
// that is not known.
func (c Credentials) Lifetime() time.Duration {
	if c.RenewedAt.IsZero() || !c.Token.ExpiresAt.After(c.RenewedAt) {
		return 0
	}
	return c.Token.ExpiresAt.Sub(c.RenewedAt)
}

// decode reads a Secret. Blanks around the values are dropped: files that
// people make Secrets of end in a newline.
func decode(secret *corev1.Secret) (Credentials, error) {
	value := func(key string) string { return strings.TrimSpace(string(secret.Data[key])) }
	c := Credentials{
		Token: Token{
			Access:  value(v1alpha1.CredentialsAccessToken),
			Refresh: value(v1alpha1.CredentialsRefreshToken),
			Scopes:  value(v1alpha1.CredentialsScopes),
		},
		Version: secret.ResourceVersion,
	}
	switch {
	case c.Token.Access == "":
		return Credentials{}, invalid(secret, v1alpha1.CredentialsAccessToken, "is missing or empty; put the account's access token there")
	case !sendable(c.Token.Access):
		return Credentials{}, invalid(secret, v1alpha1.CredentialsAccessToken, "holds blanks or control characters; put the access token there and nothing else")
	case !sendable(c.Token.Refresh):
		return Credentials{}, invalid(secret, v1alpha1.CredentialsRefreshToken, "holds blanks or control characters; put the refresh token there and nothing else")
	case c.Token.Refresh != "" && secret.Immutable != nil && *secret.Immutable:
		// A renewed token could not be stored, and the old one would be spent.
		return Credentials{}, invalid(secret, v1alpha1.CredentialsRefreshToken, "cannot be renewed, since the Secret is immutable; make it again without \"immutable: true\"")
	}
	var err error
	if c.Token.ExpiresAt, err = decodeTime(secret, v1alpha1.CredentialsExpiresAt); err != nil {
		return Credentials{}, err
	}
	if c.Token.RefreshExpiresAt, err = decodeTime(secret, v1alpha1.CredentialsRefreshExpiresAt); err != nil {
		return Credentials{}, err
	}
	if owner := metav1.GetControllerOfNoCopy(secret); owner != nil {
		c.Controller = owner.UID
	}
	c.ClaimedBy, c.ClaimedAt = parseClaim(secret.Annotations[ClaimAnnotation])
	if at, err := time.Parse(time.RFC3339, secret.Annotations[RenewedAnnotation]); err == nil {
		c.RenewedAt = at.UTC()
	}
	return c, nil
}

// decodeTime reads when a token ends; zero where the key is missing or empty.
func decodeTime(secret *corev1.Secret, key string) (time.Time, error) {
	at := strings.TrimSpace(string(secret.Data[key]))
	if at == "" {
		return time.Time{}, nil
	}
	ends, err := time.Parse(time.RFC3339, at)
	if err != nil {
		return time.Time{}, invalid(secret, key, "is not a time such as 2026-12-01T09:00:00Z; write it so, or remove the key if the token does not end")
	}
	return ends.UTC(), nil
}

// sendable tells whether a token fits into an HTTP header (RFC 6750, section
// 2.1, in generous reading).
func sendable(token string) bool {
	return !strings.ContainsFunc(token, func(r rune) bool { return r > unicode.MaxASCII || r <= ' ' || r == 0x7f })
}

// encode writes a token as the data of a merge patch. A refresh token is only
// ever replaced, never removed: without it the account would be lost.
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
	return data
}

func claimText(holder string, at time.Time) string {
	return holder + " " + at.UTC().Format(time.RFC3339)
}

// parseClaim reads a claim; one that cannot be read is none.
func parseClaim(text string) (holder string, at time.Time) {
	holder, stamp, _ := strings.Cut(text, " ")
	at, err := time.Parse(time.RFC3339, stamp)
	if err != nil {
		return "", time.Time{}
	}
	return holder, at.UTC()
}
