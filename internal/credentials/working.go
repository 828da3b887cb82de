// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package credentials

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

// WorkingType is the type of Herald's own Secrets, which hold the tokens in use. The admission policies identify them
// by it, since a Secret's type never changes.
const WorkingType corev1.SecretType = "social.herald.dev/credentials"

// WorkingLabel is set on each working copy, so that users can find it. Its value is the platform.
const WorkingLabel = "social.herald.dev/credentials"

const workingPrefix = "herald-credentials-"

// Annotations of a working copy.
const (
	// AccountAnnotation contains the account that the tokens belong to, as "<platform>/<accountID>". It is for users.
	AccountAnnotation = "social.herald.dev/account"
	// InputAnnotation is the hash of the input that the tokens were taken from.
	InputAnnotation = "social.herald.dev/input"
	// EarlierInputsAnnotation lists the hashes of previous inputs, latest first, separated by spaces.
	EarlierInputsAnnotation = "social.herald.dev/earlier-inputs"
	// UsersAnnotation lists the names of the Connections that have used the tokens, separated by spaces.
	UsersAnnotation = "social.herald.dev/connections"
	// GrantedAnnotation is when a user granted the input's tokens, or empty if that is unknown.
	GrantedAnnotation = "social.herald.dev/granted-at"
)

const (
	// maxEarlier is the number of earlier inputs that are remembered. Tools restore old tokens from recent commits.
	maxEarlier = 5
	// maxUsers is the number of names that are remembered, which is the number of Connections that most teams may have. At
	// 253 characters each, they take 50 KB of the 256 KiB that Kubernetes allows.
	maxUsers = 200
)

// WorkingName returns the name of Herald's Secret with the tokens of a Connection's account. It depends only on the
// platform and the account: a Connection that is recreated with a different UID finds it, and all of an account's
// Connections in one namespace share it, since two refresh tokens cannot be valid if each renewal replaces the token.
func WorkingName(conn *v1alpha1.Connection) string {
	return workingNameOf(conn.Spec.Platform, conn.Spec.AccountID)
}

