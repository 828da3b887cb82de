// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/bluesky"
	"github.com/herald-social/herald/sandbox/facebook"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/instagram"
	"github.com/herald-social/herald/sandbox/mastodon"
	"github.com/herald-social/herald/sandbox/pages"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
	"github.com/herald-social/herald/sandbox/threads"
	"github.com/herald-social/herald/sandbox/tiktok"
	"github.com/herald-social/herald/sandbox/x"
	"github.com/herald-social/herald/sandbox/youtube"
)

// Options configure a Server. The zero value works: real time, memory only, no log.
type Options struct {
	// Clock is the time source; nil uses the real clock.
	Clock clock.WithTicker
	// StateDir is the folder for persistent state; empty keeps the state in memory only.
	StateDir string
	// SiteURL is the sandbox's address for browsers, without a trailing slash, such as http://127.0.0.1:9100. It is the base address of
	// posts and images. If empty, each request's address is used. Addresses for client programs always use the request's address.
	SiteURL string
	// Lenient ignores unknown parameters and fields wherever the platform ignores them. The default rejects them, which detects misspelled
	// ones in Herald's own tests. Third-party clients need the lenient mode.
	Lenient bool
	// PlainHosts lists additional hosts that may serve files to TikTok over plain HTTP besides this machine, such as test clusters' file
	// stores. All other hosts require HTTPS.
	PlainHosts []string
	// Logger receives startup messages, control API changes, and failures; nil disables logging.
	Logger *slog.Logger
}

// Server is the sandbox as an HTTP handler.
type Server struct {
	mux       *http.ServeMux
	store     *state.Store
	blobs     *blobs.Store
	board     *faults.Board
	gate      *faults.Gate
	clock     clock.Clock
	log       *slog.Logger
	siteURL   string
	lenient   bool
	plain     []string
	platforms map[string]platform
	close     func() error
}

// platform is a simulator's interface for the core.
type platform interface {
	pages.Platform
	// Register adds the platform's API to mux.
	Register(mux *http.ServeMux)
	// CheckAccount returns an error if a test cannot create such an account.
	CheckAccount(id, username string) error
	// DefaultUsername derives a username from an account id.
	DefaultUsername(id string) string
	// Terms returns the account owner's grant, and NewAccess an access token, or "" for a random one.
	Terms(state.Account) state.Terms
	NewAccess(state.Account) string
}

// newPlatforms returns the simulators in display order.
func (s *Server) newPlatforms() []platform {
	opts := simulator.Options{
		Store: s.store, Blobs: s.blobs, Gate: s.gate, Clock: s.clock, Logger: s.log,
		SiteURL: s.site, APIURL: address, Lenient: s.lenient, PlainHosts: s.plain,
	}
	return []platform{
		x.New(opts), threads.New(opts), instagram.New(opts), facebook.New(opts), tiktok.New(opts), youtube.New(opts), mastodon.New(opts),
		bluesky.New(opts),
	}
}

// profiles returns each platform's account profile, in the same order.
func profiles() []simulator.Profile {
	return []simulator.Profile{
		x.Accounts(), threads.Accounts(), instagram.Accounts(), facebook.Accounts(), tiktok.Accounts(), youtube.Accounts(), mastodon.Accounts(),
		bluesky.Accounts(),
	}
}

// Account is a demo account with its initial tokens. GET /_control/accounts/{platform}/{id} returns the current ones.
type Account struct {
	Platform, ID          string
	Username, DisplayName string
	AccessToken           string
	// RefreshToken is empty on platforms without refresh tokens.
	RefreshToken string
	Scopes       []string
}

// DemoAccounts returns one account per simulated platform.
func DemoAccounts() []Account {
	var out []Account
	for _, p := range profiles() {
		out = append(out, Account{
			Platform: p.Platform, ID: p.Demo.ID, Username: p.Demo.Username, DisplayName: p.Demo.DisplayName,
			AccessToken: p.DemoAccess, RefreshToken: p.DemoRefresh, Scopes: p.Terms(p.Demo).Scopes,
		})
	}
	return out
}

// New reads the state folder, creates missing demo accounts, and returns the server. It fails if the folder is
// unreadable, unwritable, damaged, or locked by another sandbox.
func New(opts Options) (*Server, error) {
	if opts.Clock == nil {
		opts.Clock = clock.RealClock{}
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	store, err := state.Open(state.Options{Clock: opts.Clock, Dir: opts.StateDir, Logger: opts.Logger})
	if err != nil {
		return nil, err
	}
	folder := ""
	if opts.StateDir != "" {
		folder = filepath.Join(opts.StateDir, "media")
	}
	files, err := blobs.Open(folder)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	board := faults.NewBoard()
	s := &Server{
		mux: http.NewServeMux(), store: store, blobs: files, board: board, gate: faults.NewGate(board, opts.Clock),
		clock: opts.Clock, log: opts.Logger, siteURL: strings.TrimSuffix(opts.SiteURL, "/"), lenient: opts.Lenient, plain: opts.PlainHosts,
		platforms: map[string]platform{},
	}
	s.close = sync.OnceValue(func() error {
		s.gate.Close()
		return errors.Join(s.store.Close(), s.blobs.Close())
	})
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Server) start() error {
	var shown []pages.Platform
	for _, p := range s.newPlatforms() {
		p.Register(s.mux)
		s.platforms[p.Name()] = p
		shown = append(shown, p)
	}
	if err := pages.New(s.store, s.blobs, s.clock, shown).Register(s.mux); err != nil {
		return fmt.Errorf("set up the sandbox's pages: %w", err)
	}
	s.registerControl()
	for _, p := range profiles() {
		terms := p.Terms(p.Demo)
		tokens := terms.Tokens(s.clock.Now())
		tokens.Access, tokens.Refresh = p.DemoAccess, p.DemoRefresh
		if _, _, err := s.store.CreateAccount(p.Demo, tokens, terms.Refresh); err != nil {
			return fmt.Errorf("create the demo account of %s: %w", p.Platform, err)
		}
	}
	return nil
}

// ServeHTTP serves the simulated platforms, the pages and the control API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// AwaitFetched waits until all files named by earlier requests have been fetched and checked. It is for tests with an
// in-process sandbox. Requests must not arrive during the call.
func (s *Server) AwaitFetched() { s.blobs.AwaitPulls() }

// Close ends waiting requests and closes the database. Acknowledged changes are durable even without it.
func (s *Server) Close() error { return s.close() }

// site returns the sandbox's address for browsers.
func (s *Server) site(r *http.Request) string {
	if s.siteURL != "" {
		return s.siteURL
	}
	return address(r)
}

// address returns the sandbox's address for a request's client.
func address(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
