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
	"github.com/herald-social/herald/sandbox/facebook"
	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/instagram"
	"github.com/herald-social/herald/sandbox/pages"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
	"github.com/herald-social/herald/sandbox/threads"
	"github.com/herald-social/herald/sandbox/tiktok"
	"github.com/herald-social/herald/sandbox/x"
	"github.com/herald-social/herald/sandbox/youtube"
)

// Options are what a Server needs. The zero value works: real time, memory only, no log.
type Options struct {
	// Clock tells the time; nil means the real one.
	Clock clock.WithTicker
	// StateDir is the folder that keeps what was acknowledged; empty keeps it in memory only.
	StateDir string
	// SiteURL is the sandbox's own address as browsers reach it, without a slash at the end, such as http://127.0.0.1:9100.
	// Addresses of posts and pictures begin with it. Empty takes the address of the request, with which addresses that
	// programs go on with begin in any case.
	SiteURL string
	// Lenient overlooks parameters and fields that a simulator does not know, where the platform overlooks them too. Without
	// it they are refused, so that Herald's own tests find a misspelt one; other clients send what they like.
	Lenient bool
	// PlainHosts are hosts that TikTok fetches files from by plain HTTP, beside those of this machine: the stores of a
	// cluster for trials. From all others it wants HTTPS.
	PlainHosts []string
	// Logger receives the start, changes by the control API, and what goes wrong; nil means nothing is logged.
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

// platform is a simulator, as the core needs it.
type platform interface {
	pages.Platform
	// Register adds the platform's API to mux.
	Register(mux *http.ServeMux)
	// CheckAccount says what is wrong with an account that a test wants to make.
	CheckAccount(id, username string) error
	// DefaultUsername makes a username from an account id.
	DefaultUsername(id string) string
	// Terms are what an account's owner grants.
	Terms(state.Account) state.Terms
}

// newPlatforms is the list of simulators, in the order in which people see them.
func (s *Server) newPlatforms() []platform {
	opts := simulator.Options{
		Store: s.store, Blobs: s.blobs, Gate: s.gate, Clock: s.clock, Logger: s.log,
		SiteURL: s.site, APIURL: address, Lenient: s.lenient, PlainHosts: s.plain,
	}
	return []platform{
		x.New(opts), threads.New(opts), instagram.New(opts), facebook.New(opts), tiktok.New(opts), youtube.New(opts),
	}
}

// profiles says how the accounts of each platform look, in the same order.
func profiles() []simulator.Profile {
	return []simulator.Profile{
		x.Accounts(), threads.Accounts(), instagram.Accounts(), facebook.Accounts(), tiktok.Accounts(), youtube.Accounts(),
	}
}

// Account is a demo account with the tokens that it has when the sandbox starts for the first time. GET
// /_control/accounts/{platform}/{id} tells those that it has now.
type Account struct {
	Platform, ID          string
	Username, DisplayName string
	AccessToken           string
	// RefreshToken is empty on platforms that have none.
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

// New reads the state folder, makes the demo accounts that are missing, and returns the server. It fails when the folder
// cannot be read or written, is damaged, or is in use by another sandbox.
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

// ServeHTTP answers a request to any of the simulated platforms, the pages or the control API.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.mux.ServeHTTP(w, r) }

// AwaitFetched returns when the platforms have fetched every file that the requests so far told them to, and have judged it.
// Tests that share a process with the sandbox need it; no request may come meanwhile.
func (s *Server) AwaitFetched() { s.blobs.AwaitPulls() }

// Close ends waiting requests and closes the database. What was acknowledged is kept with or without it.
func (s *Server) Close() error { return s.close() }

// site is the sandbox's own address, as people reach it.
func (s *Server) site(r *http.Request) string {
	if s.siteURL != "" {
		return s.siteURL
	}
	return address(r)
}

// address is the sandbox's own, as the client of a request reaches it.
func address(r *http.Request) string {
	if r.TLS != nil {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}
