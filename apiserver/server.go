// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package apiserver serves the HTTP API. It is stateless: its data comes from watches of the Kubernetes API, and any
// number of replicas may run.
package apiserver

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	kuberest "k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/archived"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/readiness"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/rest"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/internal/quota"
	"github.com/herald-social/herald/internal/tracing"
	"github.com/herald-social/herald/platforms"
)

// Config configures a Server. Fields are required unless documented as optional.
type Config struct {
	// Kubernetes is the client configuration for the Kubernetes API.
	Kubernetes *kuberest.Config
	// UserAgent identifies this program to the Kubernetes API.
	UserAgent string
	// Capabilities returns a platform's declared capabilities, or false if this installation cannot publish there.
	Capabilities func(v1alpha1.Platform) (platforms.Capabilities, bool)
	// SiteURL is the site's public address, such as https://herald.example.com.
	SiteURL string
	// Listener serves the API, over HTTPS (HTTP/1.1) if TLS is not nil. HealthListener serves /livez and /readyz, and
	// may be nil. Run closes both.
	Listener       net.Listener
	TLS            *tls.Config
	HealthListener net.Listener
	// ShutdownDelay is how long the server keeps serving after it reports not ready, so that load balancers notice.
	// ShutdownTimeout is the timeout for the requests then in progress. Both may be zero.
	ShutdownDelay   time.Duration
	ShutdownTimeout time.Duration
	// Files signs upload URLs; nil if this installation has no media store.
	Files bridge.Files
	// Small returns the key of a file's picture for lists; nil if this installation has no media store.
	Small func(ctx context.Context, media *v1alpha1.Media) (key string, err error)
	// Parts stores large files in parts; nil if this installation has no media store.
	Parts bridge.PartFiles
	// Requests reads the records of deleted objects' Idempotency-Keys; nil if this installation has none.
	Requests bridge.Requests
	// Bucket holds the archived posts; nil if this installation has none.
	Bucket *store.Store
	// Verify checks an uploaded file.
	Verify func(ctx context.Context, media *v1alpha1.Media) (v1alpha1.MediaStatus, error)
	// Namespaces are the namespaces that are served. Keys in other namespaces are unknown.
	Namespaces configv1alpha1.Namespaces
	// RequestsPerMinute limits each team and each address of unauthenticated clients; zero for no limit.
	RequestsPerMinute int
	// MaxConnections limits all connections, MaxConnectionsPerAddress those per address; zero for no limit.
	MaxConnections, MaxConnectionsPerAddress int
	// Proxies are the trusted proxies, which may set the client address; may be empty.
	Proxies request.Proxies
	// Web configures the web application; nil disables it.
	Web *WebConfig
	// MCP enables the MCP server. Version is the program version that it reports.
	MCP     bool
	Version string
	// Started is called once the API is being served; may be nil.
	Started func()
	// Tracer traces authenticated requests; nil disables tracing.
	Tracer *tracing.Tracer
	// Registry registers the metrics.
	Registry prometheus.Registerer
	Clock    clock.Clock
	// Check is an additional readiness check; nil for none.
	Check func(*http.Request) error
	Log   *slog.Logger
}

type informer interface {
	RunWithContext(ctx context.Context)
	HasSynced() bool
}

// Server serves the HTTP API until its context is done.
type Server struct {
	config Config

	informers []informer
	current   *current
	posts     *kube.PostFeed
	archived  *archived.Reader
	pending   *kube.PendingMedia
	budgets   *budgets
	used      *access.LastUsed
	web       *web

	api         *http.Server
	connections *limits.ConnectionPool
	health      *http.Server
	ready       atomic.Bool
}

// Connection timeouts: slower clients are cut off.
const (
	headerTimeout  = 10 * time.Second
	requestTimeout = time.Minute
	answerTimeout  = time.Minute
	idleTimeout    = 2 * time.Minute
	// maxHeaderBytes is net/http's limit for headers; net/http adds 4 KiB to it. The largest headers contain a user's
	// cookies, of up to 4 KiB each in browsers (the session, the return path of a sign-in and a pending connection),
	// and a client_id in the address of a consent page.
	maxHeaderBytes = 16 << 10
)

