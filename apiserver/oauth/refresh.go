// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// purposeRefresh is the signing purpose of refresh tokens, and purposeNext the purpose for deriving the next
	// token's secret.
	purposeRefresh = "oauth-refresh"
	purposeNext    = "oauth-refresh-next"
	// secretBytes is the length of a refresh token's secret: 256 bits.
	secretBytes = 32
	// maxRefresh is the maximum length of a refresh token, in bytes.
	maxRefresh = 512
)

// A refresh token has the form hor_<namespace>.<grant>.<generation>.<secret>.<signature>. The grant stores its hash,
// which decides whether it is valid. The signature distinguishes expired tokens from forged ones: an attacker with a
// forged token must not be able to end a grant.
type refresh struct {
	namespace, name string
	generation      int64
	// genuine reports that this installation issued the token.
	genuine bool
}

// firstRefresh returns a grant's first refresh token.
func (s *Server) firstRefresh(grant *v1alpha1.OAuthGrant) string {
	secret := make([]byte, secretBytes)
	_, _ = rand.Read(secret) // crypto/rand.Read never returns an error
	return s.signedRefresh(grant, 1, secret)
}

// nextRefresh returns a refresh token's successor. It derives the successor from the used token and one of this
// installation's keys. A client that lost the response therefore gets the same token again, without a stored secret.
func (s *Server) nextRefresh(grant *v1alpha1.OAuthGrant, used string, generation int64) string {
	return s.signedRefresh(grant, generation, s.Keys.Sign(purposeNext, string(grant.UID)+"/"+used))
}

func (s *Server) signedRefresh(grant *v1alpha1.OAuthGrant, generation int64, secret []byte) string {
	body := grant.Namespace + "." + grant.Name + "." + strconv.FormatInt(generation, 10) + "." + base64.RawURLEncoding.EncodeToString(secret)
	code := s.Keys.Sign(purposeRefresh, body)
	if code == nil || secret == nil {
		return ""
	}
	return refreshPrefix + body + "." + base64.RawURLEncoding.EncodeToString(code[:signatureBytes])
}

// readRefresh parses a refresh token. It returns false if the token is malformed.
func (s *Server) readRefresh(token string) (refresh, bool) {
	text, ok := strings.CutPrefix(token, refreshPrefix)
	parts := strings.Split(text, ".")
	const wanted = 5
	if !ok || len(token) > maxRefresh || len(parts) != wanted || len(validation.IsDNS1123Label(parts[0])) > 0 || len(validation.IsDNS1123Label(parts[1])) > 0 {
		return refresh{}, false
	}
	generation, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || generation < 1 {
		return refresh{}, false
	}
	body := text[:strings.LastIndex(text, ".")]
	return refresh{parts[0], parts[1], generation, s.signed(purposeRefresh, body, parts[4])}, true
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func sameHash(a, b string) bool {
	return a != "" && subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1
}

const wrongRefresh = "the refresh token was not issued by this server, or is no longer valid"

// errRefresh is the error for a token that was once valid, and errForged for one that was never issued or cannot be
// distinguished from such a token.
var errRefresh, errForged = badGrant(wrongRefresh), forgedGrant(wrongRefresh)

// refresh exchanges a refresh token for its successor and an access token.
func (s *Server) refresh(ctx context.Context, form url.Values) (*tokens, error) {
	token := form.Get("refresh_token")
	if token == "" {
		return nil, refusef(http.StatusBadRequest, invalidRequest, "refresh_token is missing")
	}
	named, ok := s.readRefresh(token)
	if !ok {
		return nil, errForged
	}
	purpose, ref := toReplay, grantRef{Namespace: named.namespace, Name: named.name}
	switch {
	case s.remembered(named, hashOf(token)):
		purpose = toRefresh
	case !named.genuine && !s.Grants.HasSynced():
		return nil, errStarting
	case !named.genuine:
		return nil, errForged // only possibly valid tokens cause a request to the Kubernetes API
	}
	if wrong := s.admit(ctx, purpose, ref); wrong != nil {
		return nil, wrong
	}
	for range tries {
		grant, err := s.live(ctx, ref)
		if err != nil {
			return nil, err
		}
		made, err := s.rotate(ctx, grant, named, token, form)
		if apierrors.IsConflict(err) {
			continue
		}
		return made, err
	}
	return nil, errOvertaken
}

// remembered reports whether the cached grant has this hash as its current refresh token.
func (s *Server) remembered(named refresh, hash string) bool {
	grant := s.Grants.Get(named.namespace, named.name)
	return grant != nil && grant.Status.Refresh != nil && sameHash(grant.Status.Refresh.SHA256, hash)
}

// rotate replaces a refresh token. It returns a conflict if another request was faster.
func (s *Server) rotate(ctx context.Context, grant *v1alpha1.OAuthGrant, named refresh, token string, form url.Values) (*tokens, error) {
	present := grant.Status.Refresh
	switch {
	case present == nil:
		return nil, errRefresh
	case grant.Spec.Client.ID != keyOfClient(form.Get("client_id")):
		return nil, badGrant("the refresh token was issued to another client")
	case s.endReason(grant) != "":
		return nil, badGrant("the grant %s", s.endReason(grant))
	}
	scopes, wrong := narrowed(grant, form.Get("scope"))
	if wrong != nil {
		return nil, wrong
	}
	now, hash := s.Clock.Now(), hashOf(token)
	switch {
	case sameHash(present.SHA256, hash):
	case sameHash(present.PreviousSHA256, hash) && now.Sub(present.RotatedAt.Time) <= grace:
		if next := s.nextRefresh(grant, token, present.Generation); sameHash(present.SHA256, hashOf(next)) {
			return s.tokensFor(grant, scopes, next), nil
		}
		return nil, errRefresh
	case named.genuine && named.generation <= present.Generation:
		// Two parties have the token. It is unknown which of them is the client, so both lose access.
		if err := s.revokeCompromised(ctx, grant, v1alpha1.GrantReuse, "A refresh token was used a second time; the agent's grant is revoked"); err != nil {
			return nil, err
		}
		return nil, badGrant("the refresh token was already used; the grant is revoked, ask the person to allow it again")
	default:
		return nil, errRefresh
	}
	next := grant.DeepCopy()
	following := s.nextRefresh(grant, token, present.Generation+1)
	if following == "" {
		return nil, errNoKeys
	}
	next.Status.Refresh = &v1alpha1.OAuthGrantRefresh{
		Generation: present.Generation + 1, SHA256: hashOf(following), PreviousSHA256: hash, RotatedAt: v1alpha1.NewTime(now),
	}
	if _, err := s.Grants.UpdateStatus(ctx, next); err != nil {
		return nil, err
	}
	return s.tokensFor(grant, scopes, following), nil
}
