// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package connect connects a team's accounts: it sends a person to a platform's page
// of consent, takes them back, and stores what they agreed to. It writes tokens and
// reads none, and knows no HTML.
//
// Nothing of a flow is kept by the server. What has to come back unchanged is sealed:
// in a cookie until the person comes back, and in the page on which they choose one
// of several accounts. Both are bound to the session and the person, and last ten
// minutes. The platform sees a random state, which names the cookie; so several flows
// can be under way in one browser. That a flow ends once is the platform's doing: it
// takes a code once.
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
	"github.com/herald-social/herald/internal/appid"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting/plan"
)

const (
	// flowLife is how long a person may take to agree, and then to choose.
	flowLife = 10 * time.Minute
	// finishWithin bounds what happens when a person has come back: the calls to the
	// platform and the writes. It goes on when the browser has left, because the code
	// is spent, and ends before the server's own bound on answers (60 s).
	finishWithin = 50 * time.Second

	// The purposes of what is sealed.
	purposeFlow   = "connect/flow"
	purposeChoice = "connect/choice"

	// cookiePath is where the cookies of flows are sent to, and cookieName begins
	// their names.
	cookiePath = "/connect"
	cookieName = "herald-connect-"
)

// Sealer encrypts what travels with a person's browser, so that it can be neither
// read nor changed there.
type Sealer interface {
	// Seal encrypts a value for a purpose.
	Seal(purpose string, v any, life time.Duration) string
	// Open decrypts what Seal made for the same purpose into v; an error if it is
	// anything else, or its life is over.
	Open(purpose, text string, v any) error
}

// ConnectionClient are those of every team.
type ConnectionClient interface {
	// List answers from memory.
	List(namespace string) []*v1alpha1.Connection
	// Live asks the Kubernetes API. The writes below hold for the connection with
	// the UID of the one given; another one of its name is an error.
	Live(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error)
	Create(ctx context.Context, connection *v1alpha1.Connection) (*v1alpha1.Connection, error)
	Annotate(ctx context.Context, of *v1alpha1.Connection, annotations map[string]string) error
	UseSecret(ctx context.Context, of *v1alpha1.Connection, secret string, annotations map[string]string) (*v1alpha1.Connection, error)
	// DeleteFor notes which person has it removed, and removes it only if it is as it was
	// read; otherwise the error is a conflict.
	DeleteFor(ctx context.Context, of *v1alpha1.Connection, person string, now time.Time) error
}

// SecretCreator makes Secrets.
type SecretCreator interface {
	Create(ctx context.Context, secret *corev1.Secret) error
}

// Config is what a Service is made of. Every field is required.
type Config struct {
	// SiteURL is where people find Herald, without a slash at the end.
	SiteURL string
	// Platforms are those of this process. Accounts of those that are Connectors, and
	// have an app, can be connected.
	Platforms platforms.Registry
	// Apps are the installation's apps, by whose OAuth the accounts are connected.
	Apps appid.Apps
	// Owner finds the team that owns a namespace; nil if none does.
	Owner       func(namespace string) *v1alpha1.Team
	Connections ConnectionClient
	Secrets     SecretCreator
	Sealer      Sealer
	Clock       clock.PassiveClock
	Log         *slog.Logger
}

// Service connects accounts. Its methods may be called from many goroutines at once.
// Their errors are *bridge.Error where the person can do something about it.
type Service struct{ Config }

// New returns a Service.
func New(config Config) *Service { return &Service{config} }

// Visitor is the person in front of the browser.
type Visitor struct {
	// Session identifies their session, and nothing else does. It stays the same while
	// the session lasts, however often its cookie is made anew.
	Session string
	// Person is their name, as Kubernetes knows it.
	Person string
	// May refuses the person if they may not do something to connections of a
	// namespace: Create to connect an account, Patch to connect one again, Delete to
	// disconnect it. It is asked at each step: rights may be withdrawn meanwhile.
	May func(ctx context.Context, namespace string, verb Verb) error
}

// Verb is one of Kubernetes' RBAC, of Connections.
type Verb string

// The verbs that a person needs.
const (
	Create Verb = "create"
	Patch  Verb = "patch"
	Delete Verb = "delete"
)

// flow is what has to come back with the person.
type flow struct {
	State    string            `json:"state"`
	Session  string            `json:"session"`
	Person   string            `json:"person"`
	Space    string            `json:"namespace"`
	Platform v1alpha1.Platform `json:"platform"`
	// Reconnect is the name of the connection that is to be renewed; empty to connect
	// any account.
	Reconnect string `json:"reconnect,omitempty"`
	Verifier  string `json:"verifier"`
}

