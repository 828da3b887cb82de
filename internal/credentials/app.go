// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"

	"github.com/herald-social/herald/api/v1alpha1"
)

// AppMarkAnnotation marks a Secret whose credentials are known to belong to the installation's own app: the apiserver
// obtained them through the app's OAuth flow, or the manager renewed them with the app's secret. Users may create
// Secrets with the tokens of any app. A platform's statements about "the app" apply only to tokens of the
// installation's own app.
//
// The mark cannot be forged: it is a message authentication code over the platform, the app and the tokens. Its key is
// derived from the app's secret, which only those two processes have; that secret is what identifies the app.
const AppMarkAnnotation = "social.herald.dev/app-seal"

// markVersion is the prefix of every mark. It identifies the mark's algorithm and input.
const markVersion = "v1."

// markPurpose separates this key from other uses of the app's secret.
const markPurpose = "social.herald.dev/app-seal/v1"

// App is the installation's app on one platform.
type App struct {
	// ID is the OAuth client id.
	ID string
	// Secret returns the current client secret. If it is nil or returns "", nothing can be marked.
	Secret func() string
}

// Apps are the installation's apps. The zero value contains no apps and does not set marks.
type Apps map[v1alpha1.Platform]App

// ID returns the client id of the app on the given platform, or "" if there is none.
func (a Apps) ID(platform v1alpha1.Platform) string { return a[platform].ID }

func (a Apps) secret(platform v1alpha1.Platform) string {
	app := a[platform]
	if app.ID == "" || app.Secret == nil {
		return ""
	}
	return app.Secret()
}

// Sign returns the mark for credentials that belong to the app, or "" if there is no app on the platform or it has no
// secret.
func (a Apps) Sign(platform v1alpha1.Platform, access, refresh string) string {
	code := a.mac(platform, access, refresh)
	if code == nil {
		return ""
	}
	return markVersion + base64.RawURLEncoding.EncodeToString(code)
}

// Identify returns the client id of the app whose mark the credentials carry. It returns "" if there is no mark or it
// does not match: then the mark belongs to other credentials or another app, or the app's secret has changed since.
func (a Apps) Identify(platform v1alpha1.Platform, mark, access, refresh string) string {
	if mark == "" {
		return ""
	}
	want := a.Sign(platform, access, refresh)
	if want == "" || !hmac.Equal([]byte(mark), []byte(want)) {
		return ""
	}
	return a[platform].ID
}

// mac authenticates credentials. It returns nil if there is no app.
func (a Apps) mac(platform v1alpha1.Platform, access, refresh string) []byte {
	secret := a.secret(platform)
	if secret == "" || access == "" {
		return nil
	}
	key, err := DeriveKey(secret, markPurpose)
	if err != nil {
		return nil
	}
	mac := hmac.New(sha256.New, key)
	for _, part := range []string{string(platform), a[platform].ID, access, refresh} {
		// The length separates the parts.
		fmt.Fprintf(mac, "%d:%s", len(part), part)
	}
	return mac.Sum(nil)
}

// DeriveKey derives a 32-byte key from a secret for one purpose. The key for one purpose does not reveal the key for
// another. HKDF accepts that length; in FIPS mode it returns an error if the secret is short.
func DeriveKey(secret, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, []byte(secret), nil, purpose, sha256.Size)
}
