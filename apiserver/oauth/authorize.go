// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/session"
)

const (
	// purposeConsent and purposeCode are the sealing purposes of the consent page's form and of codes.
	purposeConsent = "oauth-consent"
	purposeCode    = "oauth-code"
	// maxState is the maximum length of a client's state, in bytes.
	maxState = 2048
	// challengeLength is the length of a SHA-256 in base64url (RFC 7636, section 4.2).
	challengeLength = 43
	// nameLength is the number of random characters, 5 bits each, after the prefix "agent-" in a grant's name.
	nameLength = 16
	// maxGrants limits a team's active grants, and maxGrantsOfPerson one person's active grants in a team. The latter
	// also limits how many ended grants are retained per person.
	maxGrants, maxGrantsOfPerson = 500, 50
)

// parameters are the request parameters that Read evaluates (RFC 6749, section 4.1.1; RFC 7636; RFC 9101).
var parameters = []string{
	"response_type", "response_mode", "scope", "state", "code_challenge", "code_challenge_method", "request", "request_uri",
}

// Request is a client's authorization request.
type Request struct {
	Client Client `json:"c"`
	// Redirect is the redirect URI.
	Redirect string `json:"r"`
	// Scopes are the requested scopes.
	Scopes    []bridge.Scope `json:"s"`
	State     string         `json:"t,omitempty"`
	Challenge string         `json:"h"`
}

// RedirectHost returns the host of the redirect URI, for display.
func (r *Request) RedirectHost() string { return hostOf(r.Redirect) }

// ToComputer reports whether the redirect goes to a program on the user's machine rather than to a website.
func (r *Request) ToComputer() bool {
	return !strings.HasPrefix(strings.ToLower(r.Redirect), secure+":")
}

// Application returns the URI that an application on the user's machine opens, without its query; empty for HTTP and
// HTTPS. One application may do different things for different URIs of its scheme.
func (r *Request) Application() string {
	u, err := url.Parse(r.Redirect)
	if err != nil || u.Scheme == secure || u.Scheme == unsecured {
		return ""
	}
	address, _, _ := strings.Cut(r.Redirect, "?")
	return address
}

// consent is the sealed content of the consent form: the request that was shown, and the session. The browser cannot
// change it between the page and the decision, and no other session can submit it.
type consent struct {
	Session   string  `json:"i"`
	Namespace string  `json:"n"`
	Request   Request `json:"q"`
}

// Read parses a client's authorization request. Until the client and its redirect URI are verified the error is a
// *PageError, so that Herald does not redirect to an unverified address; after that it is a *Refused.
func (s *Server) Read(ctx context.Context, query url.Values, who access.Person) (*Request, error) {
	const title = "Invalid request from the agent"
	for _, name := range []string{"client_id", "redirect_uri"} {
		if len(query[name]) > 1 {
			return nil, pageErrorf(title, "The address that brought you here has several of %s.", name)
		}
	}
	client, unknown := s.client(ctx, query.Get("client_id"), who)
	if unknown != nil {
		return nil, unknown
	}
	r := &Request{Client: *client, Redirect: query.Get("redirect_uri")}
	switch {
	case r.Redirect == "":
		return nil, pageErrorf(title, "The address that brought you here has no redirect URI (redirect_uri).")
	case !redirectMatches(client.Redirects, r.Redirect):
		return nil, pageErrorf(title, "It requests a redirect to an address that it has not registered, so it may be an impostor: “%s”", shorten(r.Redirect))
	}
	if wrong := s.fill(r, query); wrong != nil {
		return nil, s.refused(r, wrong)
	}
	return r, nil
}

