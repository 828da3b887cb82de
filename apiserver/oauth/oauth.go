// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauth is the OAuth 2.1 authorization server for agents that use MCP: public clients with PKCE, a consent per
// team, and tokens that are valid only at the MCP server. Package web renders the consent pages; this package makes
// their decisions. docs/oauth-threats.md lists the threats and the test for each.
package oauth

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
)

// Paths below the site's address.
const (
	AuthorizePath = "/oauth/authorize"
	TokenPath     = "/oauth/token"
	RegisterPath  = "/oauth/register"
	RevokePath    = "/oauth/revoke"
	// MCPPath is the path of the resource that the tokens are valid for.
	MCPPath = "/mcp"
	// MCPPathV2 is the path of the resource's second version, for which the same tokens are valid.
	MCPPathV2 = "/mcp/v2"
	// ServerMetadataPath and ResourceMetadataPath are defined by RFC 8414 and RFC 9728; each is also served with
	// MCPPath appended.
	ServerMetadataPath   = "/.well-known/oauth-authorization-server"
	ResourceMetadataPath = "/.well-known/oauth-protected-resource"
)

// TokenPrefix is the prefix of access tokens, and refreshPrefix that of refresh tokens.
const (
	TokenPrefix   = "hoa_"
	refreshPrefix = "hor_"
)

// Lifetimes of codes, tokens and grants.
const (
	codeLife = time.Minute
	// accessLife is the lifetime of an access token. It can be short: clients refresh their tokens automatically.
	accessLife = time.Hour
	// idleLife is how long a grant lasts without a refresh, and absoluteLife the longest that it can last.
	idleLife     = 30 * 24 * time.Hour
	absoluteLife = 180 * 24 * time.Hour
	// consentLife is the TTL of the consent page's form.
	consentLife = 10 * time.Minute
	// grace is how long the previous refresh token remains valid for the same client after a rotation. The client needs
	// it if the response was lost.
	grace = 10 * time.Second
)

// Keys seals and signs values that clients and browsers store. session.Manager implements it.
type Keys interface {
	// Ready returns nil once keys are loaded.
	Ready() error
	Seal(purpose string, v any, life time.Duration) string
	Open(purpose, text string, v any) error
	// Sign returns an HMAC under a key that is never rotated, or nil if there is no key.
	Sign(purpose, text string) []byte
}

// GrantCache reads grants from the cache.
type GrantCache interface {
	// Get returns nil if there is no such grant. List with "" returns the grants in all namespaces.
	Get(namespace, name string) *v1alpha1.OAuthGrant
	List(namespace string) []*v1alpha1.OAuthGrant
	// HasSynced reports whether the cache has completed its first list.
	HasSynced() bool
}

// Grants reads and writes grants.
type Grants interface {
	GrantCache
	// Live and ListLive read the Kubernetes API.
	ListLive(ctx context.Context, namespace string) ([]v1alpha1.OAuthGrant, error)
	Live(ctx context.Context, namespace, name string) (*v1alpha1.OAuthGrant, error)
	Create(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error)
	// Update, UpdateStatus and Delete return a conflict if the grant has changed since it was read.
	Update(ctx context.Context, before, after *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error)
	UpdateStatus(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error)
	Delete(ctx context.Context, grant *v1alpha1.OAuthGrant) error
}

// Access checks a user's RBAC permissions in a team's namespace.
type Access interface {
	May(ctx context.Context, who access.Person, namespace, verb, resource string, name ...string) (bool, error)
}

// AuditLog records actions.
type AuditLog interface {
	Acted(ctx context.Context, caller bridge.Caller, act bridge.Act, object metav1.Object)
	Guarded(ctx context.Context, object metav1.Object, reason, note string)
}

// Config configures a Server. Every field is required unless it is documented as optional.
type Config struct {
	// SiteURL is the issuer, without a trailing slash.
	SiteURL  string
	Keys     Keys
	Grants   Grants
	Access   Access
	AuditLog AuditLog
	// Served reports whether a namespace belongs to a team of this installation.
	Served func(namespace string) bool
	// Used is called with the grant behind every accepted call.
	Used func(*v1alpha1.OAuthGrant)
	// Proxied reports that outgoing connections use a proxy. The server then does not fetch metadata documents, because
	// a proxy would bypass the address check, and clients have to register themselves.
	Proxied bool
	// LoopbackClients allows metadata documents from this machine, even over plain HTTP. It is meant for trials.
	LoopbackClients bool
	// Anonymous limits requests without one of this installation's codes or tokens; nil disables the limit.
	Anonymous *limits.AnonymousGuard
	// Roots are the trusted CAs for metadata documents; nil uses the system roots.
	Roots *x509.CertPool
	Clock clock.Clock
	Log   *slog.Logger
}

// Server is the authorization server. It is safe for concurrent use.
type Server struct {
	Config

	documents *documents
	// registrations and failures are keyed by client address, fetches by person, and reads by purpose and grant.
	registrations, failures, fetches, reads *limits.RateLimiter
	handlers                                map[string]http.Handler
}

// Requests per minute. Many clients may share one address, such as a company's proxy, and an attacker among them must
// not use up their limit. Therefore only token requests with forged codes and tokens count. A registration is not
// stored and costs one HMAC: 100 per second from one address is more than an entire company's staff makes, and far less
// than one core can handle.
const (
	maxRegistrations = 6000
	maxFailures      = 300
	maxFetches       = 30
	// maxReads applies per grant and purpose. A client refreshes once an hour; one that runs in many places may send
	// several requests at once.
	maxReads = 30
)

// New returns a Server.
func New(config Config) *Server {
	s := &Server{
		Config: config, documents: newDocuments(&config),
		registrations: limits.NewRateLimiter(maxRegistrations, config.Clock), failures: limits.NewRateLimiter(maxFailures, config.Clock),
		fetches: limits.NewRateLimiter(maxFetches, config.Clock), reads: limits.NewRateLimiter(maxReads, config.Clock),
	}
	s.handlers = s.routes()
	return s
}

// Handler returns the handler for a path that does not need a session, or nil if there is none. Package web serves the
// HTML pages.
func (s *Server) Handler(path string) http.Handler {
	if s == nil {
		return nil
	}
	return s.handlers[path]
}

// Resource returns the MCP server's address.
func (s *Server) Resource() string { return s.SiteURL + MCPPath }

// ResourceMetadataURL returns the address that a 401 from the MCP server at a path names (RFC 9728, section 5.1).
func (s *Server) ResourceMetadataURL(path string) string {
	return s.SiteURL + ResourceMetadataPath + path
}

// isResource reports whether a resource indicator refers to the MCP server, of either version, with or without a
// trailing slash. A token is valid for both versions, which require the same permissions.
func (s *Server) isResource(address string) bool {
	address = strings.TrimSuffix(address, "/")
	return address == s.Resource() || address == s.SiteURL+MCPPathV2
}