// belongs reports whether a flow is that of a visitor.
func (f *flow) belongs(v Visitor) bool {
	return v.Session != "" && subtle.ConstantTimeCompare([]byte(f.Session), []byte(v.Session)) == 1 && f.Person == v.Person
}

// verb is what the flow does to a connection. That an account is connected already is
// not known when it begins.
func (f *flow) verb() Verb {
	if f.Reconnect != "" {
		return Patch
	}
	return Create
}

// Started is a flow that has begun.
type Started struct {
	// Platform is where the person goes.
	Platform v1alpha1.Platform
	// Address is the page of consent, where the person is to be sent.
	Address string
	// Cookie has to be set before.
	Cookie *http.Cookie
}

// Available lists, by name, the platforms whose accounts can be connected.
func (s *Service) Available() []v1alpha1.Platform {
	var names []v1alpha1.Platform
	for name, platform := range s.Platforms {
		if c, ok := platform.(platforms.Connector); ok {
			if _, err := c.ConsentURL(platforms.Consent{}); err == nil {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// Start starts to connect an account for a namespace; reconnect names the connection
// that is to be renewed, or is empty.
func (s *Service) Start(ctx context.Context, v Visitor, namespace string, platform v1alpha1.Platform, reconnect string) (Started, error) {
	f := flow{
		State: rand.Text(), Session: v.Session, Person: v.Person, Space: namespace, Platform: platform, Reconnect: reconnect,
		Verifier: rand.Text() + rand.Text(),
	}
	if err := v.May(ctx, namespace, f.verb()); err != nil {
		return Started{}, err
	}
	if reconnect == "" {
		if err := s.requireRoom(namespace); err != nil {
			return Started{}, err
		}
	} else {
		existing, err := s.find(ctx, namespace, reconnect)
		if err != nil {
			return Started{}, err
		}
		f.Platform = existing.Spec.Platform
	}
	connector, err := s.connector(f.Platform)
	if err != nil {
		return Started{}, err
	}
	address, err := connector.ConsentURL(platforms.Consent{RedirectURI: s.redirect(f.Platform), State: f.State, Verifier: f.Verifier})
	if err != nil {
		return Started{}, s.explain(ctx, &f, err)
	}
	return Started{Platform: f.Platform, Address: address, Cookie: s.cookie(f.State, s.Sealer.Seal(purposeFlow, &f, flowLife), int(flowLife/time.Second))}, nil
}

// redirect is where a platform sends people back to.
func (s *Service) redirect(platform v1alpha1.Platform) string {
	return s.SiteURL + cookiePath + "/" + string(platform) + "/callback"
}

// cookie carries a sealed flow for so many seconds; -1 removes it.
func (s *Service) cookie(state, value string, seconds int) *http.Cookie {
	secure := strings.HasPrefix(s.SiteURL, "https://")
	name := cookieName + state
	if secure {
		name = "__Secure-" + name
	}
	// Lax: the platform's page leads back to here by a link of another site. Browsers take
	// no Secure cookie from a site that is served by plain http.
	return &http.Cookie{ //nolint:gosec // see above
		Name: name, Value: value, Path: cookiePath, MaxAge: seconds, Secure: secure, HttpOnly: true, SameSite: http.SameSiteLaxMode,
	}
}

func (s *Service) connector(platform v1alpha1.Platform) (platforms.Connector, error) {
	if connector, ok := s.Platforms[platform].(platforms.Connector); ok {
		return connector, nil
	}
	return nil, refusef(bridge.CodeNotFound, "accounts of %s cannot be connected here; the administrator has to configure the platform", platform.Title())
}

// find reads a connection that is to be renewed or removed.
func (s *Service) find(ctx context.Context, namespace, name string) (*v1alpha1.Connection, error) {
	found, err := s.Connections.Live(ctx, namespace, name)
	switch {
	case apierrors.IsNotFound(err):
		return nil, refusef(bridge.CodeNotFound, "this team has no connection %q; it may have been disconnected meanwhile", name)
	case err != nil:
		return nil, fmt.Errorf("read connection %q: %w", name, err)
	case found.DeletionTimestamp != nil:
		return nil, refusef(bridge.CodeConflict, "connection %q is being removed", name)
	}
	return found, nil
}

// requireRoom refuses another account if the team's plan has no room for it.
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