func (s *Server) fill(r *Request, query url.Values) *problem {
	bad := func(code, format string, args ...any) *problem {
		return refusef(http.StatusBadRequest, code, format, args...)
	}
	if states := query["state"]; len(states) == 1 {
		if len(states[0]) > maxState {
			return bad(invalidRequest, "state is longer than %d characters", maxState)
		}
		r.State = states[0]
	}
	for name, values := range query {
		if len(values) > 1 && name != "resource" {
			if !slices.Contains(parameters, name) {
				name = "of another name" // the name is untrusted input that a page displays
			}
			return bad(invalidRequest, "the parameter %s is given more than once", name)
		}
	}
	r.Challenge, r.Scopes = query.Get("code_challenge"), requestedScopes(query.Get("scope"))
	switch method := query.Get("code_challenge_method"); {
	case query.Get("response_type") == "":
		return bad(invalidRequest, "response_type is missing; it must be %s", responseCode)
	case query.Get("response_type") != responseCode:
		return bad(unsupportedResponse, "response_type must be %s", responseCode)
	case query.Get("response_mode") != "" && query.Get("response_mode") != "query":
		return bad(invalidRequest, "response_mode must be query")
	case query.Has("request") || query.Has("request_uri"):
		return bad(invalidRequest, "request objects are not supported; send the parameters directly")
	case r.Challenge == "":
		return bad(invalidRequest, "code_challenge is missing: PKCE is required")
	case method != challengeS256:
		return bad(invalidRequest, "code_challenge_method must be %s", challengeS256)
	case !isChallenge(r.Challenge):
		return bad(invalidRequest, "code_challenge is not a SHA-256 in base64url without padding")
	case len(r.Scopes) == 0:
		return bad(invalidScope, "the supported scopes are %s", scopeText(scopesOffered))
	}
	for _, resource := range query["resource"] {
		if !s.isResource(resource) {
			return bad(invalidTarget, "the resource must be %s", s.Resource())
		}
	}
	return nil
}

func isChallenge(text string) bool {
	return len(text) == challengeLength && !strings.ContainsFunc(text, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_'
	})
}

func shorten(text string) string {
	const most = 200
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return text
}

// answer returns the redirect that carries a response. It always includes the issuer, so that a client of several
// servers can identify the sender (RFC 9207).
func (s *Server) answer(r *Request, answer url.Values) string {
	if r.State != "" {
		answer.Set("state", r.State)
	}
	answer.Set("iss", s.SiteURL)
	return answerTo(r.Redirect, answer)
}

func (s *Server) refused(r *Request, wrong *problem) *Refused {
	return &Refused{
		Location: s.answer(r, url.Values{"error": {wrong.code}, "error_description": {wrong.description}}), Host: r.RedirectHost(),
		AutoRedirect: r.isLoopback(), Client: &r.Client, problem: wrong,
	}
}

// isLoopback reports whether the redirect URI is on the user's machine. Any other URI comes unverified from a
// registration or a document: redirecting there automatically would make Herald an open redirector (RFC 9700, section
// 4.11.2).
func (r *Request) isLoopback() bool {
	to, err := url.Parse(r.Redirect)
	if err != nil {
		return false
	}
	return loopback(to)
}

// Offer returns the requested scopes that the user's permissions allow them to grant in a namespace.
func (s *Server) Offer(ctx context.Context, r *Request, who access.Person, namespace string) ([]bridge.Scope, error) {
	return s.within(ctx, who, namespace, r.Scopes)
}

// Seal returns the consent form's sealed content.
func (s *Server) Seal(r *Request, of session.Session, namespace string) string {
	return s.Keys.Seal(purposeConsent, consent{of.ID, namespace, *r}, consentLife)
}

// Decision is a user's decision on the consent page.
type Decision struct {
	// Sealed is the form's sealed content.
	Sealed string
	Allow  bool
	// Most is the highest allowed scope.
	Most bridge.Scope
}

// Decide applies a user's decision and returns the address to redirect to. The error is a *PageError, or an error
// from the Kubernetes API.
func (s *Server) Decide(ctx context.Context, of session.Session, d Decision) (location string, err error) {
	var c consent
	if s.Keys.Open(purposeConsent, d.Sealed, &c) != nil || c.Session != of.ID {
		return "", pageErrorf("Access was not granted",
			"The page was open for more than ten minutes, or belongs to another sign-in. Start again in the agent.")
	}
	r := &c.Request
	if !d.Allow {
		s.Log.InfoContext(ctx, "A person refused an agent", "person", of.Person.Name, "client", r.Client.key())
		return s.refused(r, refusef(http.StatusForbidden, accessDenied, "the person refused")).Location, nil
	}
	offered, err := s.Offer(ctx, r, of.Person, c.Namespace)
	if err != nil {
		return "", err
	}
	scopes := both(requestedScopes(string(d.Most)), offered)
	if d.Most == "" || len(scopes) == 0 || scopes[len(scopes)-1] != d.Most || !s.Served(c.Namespace) {
		return "", &PageError{http.StatusForbidden, "Access was not granted", "You are not, or no longer, allowed to grant this in that team. Start again in the agent."}
	}
	grant, err := s.allow(ctx, of.Person, &c, scopes)
	if err != nil {
		return "", err
	}
	code := s.Keys.Seal(purposeCode, codeContent{
		grantRef: refOf(grant), Client: r.Client.key(), Redirect: r.Redirect, Challenge: r.Challenge,
	}, codeLife)
	return s.answer(r, url.Values{"code": {code}}), nil
}

