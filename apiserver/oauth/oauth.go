// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package oauth is the OAuth 2.1 authorization server for agents that speak MCP: public clients with PKCE, a consent per team, and
// tokens that are good at the MCP server alone. The consent pages are those of package web; what is decided about them is decided
// here. docs/adr/0012-oauth-for-agents.md lists the threats, and the test of each.
package oauth

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/anonymous"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/person"
	"github.com/herald-social/herald/apiserver/ratelimit"
)

// Paths below the site's address.
const (
	AuthorizePath = "/oauth/authorize"
	TokenPath     = "/oauth/token"
	RegisterPath  = "/oauth/register"
	RevokePath    = "/oauth/revoke"
	// MCPPath is where the resource is that tokens are good for.
	MCPPath = "/mcp"
	// ServerMetadataPath and ResourceMetadataPath are those of RFC 8414 and RFC 9728; each is served with MCPPath behind it as well.
	ServerMetadataPath   = "/.well-known/oauth-authorization-server"
	ResourceMetadataPath = "/.well-known/oauth-protected-resource"
)

// TokenPrefix begins every access token, and refreshPrefix every refresh token.
const (
	TokenPrefix   = "hoa_"
	refreshPrefix = "hor_"
)

// Lives of what is handed out.
const (
	codeLife = time.Minute
	// accessLife is short, since clients refresh by themselves.
	accessLife = time.Hour
	// idleLife is how long a grant lives without a refresh, and absoluteLife however often it is used.
	idleLife     = 30 * 24 * time.Hour
	absoluteLife = 180 * 24 * time.Hour
	// consentLife is how long a person may look at the consent page.
	consentLife = 10 * time.Minute
	// grace is how long the refresh token before the present one is taken, from the same client: the answer may have been lost.
	grace = 10 * time.Second
)

// Keys seal and sign what clients and browsers keep; session.Manager does.
type Keys interface {
	// Ready returns nil when there are keys.
	Ready() error
	Seal(purpose string, v any, life time.Duration) string
	Open(purpose, text string, v any) error
	// Sign is an HMAC by a key that is not replaced; nil without it.
	Sign(purpose, text string) []byte
}

// GrantCache answers from memory what people have allowed.
type GrantCache interface {
	// Get returns nil for what is not there; List of "" are the grants of all namespaces.
	Get(namespace, name string) *v1alpha1.OAuthGrant
	List(namespace string) []*v1alpha1.OAuthGrant
	// HasSynced reports whether memory has all that there was at the start.
	HasSynced() bool
}

// Grants reads and writes what people have allowed.
type Grants interface {
	GrantCache
	// Live and ListLive ask the Kubernetes API.
	ListLive(ctx context.Context, namespace string) ([]v1alpha1.OAuthGrant, error)
	Live(ctx context.Context, namespace, name string) (*v1alpha1.OAuthGrant, error)
	Create(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error)
	// Update and UpdateStatus are conflicts if the grant was written since it was read; so is Delete.
	Update(ctx context.Context, before, after *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error)
	UpdateStatus(ctx context.Context, grant *v1alpha1.OAuthGrant) (*v1alpha1.OAuthGrant, error)
	Delete(ctx context.Context, grant *v1alpha1.OAuthGrant) error
}

// Access tells what a person may do in a team's namespace, by Kubernetes' roles.
type Access interface {
	May(ctx context.Context, who person.Person, namespace, verb, resource string, name ...string) (bool, error)
}

// AuditLog notes what was done.
type AuditLog interface {
	Acted(ctx context.Context, caller bridge.Caller, act bridge.Act, object metav1.Object)
	Guarded(ctx context.Context, object metav1.Object, reason, note string)
}

// Config is what a Server is made of. Every field is required but where it says otherwise.
type Config struct {
	// SiteURL is the issuer, without a slash at its end.
	SiteURL  string
	Keys     Keys
	Grants   Grants
	Access   Access
	AuditLog AuditLog
	// Served reports whether a team that this installation serves owns a namespace.
	Served func(namespace string) bool
	// Used is called with the grant of every call that is let in.
	Used func(*v1alpha1.OAuthGrant)
	// Proxied says that the way out is a proxy. Metadata documents of clients are not fetched through one, which would connect
	// past the check of the address: clients are told to register themselves.
	Proxied bool
	// LoopbackClients lets metadata documents of clients be fetched from this machine, also by plain HTTP. It is for trials.
	LoopbackClients bool
	// Anonymous counts what is asked without a code or a token that was made here; nil counts nothing.
	Anonymous *anonymous.Guard
	// Roots are the authorities to trust when such documents are fetched; nil for those of the system.
	Roots *x509.CertPool
	Clock clock.Clock
	Log   *slog.Logger
}

// Server is the authorization server. It is safe for concurrent use.
type Server struct {
	Config

	documents *documents
	// registrations, failures and fetches count by address, by address and by person; reads by what a grant is read for, and which.
	registrations, failures, fetches, reads *ratelimit.Limiter
	handlers                                map[string]http.Handler
}

// Requests in a minute. Many clients may stand behind one address, such as that of a company's proxy, and a stranger among them must
// not take their turns. So of requests for tokens only those with codes and tokens that were never made here are counted. A
// registration stores nothing and costs one HMAC: 100 a second from one address are more than all who work there make, and far less
// than a core can answer.
const (
	maxRegistrations = 6000
	maxFailures      = 300
	maxFetches       = 30
	// maxReads is for one grant and one purpose. A client refreshes once an hour; one that runs in many places, now and then at once.
	maxReads = 30
)

// New returns a Server.
func New(config Config) *Server {
	s := &Server{
		Config: config, documents: newDocuments(&config),
		registrations: ratelimit.New(maxRegistrations, config.Clock), failures: ratelimit.New(maxFailures, config.Clock),
		fetches: ratelimit.New(maxFetches, config.Clock), reads: ratelimit.New(maxReads, config.Clock),
	}
	s.handlers = s.routes()
	return s
}

// Handler returns what serves a path that needs no session; nil if none does. The paths of people are served by package web.
func (s *Server) Handler(path string) http.Handler {
	if s == nil {
		return nil
	}
	return s.handlers[path]
}

// Resource is the address of the MCP server.
func (s *Server) Resource() string { return s.SiteURL + MCPPath }

// ResourceMetadataURL is what a 401 of the MCP server names (RFC 9728, section 5.1).
func (s *Server) ResourceMetadataURL() string { return s.SiteURL + ResourceMetadataPath + MCPPath }

// isResource reports whether a resource indicator means the MCP server; a slash at the end is tolerated.
func (s *Server) isResource(address string) bool {
	return address == s.Resource() || address == s.Resource()+"/"
}
