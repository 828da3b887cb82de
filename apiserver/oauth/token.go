// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"math"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
)

const (
	purposeAccess = "oauth-access"
	// maxTokenForm is the maximum size of a form, in bytes.
	maxTokenForm = 16 << 10
	// tries limits the attempts at a write that ends in a conflict.
	tries = 5
	// minVerifier and maxVerifier limit the length of a code_verifier (RFC 7636, section 4.1).
	minVerifier, maxVerifier = 43, 128
)

// grantRef identifies a grant by name and UID, so a later grant with the same name does not match.
type grantRef struct {
	Namespace string    `json:"n"`
	Name      string    `json:"g"`
	UID       types.UID `json:"u"`
}

func refOf(grant *v1alpha1.OAuthGrant) grantRef {
	return grantRef{grant.Namespace, grant.Name, grant.UID}
}

type codeContent struct {
	grantRef

	Client    string `json:"c"`
	Redirect  string `json:"r"`
	Challenge string `json:"h"`
}

type accessContent struct {
	grantRef

	Scopes   []bridge.Scope `json:"s"`
	Audience string         `json:"a"`
	// IssuedAt is in milliseconds since 1970.
	IssuedAt int64 `json:"i"`
}

// tokens is the response defined in RFC 6749, section 5.1.
type tokens struct {
	Access    string `json:"access_token"`
	Type      string `json:"token_type"`
	ExpiresIn int    `json:"expires_in"`
	Refresh   string `json:"refresh_token"`
	Scope     string `json:"scope"`
}

// token serves the token endpoint: it redeems a code or refreshes.
func (s *Server) token(w http.ResponseWriter, r *http.Request) {
	made, err := s.issue(w, r)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	writeJSON(w, http.StatusOK, made)
}

func (s *Server) issue(w http.ResponseWriter, r *http.Request) (*tokens, error) {
	form, wrong := readForm(w, r)
	if wrong != nil {
		return nil, wrong
	}
	if err := s.Keys.Ready(); err != nil {
		request.From(r.Context()).Err = err
		return nil, errNoKeys
	}
	if form.Get("client_id") == "" {
		if r.Header.Get("Authorization") != "" { // RFC 6749, section 5.2
			w.Header().Set("WWW-Authenticate", `Basic realm="Herald"`)
		}
		return nil, refusef(http.StatusUnauthorized, invalidClient, "send the client_id in the form; clients have no secret")
	}
	for _, resource := range form["resource"] {
		if !s.isResource(resource) {
			return nil, refusef(http.StatusBadRequest, invalidTarget, "the resource must be %s", s.Resource())
		}
	}
	switch form.Get("grant_type") {
	case authorizationCode:
		return s.redeem(r.Context(), form)
	case refreshToken:
		return s.refresh(r.Context(), form)
	case "":
		return nil, refusef(http.StatusBadRequest, invalidRequest, "grant_type is missing")
	default:
		return nil, refusef(http.StatusBadRequest, unsupportedGrant, "grant_type must be %s or %s", authorizationCode, refreshToken)
	}
}

func readForm(w http.ResponseWriter, r *http.Request) (url.Values, *problem) {
	if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, refusef(http.StatusBadRequest, invalidRequest, "send the parameters as application/x-www-form-urlencoded")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxTokenForm)
	if err := r.ParseForm(); err != nil {
		return nil, refusef(http.StatusBadRequest, invalidRequest, "the form could not be read, or is longer than %d bytes", maxTokenForm)
	}
	for name, values := range r.PostForm {
		if len(values) > 1 && name != "resource" {
			return nil, refusef(http.StatusBadRequest, invalidRequest, "the parameter %s is given more than once", shorten(name))
		}
	}
	return r.PostForm, nil
}

// fail writes an error response. An address that sends many forged codes and tokens gets 429, which does not affect
// real clients. All other errors remain specific: a client at the same address must learn that it needs to authorize
// again.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var known *problem
	switch {
	case !errors.As(err, &known):
		request.From(r.Context()).Err = err
		known = refusef(http.StatusServiceUnavailable, temporarily, "the grant could not be read or written; try again")
	case known.forged:
		if allowed, wait := s.failures.Allow(request.Address(r), http.Header{}); !allowed {
			w.Header().Set("Connection", "close")
			known = tooManyf(wait, "too many requests from this address have failed")
		}
	case known.status < http.StatusInternalServerError:
		if wrong := s.stranger(r, limits.SurfaceOAuth); wrong != nil {
			known = wrong
		}
	}
	known.write(w)
}

