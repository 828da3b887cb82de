// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/conditions"
)

// wakeMargin is added to a wait, so that it never ends too early.
const wakeMargin = 100 * time.Millisecond

// refusal is why a key cannot be activated.
type refusal struct {
	message string
	// again is how soon to try again; zero if only a person can help.
	again time.Duration
}

// secretName is the name of a key's Secret.
func secretName(key *v1alpha1.APIKey) string { return key.Name + "-token" }

// adopt takes the token of a key from its Secret into the status. It refuses a Secret
// that was not created for this very key: others may know its content.
func adopt(key *v1alpha1.APIKey, secret *corev1.Secret) *refusal {
	token := string(secret.Data[v1alpha1.APIKeyTokenKey])
	switch {
	case !metav1.IsControlledBy(secret, key):
		return &refusal{message: fmt.Sprintf("Secret %q exists and was not created for this key; delete it, or create an APIKey with another name", secret.Name)}
	case !wellFormed(token):
		return &refusal{message: fmt.Sprintf("key %q of Secret %q holds no token of Herald's any more; delete the Secret and the APIKey, and create the APIKey again", v1alpha1.APIKeyTokenKey, secret.Name)}
	}
	key.Status.TokenSHA256 = hash(token)
	key.Status.Prefix = prefix(token)
	key.Status.SecretRef = &v1alpha1.LocalReference{Name: secret.Name}
	return nil
}

// summarize returns the state of a key.
func summarize(key *v1alpha1.APIKey, trouble *refusal, now time.Time) conditions.Summary {
	switch {
	case key.Spec.Revoked:
		return conditions.Summary{Reason: v1alpha1.ReasonKeyRevoked, Message: "the key was revoked; create a new APIKey to go on", Progress: conditions.Stuck}
	case trouble != nil && trouble.again > 0:
		return conditions.Summary{Reason: v1alpha1.ReasonSecretRefused, Message: trouble.message, Progress: conditions.Underway}
	case trouble != nil:
		return conditions.Summary{Reason: v1alpha1.ReasonSecretRefused, Message: trouble.message, Progress: conditions.Stuck}
	case expired(key, now):
		return conditions.Summary{
			Reason:   v1alpha1.ReasonKeyExpired,
			Message:  fmt.Sprintf("the key expired at %s; set spec.expiresAt to a later time, or create a new APIKey", key.Spec.ExpiresAt),
			Progress: conditions.Stuck,
		}
	case key.Status.SecretRef != nil:
		return conditions.Summary{
			Ready: true, Reason: v1alpha1.ReasonActive, Progress: conditions.Settled,
			Message: fmt.Sprintf("the key is in force; its token was put into Secret %q", key.Status.SecretRef.Name),
		}
	default:
		return conditions.Summary{Ready: true, Reason: v1alpha1.ReasonActive, Message: "the key is in force", Progress: conditions.Settled}
	}
}

func expired(key *v1alpha1.APIKey, now time.Time) bool {
	return key.Spec.ExpiresAt != nil && !now.Before(key.Spec.ExpiresAt.Time)
}

// nextCheck returns how long the state of a key lasts; zero if for ever.
func nextCheck(key *v1alpha1.APIKey, trouble *refusal, now time.Time) time.Duration {
	switch {
	case key.Spec.Revoked:
		return 0
	case trouble != nil:
		return trouble.again
	case key.Spec.ExpiresAt != nil && !expired(key, now):
		return key.Spec.ExpiresAt.Sub(now) + wakeMargin
	default:
		return 0
	}
}

const (
	// tokenPrefix lets people and secret scanners recognise a token.
	tokenPrefix = "hrld_"
	// prefixLength is how much of a token status.prefix shows: the part that
	// all tokens share, and four characters to tell them apart by.
	prefixLength = 9
	// shortestToken is the length of the tokens that newToken makes.
	shortestToken = len(tokenPrefix) + 2*26
)

// newToken returns a token that cannot be guessed: 260 random bits in base32.
func newToken() string {
	return tokenPrefix + strings.ToLower(rand.Text()+rand.Text())
}

// wellFormed reports whether a token may be one of newToken.
func wellFormed(token string) bool {
	rest, ok := strings.CutPrefix(token, tokenPrefix)
	return ok && len(token) >= shortestToken && !strings.ContainsFunc(rest, func(c rune) bool {
		return (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z')
	})
}

// hash is what is published of a token. The token is long and random, so that
// a plain hash cannot be reversed.
func hash(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// prefix is the beginning of a token, to recognise it by.
func prefix(token string) string { return token[:prefixLength] }
