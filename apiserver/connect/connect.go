// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connect connects a team's accounts: it sends a user to a platform's consent page, handles the redirect
// back, and stores the credentials. It writes tokens but never reads stored ones, and does not render HTML.
//
// The server does not keep state for a flow. The state is sealed in a cookie until the user comes back, and in the page
// where the user chooses one of several accounts. Both are bound to the session and the user, and expire after ten
// minutes. The platform receives a random state that names the cookie, so several flows can run in one browser. A flow
// can be completed only once, because the platform accepts a code only once.
package connect

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/credentials"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
)

const (
	// flowLife is a flow's TTL. It applies to the consent, and again to the choice of an account.
	flowLife = 10 * time.Minute
	// finishTimeout is the deadline for the platform calls and the writes after a user has returned. The work continues
	// if the browser disconnects, because the code has already been used, and ends before the server's own deadline for
	// responses (60 s).
	finishTimeout = 50 * time.Second

	purposeFlow   = "connect/flow"
	purposeChoice = "connect/choice"

	cookiePath = "/connect"
	cookieName = "herald-connect-"
)

// Sealer encrypts and authenticates values that a browser stores.
type Sealer interface {
	// Seal encrypts a value for a purpose.
	Seal(purpose string, v any, life time.Duration) string
	// Open decrypts a value that Seal returned for the same purpose into v. Any other or expired text is an error.
	Open(purpose, text string, v any) error
}

// ConnectionClient reads and writes the connections of every team.
type ConnectionClient interface {
	// List reads the cache.
	List(namespace string) []*v1alpha1.Connection
	// Live reads the Kubernetes API. The writes below apply to the connection with the UID of their argument; a
	// different connection with that name is an error.
	Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error)
	Create(ctx context.Context, connection *v1alpha1.Connection) (*v1alpha1.Connection, error)
	Annotate(ctx context.Context, of *v1alpha1.Connection, annotations map[string]string) error
	UseSecret(ctx context.Context, of *v1alpha1.Connection, secret string, annotations map[string]string) (*v1alpha1.Connection, error)
	// DeleteFor records the user who removes the connection. It returns a conflict if the connection has changed
	// since it was read.
	DeleteFor(ctx context.Context, of *v1alpha1.Connection, person string, now time.Time) error
}

// SecretCreator creates Secrets.
type SecretCreator interface {
	Create(ctx context.Context, secret *corev1.Secret) error
}

// Config configures a Service. Every field is required.
type Config struct {
	// SiteURL is Herald's public URL, without a trailing slash.
	SiteURL string
	// Platforms are the platforms of this process. Only those that implement Connector or HandleConnector and have an app,
	// ServerConnector or PasswordConnector can connect accounts.
	Platforms platforms.Registry
	// Apps are the installation's OAuth apps.
	Apps credentials.Apps
	// Servers are Herald's apps on the servers that users choose.
	Servers *ServerApps
	// Owner returns the team that owns a namespace, or nil if none does.
	Owner       func(namespace string) *v1alpha1.Team
	Connections ConnectionClient
	Secrets     SecretCreator
	Sealer      Sealer
	Clock       clock.PassiveClock
	Log         *slog.Logger
}

// Service connects accounts. It is safe for concurrent use. Its methods return a *bridge.Error if the user can
// correct the error.
type Service struct{ Config }

// New returns a Service.
func New(config Config) *Service { return &Service{config} }

// Visitor is the signed-in user who makes a request.
type Visitor struct {
	// Session is the session's unique id. It does not change when the session's cookie is renewed.
	Session string
	// Person is the Kubernetes user name.
	Person string
	// May returns an error if the user may not use a verb on a namespace's connections: Create to connect an account,
	// Patch to connect it again, Delete to disconnect it. Each step calls it, because permissions may be withdrawn
	// between steps.
	May func(ctx context.Context, namespace string, verb Verb) error
}

// Verb is an RBAC verb for Connections.
type Verb string

// The verbs that connecting and disconnecting need.
const (
	Create Verb = "create"
	Patch  Verb = "patch"
	Delete Verb = "delete"
)

type flow struct {
	State    string            `json:"state"`
	Session  string            `json:"session"`
	Person   string            `json:"person"`
	Space    string            `json:"namespace"`
	Platform v1alpha1.Platform `json:"platform"`
	// Reconnect is the name of the connection to renew; empty to connect any account.
	Reconnect string `json:"reconnect,omitempty"`
	// Verifier is empty for a server without PKCE.
	Verifier string `json:"verifier"`
	// Server and App are the account's server and Herald's app there, on a platform whose users choose the server.
	Server string              `json:"server,omitempty"`
	App    platforms.ServerApp `json:"app,omitzero"`
	// Begun is the platform's secret for a consent that was requested for a handle.
	Begun string `json:"begun,omitempty"`
}

// belongs reports whether this visitor started the flow.
func (f *flow) belongs(v Visitor) bool {
	return v.Session != "" && subtle.ConstantTimeCompare([]byte(f.Session), []byte(v.Session)) == 1 && f.Person == v.Person
}

// verb returns the permission that the flow needs. At the start it is unknown whether the account already has a
// connection.
func (f *flow) verb() Verb {
	if f.Reconnect != "" {
		return Patch
	}
	return Create
}

// Started is the result of Start.
type Started struct {
	// Platform is the platform whose consent page is shown.
	Platform v1alpha1.Platform
	// Address is the URL of the consent page.
	Address string
	// Cookie carries the flow. Set it before the redirect to Address.
	Cookie *http.Cookie
}

