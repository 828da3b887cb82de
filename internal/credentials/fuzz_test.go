// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/herald-social/herald/api/v1alpha1"
)

// FuzzDecode checks that an accepted token from any Secret can neither end a header nor start another one.
func FuzzDecode(f *testing.F) {
	f.Add("token", "refresh", "2026-12-01T09:00:00Z", "manager-1 2026-12-01T09:00:00Z", "2026-12-01T09:00:00Z")
	f.Add("token\n", "", "", "", "")
	f.Add("to\r\nken", "re fresh", "tomorrow", " ", "0000")
	f.Add("tök", "\x00", "9999-12-31T23:59:59.999999999+23:59", "a b c", "-")
	f.Fuzz(func(t *testing.T, access, refresh, expires, claim, renewed string) {
		secret := &corev1.Secret{Data: map[string][]byte{
			v1alpha1.CredentialsAccessToken: []byte(access), v1alpha1.CredentialsRefreshToken: []byte(refresh), v1alpha1.CredentialsExpiresAt: []byte(expires),
		}}
		secret.Annotations = map[string]string{ClaimAnnotation: claim, RenewedAnnotation: renewed}
		found, err := decode(secret, &v1alpha1.Connection{Spec: v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX}}, nil)
		if err != nil {
			return
		}
		for _, token := range []string{found.Token.Access, found.Token.Refresh} {
			for _, b := range []byte(token) {
				if b <= ' ' || b >= 0x7f {
					t.Fatalf("the token %q is accepted", token)
				}
			}
		}
		if found.Token.Access == "" {
			t.Error("an empty token is accepted")
		}
		if found.Lifetime() < 0 {
			t.Errorf("a token lives for %s", found.Lifetime())
		}
	})
}
