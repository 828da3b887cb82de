// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apikey

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/apitoken"
	"github.com/herald-social/herald/internal/conditions"
)

// wakeMargin is added to a requeue delay, so that it never ends early.
const wakeMargin = 100 * time.Millisecond

type refusal struct {
	// noTeam is true if no team owns the namespace. A Team that acquires the namespace triggers a reconciliation.
	noTeam  bool
	message string
	// retryAfter is the retry delay, or zero if only a user can fix the problem.
	retryAfter time.Duration
}

// secretName returns the name of the Secret for one of a key's tokens. If the combined name is too long for a Secret,
// the key's name is truncated and followed by its hash.
func secretName(key *v1alpha1.APIKey, token string) string {
	name := key.Name + "-" + token
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	sum := sha256.Sum256([]byte(key.Name))
	end := "-" + hex.EncodeToString(sum[:8]) + "-" + token
	return strings.TrimRight(key.Name[:validation.DNS1123SubdomainMaxLength-len(end)], "-.") + end
}

func revoked(key *v1alpha1.APIKey) []string {
	var names []string
	if key.Spec.Revoked {
		// A token may have a Secret before it is in the status.
		for _, token := range key.WantedTokens() {
			names = append(names, token.Name)
		}
	}
	for _, found := range key.Status.Tokens {
		kept := slices.ContainsFunc(key.WantedTokens(), func(wanted v1alpha1.APIKeyToken) bool {
			created := found.SHA256 != ""
			return wanted.Name == found.Name && (wanted.SHA256 == "") == created
		})
		if !kept {
			names = append(names, found.Name)
		}
	}
	return names
}

// adopt copies the hash of a token from its Secret into the status. It refuses a Secret that was not created for this
// key, because others may know its content.
func adopt(key *v1alpha1.APIKey, name string, secret *corev1.Secret) *refusal {
	token := string(secret.Data[v1alpha1.APIKeyTokenKey])
	id, ok := apitoken.Parse(token)
	switch {
	case !metav1.IsControlledBy(secret, key):
		return &refusal{message: fmt.Sprintf("Secret %q exists and was not created for this key; delete it, or create an APIKey with another name", secret.Name)}
	case !ok || id != apitoken.ID(key.Namespace, key.Name):
		return &refusal{message: fmt.Sprintf("key %q of Secret %q does not contain a token that Herald created for this key; delete the APIKey and create it again", v1alpha1.APIKeyTokenKey, secret.Name)}
	}
	key.Status.Tokens = append(key.Status.Tokens, v1alpha1.APIKeyTokenStatus{
		Name:      name,
		CreatedAt: v1alpha1.NewTime(secret.CreationTimestamp.Time),
		SHA256:    apitoken.Hash(key.Namespace, key.Name, token),
		Prefix:    apitoken.Shown(token),
		SecretRef: &v1alpha1.LocalReference{Name: secret.Name},
	})
	return nil
}

func summarize(key *v1alpha1.APIKey, trouble *refusal, now time.Time) conditions.Summary {
	switch {
	case key.Spec.Revoked:
		return conditions.Summary{Reason: v1alpha1.ReasonKeyRevoked, Message: "the key was revoked; create a new APIKey", Progress: conditions.Stuck}
	case trouble != nil && trouble.noTeam:
		return conditions.NoTeam(key.Namespace)
	case trouble != nil && trouble.retryAfter > 0:
		return conditions.Summary{Reason: v1alpha1.ReasonSecretRefused, Message: trouble.message, Progress: conditions.Underway}
	case trouble != nil:
		return conditions.Summary{Reason: v1alpha1.ReasonSecretRefused, Message: trouble.message, Progress: conditions.Stuck}
	case expired(key, now):
		return conditions.Summary{
			Reason:   v1alpha1.ReasonKeyExpired,
			Message:  fmt.Sprintf("the key expired at %s; set expiresAt to a later time, list another token, or create a new APIKey", lastExpiry(key)),
			Progress: conditions.Stuck,
		}
	default:
		return conditions.Summary{Ready: true, Reason: v1alpha1.ReasonActive, Message: "the key is in force" + secretsOf(key), Progress: conditions.Settled}
	}
}

func secretsOf(key *v1alpha1.APIKey) string {
	var names []string
	for _, token := range key.Status.Tokens {
		if token.SecretRef != nil {
			names = append(names, strconv.Quote(token.SecretRef.Name))
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "; its token was put into Secret " + names[0]
	default:
		return "; its tokens were put into Secrets " + strings.Join(names, " and ")
	}
}

func expired(key *v1alpha1.APIKey, now time.Time) bool {
	end := lastExpiry(key)
	return end != nil && !now.Before(end.Time)
}

// lastExpiry returns the time at which a key's last token expires, or nil if one never does.
func lastExpiry(key *v1alpha1.APIKey) *v1alpha1.Time {
	var last *v1alpha1.Time
	for _, token := range key.WantedTokens() {
		end := key.EndOf(token)
		if end == nil {
			return nil
		}
		if last == nil || last.Before(end.Time) {
			last = end
		}
	}
	return last
}

// nextCheck returns the time for which a key's state remains valid. Zero means forever.
func nextCheck(key *v1alpha1.APIKey, trouble *refusal, now time.Time) time.Duration {
	end := lastExpiry(key)
	switch {
	case key.Spec.Revoked:
		return 0
	case trouble != nil:
		return trouble.retryAfter
	case end != nil && !expired(key, now):
		return end.Sub(now) + wakeMargin
	default:
		return 0
	}
}