// New returns a Server that does nothing until Run is called.
func New(config Config) (*Server, error) {
	s := &Server{config: config}
	client, err := kube.NewClient(config.Kubernetes, config.UserAgent)
	if err != nil {
		return nil, err
	}
	keys := kube.NewAPIKeys(client, config.Namespaces, access.KeyIndexers(config.Namespaces), watchClock)
	teams, connections := kube.NewTeams(client, watchClock), kube.NewConnections(client, config.Namespaces, watchClock)
	s.informers, s.current = []informer{keys, teams, connections}, &current{clock: watchClock, watches: []watching{keys, teams}}
	index, media, usages := postindex.New(), kube.NewMedia(client), quota.NewUsageStore(kube.NewUsages(client))
	m := newMetrics(config.Registry, index.Len)
	s.used = access.NewLastUsed(keys.Touch, config.Clock, config.Log)
	credentials, events, err := newWriters(&config)
	if err != nil {
		return nil, err
	}
	s.pending = kube.NewPendingMedia(client, config.Namespaces)
	bridgeConfig := bridge.Config{
		Key:          access.NewKeyCache(keys, config.Clock).Authenticate,
		Current:      s.current.check,
		Used:         s.used.Record,
		Owner:        teams.Owner,
		Connections:  connections,
		Posts:        kube.NewPosts(client),
		Quota:        usages,
		Media:        media,
		Uploaded:     media.Uploaded,
		Files:        config.Files,
		Small:        config.Small,
		Parts:        config.Parts,
		Requests:     config.Requests,
		Verify:       config.Verify,
		Readiness:    m.instrument(readiness.NewChecker(connections, config.Clock, config.Log)),
		Index:        index,
		Pending:      s.pending.Pending,
		CountKeys:    keys.Count,
		Keys:         keys,
		Schedules:    kube.NewSchedules(client),
		Notifiers:    kube.NewNotifiers(client),
		Secrets:      credentials,
		Subscribe:    s.subscribe,
		Archive:      s.archive(index, teams.Owner),
		Capabilities: config.Capabilities,
		Clock:        config.Clock,
		Log:          config.Log,
	}
	if config.Web != nil { // the permissions for events belong to the web application
		bridgeConfig.Events, bridgeConfig.PageOf = events, config.pageOf
	}
	service := bridge.New(bridgeConfig)
	s.posts = kube.NewPostFeed(client, config.Namespaces, index, summaries(service))
	s.budgets = newBudgets(service, usages, config.Namespaces, config.Clock, config.Log, index.Changed, s.pending.Changed)
	s.budgets.enqueueOnChange(keys, namespaceOf)
	s.budgets.enqueueOnChange(teams, ownedBy)
	if err := s.setHandlers(service, teams, connections, credentials, m); err != nil {
		return nil, err
	}
	return s, nil
}

// newWriters returns the clients that only write: those for teams' Secrets and for events.
func newWriters(config *Config) (kube.Credentials, *kube.Events, error) {
	credentials, err := kube.NewCredentials(config.Kubernetes, config.UserAgent)
	if err != nil {
		return credentials, nil, err
	}
	events, err := kube.NewEvents(config.Kubernetes, config.UserAgent, config.Clock)
	return credentials, events, err
}

// summaries returns the index's summary function, which also passes each post to the service.
func summaries(service *bridge.Service) func(*v1alpha1.Post) postindex.Summary {
	return func(post *v1alpha1.Post) postindex.Summary {
		service.Observe(post)
		return service.Summarise(post)
	}
}

func (c *Config) pageOf(namespace, id string) string {
	return c.SiteURL + "/teams/" + namespace + "/posts/" + id
}

// subscribe delegates to the feed, which is created after the service that needs this function.
func (s *Server) subscribe(namespace, name string) (changed <-chan struct{}, stop func(), ok bool) {
	return s.posts.Subscribe(namespace, name)
}

// archive returns the reader of archived posts, or nil if there is no bucket.
func (s *Server) archive(index *postindex.Index, owner func(namespace string) *v1alpha1.Team) bridge.Archive {
	if s.config.Bucket == nil {
		return nil
	}
	s.archived = archived.New(s.config.Bucket, index, owner, s.config.Clock, s.config.Log)
	return s.archived
}

func limitsOf(config *Config) rest.Limits {
	return rest.Limits{
		Teams: limits.NewRateLimiter(config.RequestsPerMinute, config.Clock), Anonymous: limits.NewAnonymousGuard(config.RequestsPerMinute, config.Clock),
		Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes),
	}
}

func (s *Server) setHandlers(service *bridge.Service, teams *kube.Teams, connections *kube.Connections, credentials kube.Credentials, m *metrics) (err error) {
	bounds := limitsOf(&s.config)
	if s.web, err = newWeb(&s.config, service, teams, connections, credentials, bounds); err != nil {
		return err
	}
	api := rest.NewHandler(service, bounds)
	granted := &current{clock: watchClock, watches: append(s.web.watches(), s.current.watches...)}
	agents, err := newMCP(&s.config, service, api, s.web.authorization(), granted.check)
	if err != nil {
		return err
	}
	site, err := newSite(api, agents, s.web, s.config.SiteURL, s.config.Capabilities)
	if err != nil {
		return err
	}
	errorLog := slog.NewLogLogger(serverLog{s.config.Log.Handler(), limits.NewLogLimiter(s.config.Clock)}, slog.LevelWarn)
	server := func(handler http.Handler) *http.Server {
		return &http.Server{
			Handler:           handler,
			ReadHeaderTimeout: headerTimeout,
			ReadTimeout:       requestTimeout,
			WriteTimeout:      answerTimeout,
			IdleTimeout:       idleTimeout,
			MaxHeaderBytes:    maxHeaderBytes,
			ErrorLog:          errorLog,
		}
	}
	s.api = server(&observer{
		next: site, metrics: m, tracer: s.config.Tracer, proxies: s.config.Proxies, clock: s.config.Clock,
		log: s.config.Log, lines: limits.NewLogLimiter(s.config.Clock),
	})
	s.connections = newConnections(&s.config)
	s.api.ConnState, s.api.ConnContext = s.connections.State, s.connections.Context
	if s.web != nil {
		// Shutdown waits for responses, and event streams of posts last for minutes.
		s.api.RegisterOnShutdown(s.web.close)
	}
	s.health = server(ProbeHandler(s.config.Log, ProbeChecks{Alive: func(*http.Request) error { return nil }, Ready: s.readyz}))
	return nil
}

// readyz reports whether the caches have synced and are fresh, and the server is not shutting down.
func (s *Server) readyz(r *http.Request) error {
	if !s.ready.Load() {
		return errNotServing
	}
	if s.config.Check != nil {
		if err := s.config.Check(r); err != nil {
			return err
		}
	}
	return s.current.check()
}

var errNotServing = errors.New("the caches have not synced yet, or the process is stopping")
