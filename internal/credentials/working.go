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
	"github.com/herald-social/herald/internal/appid"
)

// WorkingType is the type of the Secrets in which Herald keeps the tokens that it works
// with. The admission policies know them by it: a type never changes.
const WorkingType corev1.SecretType = "social.herald.dev/credentials"

// WorkingLabel stands on each of them, so that people find them, and names the platform.
const WorkingLabel = "social.herald.dev/credentials"

// workingPrefix begins their names.
const workingPrefix = "herald-credentials-"

// Annotations of a working copy.
const (
	// AccountAnnotation tells people whose tokens these are, as "<platform>/<accountID>".
	AccountAnnotation = "social.herald.dev/account"
	// InputAnnotation is the hash of the input that the tokens were taken from.
	InputAnnotation = "social.herald.dev/input"
	// EarlierInputsAnnotation are the hashes of the inputs before that one, the latest
	// first, separated by spaces.
	EarlierInputsAnnotation = "social.herald.dev/earlier-inputs"
	// UsersAnnotation are the names of the Connections that have used the tokens,
	// separated by spaces.
	UsersAnnotation = "social.herald.dev/connections"
)

const (
	// mostEarlier is how many inputs are remembered beside the present one. A tool that
	// puts old tokens back takes them from the latest commits.
	mostEarlier = 5
	// mostUsers bounds the names that are remembered: as many as most teams may have
	// Connections, and 50 KB if each has 253 characters, of 256 KiB that Kubernetes takes.
	mostUsers = 200
)

// WorkingName is the name of the Secret in which Herald keeps the tokens of a Connection's
// account. It follows from platform and account alone: a Connection that comes back under
// another UID finds it, and all Connections of an account in one namespace share it, since
// a refresh token that is replaced at each renewal cannot be held twice.
func WorkingName(conn *v1alpha1.Connection) string {
	return workingNameOf(conn.Spec.Platform, conn.Spec.AccountID)
}

func workingNameOf(platform v1alpha1.Platform, accountID string) string {
	sum := sha256.Sum256([]byte(string(platform) + "\x00" + accountID))
	return workingPrefix + strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// hashOf identifies what people put into a Secret, without saying it.
func hashOf(secret *corev1.Secret) string {
	values := make([]string, 0, len(tokenKeys))
	for _, key := range tokenKeys {
		values = append(values, strings.TrimSpace(string(secret.Data[key])))
	}
	return hashTexts(values...)
}

// hashTexts identifies texts without saying them.
func hashTexts(values ...string) string {
	sum := sha256.New()
	for _, value := range values {
		fmt.Fprintf(sum, "%d:%s", len(value), value) // the length keeps the parts apart
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// tokenKeys are the keys of a Secret that Herald reads.
var tokenKeys = []string{
	v1alpha1.CredentialsAccessToken, v1alpha1.CredentialsRefreshToken, v1alpha1.CredentialsExpiresAt,
	v1alpha1.CredentialsRefreshExpiresAt, v1alpha1.CredentialsScopes,
}

// Freshness says how an input stands to the working copy.
type Freshness string

// The standings.
const (
	// Current: the working copy was made from it.
	Current Freshness = "Current"
	// Superseded: the working copy was made from it, and since from another one.
	Superseded Freshness = "Superseded"
	// New: it was never taken over.
	New Freshness = "New"
)

// Input is what the Secret holds that a Connection refers to. Herald only reads it.
type Input struct {
	// Secret is its name, and Version its resourceVersion.
	Secret, Version string
	// Hash identifies the tokens in it.
	Hash string
	// Freshness says whether they were taken over.
	Freshness Freshness
	// Token is what it holds, unless Err says why it cannot be used.
	Token Token
	Err   error
	// Controller is the UID of the object that controls the Secret; empty if there
	// is none.
	Controller types.UID
	// claimedBy, claimedAt and renewedAt are what a version of Herald wrote into it that
	// renewed tokens there.
	claimedBy            string
	claimedAt, renewedAt time.Time
}

// inputOf reads an input, of which the working copy is not known yet.
func (s *Store) inputOf(secret *corev1.Secret, platform v1alpha1.Platform) Input {
	in := Input{Secret: secret.Name, Version: secret.ResourceVersion, Hash: hashOf(secret), Freshness: New}
	if owner := metav1.GetControllerOfNoCopy(secret); owner != nil {
		in.Controller = owner.UID
	}
	if secret.Type == WorkingType {
		in.Err = &Error{Reason: Invalid, Message: fmt.Sprintf(
			"Secret %q is one that Herald keeps for itself; name the Secret that you made in spec.credentialsSecretRef", secret.Name)}
		return in
	}
	found, err := decode(secret, platform, s.apps)
	if err != nil {
		in.Err = err
		return in
	}
	in.Token, in.claimedBy, in.claimedAt, in.renewedAt = found.Token, found.ClaimedBy, found.ClaimedAt, found.RenewedAt
	return in
}

// provenance is what a working copy knows of where its tokens came from.
type provenance struct {
	input   string
	earlier []string
	users   []string
}

func provenanceOf(secret *corev1.Secret) provenance {
	return provenance{
		input: secret.Annotations[InputAnnotation], earlier: strings.Fields(secret.Annotations[EarlierInputsAnnotation]),
		users: strings.Fields(secret.Annotations[UsersAnnotation]),
	}
}

func (l provenance) freshness(hash string) Freshness {
	switch {
	case hash == l.input:
		return Current
	case slices.Contains(l.earlier, hash):
		return Superseded
	default:
		return New
	}
}

// with is the lineage after an input was taken over, by a Connection of that name.
func (l provenance) with(hash, user string) provenance {
	next := provenance{input: hash, users: l.users}
	for _, h := range append([]string{l.input}, l.earlier...) {
		if h != "" && h != hash && len(next.earlier) < mostEarlier {
			next.earlier = append(next.earlier, h)
		}
	}
	return next.usedBy(user)
}

// usedBy is the lineage with a user more. The one that came first is forgotten if there are
// too many: it is known by its input still.
func (l provenance) usedBy(user string) provenance {
	if !slices.Contains(l.users, user) {
		l.users = append(slices.Clone(l.users), user)
		l.users = l.users[max(0, len(l.users)-mostUsers):]
	}
	return l
}

func (l provenance) annotations() map[string]string {
	return map[string]string{
		InputAnnotation: l.input, EarlierInputsAnnotation: strings.Join(l.earlier, " "), UsersAnnotation: strings.Join(l.users, " "),
	}
}

// newWorking makes the working copy of an account. It has no owner: it outlives a Connection
// that is deleted and applied again, and a restored one has another UID than the one before.
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
		secret.Annotations[appid.Annotation] = mark
	}
	if !renewedAt.IsZero() {
		secret.Annotations[RenewedAnnotation] = renewedAt.UTC().Format(time.RFC3339)
	}
	return secret
}

// mark is that of a token which is known to be of the installation's app; "" for any other.
func (s *Store) mark(platform v1alpha1.Platform, token Token) string {
	if token.App == "" || token.App != s.App(platform) {
		return ""
	}
	return s.apps.Sign(platform, token.Access, token.Refresh)
}