func workingNameOf(platform v1alpha1.Platform, accountID string) string {
	sum := sha256.Sum256([]byte(string(platform) + "\x00" + accountID))
	return workingPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

func hashOf(secret *corev1.Secret) string {
	values := make([]string, 0, len(tokenKeys))
	for _, key := range tokenKeys {
		values = append(values, strings.TrimSpace(string(secret.Data[key])))
	}
	return hashTexts(values...)
}

func hashTexts(values ...string) string {
	sum := sha256.New()
	for _, value := range values {
		fmt.Fprintf(sum, "%d:%s", len(value), value) // the length separates the parts
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// tokenKeys are the keys that identify an input. clientKeys are copied as well, but are not part of the hash: they
// appear only together with a token that was issued to that client.
var (
	tokenKeys = []string{
		v1alpha1.CredentialsAccessToken, v1alpha1.CredentialsRefreshToken, v1alpha1.CredentialsExpiresAt,
		v1alpha1.CredentialsRefreshExpiresAt, v1alpha1.CredentialsScopes,
	}
	clientKeys = []string{v1alpha1.CredentialsClientID, v1alpha1.CredentialsClientSecret}
)

// Freshness relates an input to the working copy.
type Freshness string

// The values of Freshness.
const (
	// Current: the working copy was made from this input.
	Current Freshness = "Current"
	// Superseded: the working copy was made from this input, and later from a different one.
	Superseded Freshness = "Superseded"
	// New: this input was never adopted.
	New Freshness = "New"
)

// Input is the content of the Secret that a Connection refers to. Herald only reads it.
type Input struct {
	// Secret is the Secret's name, and Version its resourceVersion.
	Secret, Version string
	// Hash identifies the Secret's tokens.
	Hash string
	// Freshness shows whether the tokens were adopted.
	Freshness Freshness
	// GrantedAt is when a user granted the tokens, or zero if that is unknown.
	GrantedAt time.Time
	// Token is the content. It is unusable if Err is set.
	Token Token
	Err   error
	// Controller is the UID of the object that controls the Secret, or empty if there is none.
	Controller types.UID
	// claimedBy, claimedAt and renewedAt are from an earlier version of Herald, which renewed tokens in the input.
	claimedBy            string
	claimedAt, renewedAt time.Time
}

func (s *Store) inputOf(secret *corev1.Secret, conn *v1alpha1.Connection) Input {
	in := Input{Secret: secret.Name, Version: secret.ResourceVersion, Hash: hashOf(secret), Freshness: New}
	in.GrantedAt = timeOf(strings.TrimSpace(string(secret.Data[v1alpha1.CredentialsGrantedAt])))
	if owner := metav1.GetControllerOfNoCopy(secret); owner != nil {
		in.Controller = owner.UID
	}
	if secret.Type == WorkingType {
		in.Err = &Error{Reason: Invalid, Message: fmt.Sprintf(
			"Secret %q is Herald's own; set spec.credentialsSecretRef to the Secret that you created", secret.Name)}
		return in
	}
	found, err := decode(secret, conn, s.apps)
	if err != nil {
		in.Err = err
		return in
	}
	in.Token, in.claimedBy, in.claimedAt, in.renewedAt = found.Token, found.ClaimedBy, found.ClaimedAt, found.RenewedAt
	return in
}

type provenance struct {
	input   string
	earlier []string
	users   []string
	// granted is when a user granted the tokens of the current input or, if that is unknown, of the last input for which
	// it is known.
	granted time.Time
}

func provenanceOf(secret *corev1.Secret) provenance {
	return provenance{
		input: secret.Annotations[InputAnnotation], earlier: strings.Fields(secret.Annotations[EarlierInputsAnnotation]),
		users: strings.Fields(secret.Annotations[UsersAnnotation]), granted: timeOf(secret.Annotations[GrantedAnnotation]),
	}
}

// timeOf parses a time in RFC 3339. It returns zero for any other text.
func timeOf(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at.UTC()
}

// freshness compares an input with the current one and the earlier ones. A platform may return the same token for a
// second consent as for the first: Mastodon has one token per app and account.
func (l provenance) freshness(in Input) Freshness {
	switch {
	case in.Hash == l.input:
		return Current
	case slices.Contains(l.earlier, in.Hash) && !in.GrantedAt.After(l.granted):
		return Superseded
	default:
		return New
	}
}

// with returns the provenance after the Connection named user adopted an input.
func (l provenance) with(in Input, user string) provenance {
	hash := in.Hash
	next := provenance{input: hash, users: l.users, granted: l.granted}
	if in.GrantedAt.After(l.granted) {
		next.granted = in.GrantedAt
	}
	for _, h := range append([]string{l.input}, l.earlier...) {
		if h != "" && h != hash && len(next.earlier) < maxEarlier {
			next.earlier = append(next.earlier, h)
		}
	}
	return next.usedBy(user)
}

// usedBy returns the provenance with one more user. Beyond maxUsers, it drops the earliest users, which are still
// recognized by their inputs.
func (l provenance) usedBy(user string) provenance {
	if !slices.Contains(l.users, user) {
		l.users = append(slices.Clone(l.users), user)
		l.users = l.users[max(0, len(l.users)-maxUsers):]
	}
	return l
}

func (l provenance) annotations() map[string]string {
	out := map[string]string{
		InputAnnotation: l.input, EarlierInputsAnnotation: strings.Join(l.earlier, " "), UsersAnnotation: strings.Join(l.users, " "),
	}
	if !l.granted.IsZero() {
		out[GrantedAnnotation] = l.granted.Format(time.RFC3339)
	}
	return out
}

// newWorking makes an account's working copy. It has no owner reference, so that it outlives a Connection that is
// deleted and applied again: a restored Connection has a different UID.
func (s *Store) newWorking(conn *v1alpha1.Connection, token Token, l provenance, renewedAt time.Time) *corev1.Secret {
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: conn.Namespace, Name: WorkingName(conn),
			Labels:      map[string]string{WorkingLabel: string(conn.Spec.Platform)},
			Annotations: map[string]string{AccountAnnotation: string(conn.Spec.Platform) + "/" + conn.Spec.AccountID},
		},
		Type: WorkingType, Data: map[string][]byte{},
	}
	maps.Copy(secret.Annotations, l.annotations())
	for key, value := range encode(token) {
		if text, ok := value.([]byte); ok {
			secret.Data[key] = text
		}
	}
	if mark := s.mark(conn.Spec.Platform, token); mark != "" {
		secret.Annotations[AppMarkAnnotation] = mark
	}
	if !renewedAt.IsZero() {
		secret.Annotations[RenewedAnnotation] = renewedAt.UTC().Format(time.RFC3339)
	}
	return secret
}

func (s *Store) mark(platform v1alpha1.Platform, token Token) string {
	if token.App == "" || token.App != s.App(platform) {
		return ""
	}
	return s.apps.Sign(platform, token.Access, token.Refresh)
}