// Available returns the platforms whose accounts can be connected, sorted by name.
func (s *Service) Available() []v1alpha1.Platform {
	var names []v1alpha1.Platform
	for name, platform := range s.Platforms {
		if c, ok := platform.(platforms.Connector); ok {
			if _, err := c.ConsentURL(platforms.Consent{}); err == nil {
				names = append(names, name)
			}
		}
		if _, ok := platform.(platforms.PasswordConnector); ok || s.NeedsServer(name) || s.NeedsHandle(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Wanted describes the account that a user wants to connect.
type Wanted struct {
	Platform v1alpha1.Platform
	// Server is the account's server as the user typed it, if NeedsServer.
	Server string
	// Handle is the account's handle as the user typed it, if NeedsHandle.
	Handle string
	// Reconnect is the name of the connection to renew; empty to connect any account. Platform and Server are then the
	// connection's.
	Reconnect string
}

// Start starts a flow for a namespace.
func (s *Service) Start(ctx context.Context, v Visitor, namespace string, wanted Wanted) (Started, error) {
	f := flow{
		State: rand.Text(), Session: v.Session, Person: v.Person, Space: namespace, Platform: wanted.Platform, Reconnect: wanted.Reconnect,
		Verifier: rand.Text() + rand.Text(),
	}
	if err := v.May(ctx, namespace, f.verb()); err != nil {
		return Started{}, err
	}
	if f.Reconnect == "" {
		if err := s.requireRoom(namespace); err != nil {
			return Started{}, err
		}
	} else {
		existing, err := s.find(ctx, namespace, f.Reconnect)
		if err != nil {
			return Started{}, err
		}
		f.Platform, f.Server = existing.Spec.Platform, existing.Spec.Server
	}
	if err := s.register(ctx, &f, wanted.Server); err != nil {
		return Started{}, err
	}
	address, err := s.consentURL(ctx, &f, wanted.Handle)
	if err != nil {
		return Started{}, err
	}
	return Started{Platform: f.Platform, Address: address, Cookie: s.cookie(f.State, s.Sealer.Seal(purposeFlow, &f, flowLife), int(flowLife/time.Second))}, nil
}

// consentURL returns the address of a flow's consent page.
func (s *Service) consentURL(ctx context.Context, f *flow, handle string) (string, error) {
	consent := platforms.Consent{RedirectURI: s.redirect(f), State: f.State, Verifier: f.Verifier}
	if s.NeedsHandle(f.Platform) {
		return s.begin(ctx, f, handle, consent)
	}
	connector, err := s.connector(f)
	if err != nil {
		return "", err
	}
	address, err := connector.ConsentURL(consent)
	if err != nil {
		return "", s.explain(ctx, f, err)
	}
	return address, nil
}

// redirect returns the callback address. Each server has its own address. This exposes a server that forwards the user
// to another server in order to receive that server's code (RFC 9700, section 4.4.2.2).
func (s *Service) redirect(f *flow) string {
	address := s.SiteURL + cookiePath + "/" + string(f.Platform) + "/callback"
	if f.Server != "" {
		address += "/" + hostOf(f.Server)
	}
	return address
}

// hostOf returns the host and the port of a server's address, or "".
func hostOf(server string) string { return strings.TrimPrefix(server, "https://") }

// cookie returns a cookie that holds a sealed flow, with a lifetime in seconds; -1 removes the cookie.
func (s *Service) cookie(state, value string, seconds int) *http.Cookie {
	secure := strings.HasPrefix(s.SiteURL, "https://")
	name := cookieName + state
	if secure {
		name = "__Secure-" + name
	}
	// Lax: the platform's page redirects here from another site. Browsers reject a Secure cookie from a site served
	// over plain HTTP.
	return &http.Cookie{ //nolint:gosec // see above
		Name: name, Value: value, Path: cookiePath, MaxAge: seconds, Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

func (s *Service) connector(f *flow) (platforms.Connector, error) {
	switch platform := s.Platforms[f.Platform].(type) {
	case platforms.Connector:
		return platform, nil
	case platforms.ServerConnector:
		return platform.On(f.Server, f.App), nil
	default:
		return nil, notHere(f.Platform)
	}
}

func notHere(platform v1alpha1.Platform) error {
	return refusef(bridge.CodeNotFound, "accounts of %s cannot be connected here; the administrator has to configure the platform", platform.Title())
}

func (s *Service) find(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	found, err := s.Connections.Live(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, refusef(bridge.CodeNotFound, "this team has no connection %q; it may have been disconnected in the meantime", name)
	case err != nil:
		return nil, fmt.Errorf("read connection %q: %w", name, err)
	case found.DeletionTimestamp != nil:
		return nil, refusef(bridge.CodeConflict, "connection %q is being removed", name)
	}
	return found, nil
}

func (s *Service) requireRoom(namespace string) error {
	limit := plan.LimitsOf(s.Owner(namespace)).Accounts
	if limit == 0 {
		return nil
	}
	used := 0
	for _, c := range s.Connections.List(namespace) {
		if !c.Spec.Disabled && c.DeletionTimestamp.IsZero() {
			used++
		}
	}
	if used < limit {
		return nil
	}
	return refusef(bridge.CodeSubscriptionRequired, "the starter plan allows %d connected accounts, and %d are connected; "+
		"disconnect or disable one, or change the plan. An account that is connected already can be connected again by its own button", limit, used)
}

func refusef(code bridge.Code, format string, args ...any) *bridge.Error {
	return &bridge.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