// stranger counts a request without genuine codes or tokens, and returns a problem above the limit.
func (s *Server) stranger(r *http.Request, door limits.Surface) *problem {
	if request.From(r.Context()).Authenticated {
		return nil
	}
	allowed, wait := s.Anonymous.Allow(r, door)
	if allowed {
		return nil
	}
	return tooManyf(wait, "too many requests from this address")
}

func badGrant(format string, args ...any) *problem {
	return refusef(http.StatusBadRequest, invalidGrant, format, args...)
}

func forgedGrant(format string, args ...any) *problem {
	wrong := badGrant(format, args...)
	wrong.forged = true
	return wrong
}

func tooManyf(wait time.Duration, format string, args ...any) *problem {
	wait = max(wait, time.Second)
	wrong := refusef(http.StatusTooManyRequests, temporarily, format+"; try again in %.0f seconds", append(args, math.Ceil(wait.Seconds()))...)
	wrong.retry = wait
	return wrong
}

// Purposes of the reads and writes that a grant's tokens cause. Each has its own limit, so that the holder of one token
// cannot block the others: the client must be able to revoke, and the reuse of a replaced token must be detected.
const (
	toRedeem  = "redeem"
	toRefresh = "refresh"
	toReplay  = "replay"
	toRevoke  = "revoke"
	toCall    = "call"
)

// admit limits the reads and writes that one grant's tokens cause. Call it only for genuine tokens, so that forged ones
// do not use up a client's limit. From then on the request counts as authenticated.
func (s *Server) admit(ctx context.Context, purpose string, ref grantRef) *problem {
	request.From(ctx).MarkAuthenticated()
	allowed, wait := s.reads.Allow(purpose+" "+ref.Namespace+"/"+ref.Name, http.Header{})
	if allowed {
		return nil
	}
	return tooManyf(wait, "the tokens of this grant are used too often; at most %d requests per minute are allowed", maxReads)
}

// redeem exchanges a code, once: the grant's resourceVersion lets only one concurrent request succeed.
func (s *Server) redeem(ctx context.Context, form url.Values) (*tokens, error) {
	var code codeContent
	verifier := form.Get("code_verifier")
	switch err := s.Keys.Open(purposeCode, form.Get("code"), &code); {
	case err != nil:
		return nil, forgedGrant("the code was not issued by this server, or is older than %s", codeLife)
	case code.Client != keyOfClient(form.Get("client_id")):
		return nil, badGrant("the code was issued to another client")
	case form.Has("redirect_uri") && code.Redirect != form.Get("redirect_uri"): // OAuth 2.1 omits the parameter: PKCE binds the code
		return nil, badGrant("the redirect_uri differs from the one in the authorization request")
	case !proves(verifier, code.Challenge):
		return nil, badGrant("the code_verifier does not match the code_challenge")
	}
	if wrong := s.admit(ctx, toRedeem, code.grantRef); wrong != nil {
		return nil, wrong
	}
	for range tries {
		grant, err := s.live(ctx, code.grantRef)
		if err != nil {
			return nil, err
		}
		switch {
		case grant.Status.RedeemedAt != nil && !grant.Revoked():
			// Two parties have the code and its verifier. It is unknown which of them is the client, so both lose
			// access.
			if err := s.revokeCompromised(ctx, grant, v1alpha1.GrantReplay, "An authorization code was used a second time; the agent's grant is revoked"); err != nil {
				return nil, err
			}
			return nil, badGrant("the code was already used; its grant is revoked")
		case s.endReason(grant) != "":
			return nil, badGrant("the grant %s", s.endReason(grant))
		}
		next := grant.DeepCopy()
		now := v1alpha1.NewTime(s.Clock.Now())
		first := s.firstRefresh(grant)
		if first == "" {
			return nil, errNoKeys
		}
		next.Status.RedeemedAt = &now
		next.Status.Refresh = &v1alpha1.OAuthGrantRefresh{Generation: 1, SHA256: hashOf(first), RotatedAt: now}
		if _, err := s.Grants.UpdateStatus(ctx, next); apierrors.IsConflict(err) {
			continue
		} else if err != nil {
			return nil, err
		}
		return s.tokensFor(grant, scopesOf(grant), first), nil
	}
	return nil, errOvertaken
}