// allow stores a grant, before the code, so that deleting the grant also invalidates the code.
func (s *Server) allow(ctx context.Context, who access.Person, c *consent, scopes []bridge.Scope) (*v1alpha1.OAuthGrant, error) {
	if err := s.enforceGrantLimits(ctx, who, c.Namespace); err != nil {
		return nil, err
	}
	client := &c.Request.Client
	grant := &v1alpha1.OAuthGrant{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: "agent-" + strings.ToLower(rand.Text()[:nameLength]),
			Labels: map[string]string{v1alpha1.OriginLabel: v1alpha1.OriginWeb}, Annotations: map[string]string{v1alpha1.AuthorAnnotation: who.Name},
		},
		Spec: v1alpha1.OAuthGrantSpec{
			Client: v1alpha1.OAuthGrantClient{
				ID: client.key(), Name: client.Name, URI: client.URI, RedirectHost: c.Request.RedirectHost(), Verified: client.Verified,
			},
			Person:   v1alpha1.OAuthGrantPerson{Name: who.Name, Groups: who.Groups, DisplayName: who.DisplayName},
			Resource: s.Resource(), ExpiresAt: v1alpha1.NewTime(s.Clock.Now().Add(absoluteLife)),
		},
	}
	for _, scope := range scopes {
		grant.Spec.Scopes = append(grant.Spec.Scopes, v1alpha1.OAuthScope(scope))
	}
	created, err := s.Grants.Create(ctx, grant)
	if refused := bridge.Bounded(nil, err); refused != nil {
		return nil, &PageError{http.StatusForbidden, "The team has too many agents", refused.Message}
	}
	if err != nil {
		return nil, fmt.Errorf("store the grant: %w", err)
	}
	s.AuditLog.Acted(ctx, bridge.Caller{Namespace: c.Namespace, Author: who.Name}, bridge.ActAgentAllowed, created)
	return created, nil
}

// enforceGrantLimits returns an error if the team or the user has too many active grants. It also removes the person's
// oldest ended grants, because repeatedly allowing and revoking would otherwise fill the cluster.
func (s *Server) enforceGrantLimits(ctx context.Context, who access.Person, namespace string) error {
	all, own := 0, 0
	var over []*v1alpha1.OAuthGrant
	for _, grant := range s.Grants.List(namespace) {
		mine := grant.Spec.Person.Name == who.Name
		switch {
		case s.endReason(grant) == "":
			all++
			if mine {
				own++
			}
		case mine:
			over = append(over, grant)
		}
	}
	if own >= maxGrantsOfPerson {
		return &PageError{http.StatusConflict, "You have allowed too many agents", fmt.Sprintf(
			"You have allowed %d in this team. Revoke some on the Agents page, then start again in the agent. "+
				"Agents that never completed the authorization are not listed there; their grants are removed within half an hour.", own)}
	}
	if all >= maxGrants {
		return &PageError{http.StatusConflict, "The team has too many agents", fmt.Sprintf(
			"It has %d. Revoke unused ones on the Agents page, then start again in the agent.", all)}
	}
	slices.SortFunc(over, func(a, b *v1alpha1.OAuthGrant) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	for len(over) >= maxGrantsOfPerson {
		if err := s.remove(ctx, over[0]); err != nil {
			return fmt.Errorf("remove an ended grant: %w", err)
		}
		over = over[1:]
	}
	return nil
}