var errNoKeys = refusef(http.StatusServiceUnavailable, temporarily, "there are no keys yet; try again in a minute")

// startingFor is the Retry-After from a replica whose cache of grants has not synced.
const startingFor = 5 * time.Second

// errStarting is the error for a token that only its grant can verify, while the cache of grants has not synced.
var errStarting = &problem{
	status: http.StatusServiceUnavailable, code: temporarily, description: "this server is starting; try again in a few seconds", retry: startingFor,
}

var errOvertaken = errors.New("the grant keeps changing")

// proves reports whether a verifier matches a challenge (RFC 7636, section 4.6).
func proves(verifier, challenge string) bool {
	if len(verifier) < minVerifier || len(verifier) > maxVerifier {
		return false
	}
	sum := sha256.Sum256([]byte(verifier))
	return subtle.ConstantTimeCompare([]byte(base64.RawURLEncoding.EncodeToString(sum[:])), []byte(challenge)) == 1
}

func (s *Server) live(ctx context.Context, ref grantRef) (*v1alpha1.OAuthGrant, error) {
	grant, err := s.Grants.Live(ctx, ref.Namespace, ref.Name)
	switch {
	case apierrors.IsNotFound(err), err == nil && ref.UID != "" && grant.UID != ref.UID:
		return nil, badGrant("the grant was revoked")
	case err != nil:
		return nil, err
	}
	return grant, nil
}

func (s *Server) endReason(grant *v1alpha1.OAuthGrant) string {
	now := s.Clock.Now()
	switch refresh := grant.Status.Refresh; {
	case grant.Revoked():
		return "was revoked"
	case !now.Before(grant.Spec.ExpiresAt.Time):
		return "has expired"
	case refresh != nil && now.Sub(refresh.RotatedAt.Time) > idleLife:
		return "was not used for too long"
	case !s.isResource(grant.Spec.Resource):
		return "is for another address of this server"
	case !s.Served(grant.Namespace):
		return "belongs to a team that is not served here"
	default:
		return ""
	}
}

// revokeCompromised revokes a grant whose code or tokens may have been stolen, or that its agent has ended.
func (s *Server) revokeCompromised(ctx context.Context, grant *v1alpha1.OAuthGrant, reason, note string) error {
	ctx = context.WithoutCancel(ctx)
	for range tries {
		next := grant.DeepCopy()
		now := v1alpha1.NewTime(s.Clock.Now())
		next.Status.RevokedAt, next.Status.RevokedReason = &now, reason
		written, err := s.Grants.UpdateStatus(ctx, next)
		switch {
		case err == nil:
			s.AuditLog.Guarded(ctx, written, reason, note)
			return nil
		case apierrors.IsNotFound(err):
			return nil
		case !apierrors.IsConflict(err):
			return err
		}
		if grant, err = s.Grants.Live(ctx, grant.Namespace, grant.Name); apierrors.IsNotFound(err) {
			return nil
		} else if err != nil {
			return err
		}
		if grant.Revoked() {
			return nil
		}
	}
	return errOvertaken
}

func (s *Server) tokensFor(grant *v1alpha1.OAuthGrant, scopes []bridge.Scope, refresh string) *tokens {
	access := s.Keys.Seal(purposeAccess, accessContent{
		grantRef: refOf(grant), Scopes: scopes, Audience: s.Resource(), IssuedAt: s.Clock.Now().UnixMilli(),
	}, accessLife)
	return &tokens{
		Access: TokenPrefix + access, Type: "Bearer", ExpiresIn: int(accessLife.Seconds()), Refresh: refresh, Scope: scopeText(scopes),
	}
}

// narrowed returns a refresh's scopes: the scopes of the grant, or a requested subset.
func narrowed(grant *v1alpha1.OAuthGrant, asked string) ([]bridge.Scope, *problem) {
	all := scopesOf(grant)
	if asked == "" {
		return all, nil
	}
	scopes := requestedScopes(asked)
	if len(scopes) == 0 || slices.ContainsFunc(scopes, func(scope bridge.Scope) bool { return !slices.Contains(all, scope) }) {
		return nil, refusef(http.StatusBadRequest, invalidScope, "the grant has the scopes %s", scopeText(all))
	}
	return scopes, nil
}
