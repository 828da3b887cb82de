// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package pages

import (
	"bytes"
	"embed"
	"io/fs"
	"net/http"
	"time"

	"k8s.io/utils/clock"
	g "maragu.dev/gomponents"

	"github.com/herald-social/herald/sandbox/blobs"
	"github.com/herald-social/herald/sandbox/state"
)

//go:embed assets/*
var assetFiles embed.FS

// Platform is the interface that the pages need from a platform.
type Platform interface {
	Name() string
	Title() string
	// PostPath returns the path of a post's public page.
	PostPath(username, id string) string
	// PagePatterns returns the mux patterns of the pages of posts and accounts, without a method.
	PagePatterns() []string
	// Find returns the post or the username at an address that matched one of the patterns.
	Find(r *http.Request) (post, username string)
	// Links returns the addresses in text as pairs of byte offsets, in order.
	Links(text string) [][2]int
}

// apiBeside is a platform whose API addresses look like page addresses.
type apiBeside interface {
	// APIAt returns the API if an address that matched a page pattern belongs to the API, or nil for a page.
	APIAt(r *http.Request) http.Handler
}

// Site serves the pages.
type Site struct {
	store     *state.Store
	blobs     *blobs.Store
	clock     clock.PassiveClock
	platforms map[string]Platform
	order     []string
}

// New returns the pages for the platforms, in display order.
func New(store *state.Store, blobs *blobs.Store, clock clock.PassiveClock, platforms []Platform) *Site {
	s := &Site{store: store, blobs: blobs, clock: clock, platforms: map[string]Platform{}}
	for _, p := range platforms {
		s.platforms[p.Name()] = p
		s.order = append(s.order, p.Name())
	}
	return s
}

// Register adds the pages to mux.
func (s *Site) Register(mux *http.ServeMux) error {
	assets, err := fs.Sub(assetFiles, "assets")
	if err != nil {
		return err
	}
	mux.HandleFunc("GET /{$}", s.index)
	mux.HandleFunc("GET /accounts/{platform}/{id}", s.account)
	mux.HandleFunc("GET /_media/{hash}", s.media)
	mux.HandleFunc("GET /_assets/avatar/{platform}/{file}", s.avatar)
	mux.Handle("GET /_assets/", secured(http.StripPrefix("/_assets/", http.FileServerFS(assets))))
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		Message(w, http.StatusNotFound, "Nothing here", "There is no such page in the sandbox.")
	})
	for _, p := range s.platforms {
		for _, pattern := range p.PagePatterns() {
			mux.HandleFunc("GET "+pattern, s.address(p))
		}
	}
	return nil
}

// address serves the public addresses of a platform's posts and accounts. As on the platforms, the username in a post's
// address is ignored: the ID determines the post, and other addresses redirect to the right one.
func (s *Site) address(p Platform) http.HandlerFunc {
	shared, _ := p.(apiBeside)
	return func(w http.ResponseWriter, r *http.Request) {
		if shared != nil {
			if api := shared.APIAt(r); api != nil {
				api.ServeHTTP(w, r)
				return
			}
		}
		if post, username := p.Find(r); post != "" {
			s.post(w, r, p, post)
		} else {
			s.profile(w, r, p, username)
		}
	}
}

// policy restricts a page to the sandbox's own resources and forbids framing.
const policy = "default-src 'none'; style-src 'self'; img-src 'self'; media-src 'self'; script-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func secureHeaders(header http.Header) {
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
}

func secured(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secureHeaders(w.Header())
		next.ServeHTTP(w, r)
	})
}

// render responds with a page.
func render(w http.ResponseWriter, status int, content g.Node) {
	var page bytes.Buffer
	if err := content.Render(&page); err != nil {
		http.Error(w, "the page could not be rendered: "+err.Error(), http.StatusInternalServerError)
		return
	}
	secureHeaders(w.Header())
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(page.Bytes()) // the client may have disconnected
}

// message is a page with a heading and a sentence.
type message struct{ Title, Text string }

// Message responds with a page that contains a heading and a sentence.
func Message(w http.ResponseWriter, status int, title, text string) {
	render(w, status, message{Title: title, Text: text}.render())
}

// Consent is the consent page of a connect flow.
type Consent struct {
	// On is the platform's name in paths and styles.
	On string
	// Platform is the platform's display name.
	Platform string
	// Client is the id of the application that requests access.
	Client string
	Scopes []string
	// Deny is the address for declining.
	Deny    string
	Choices []Choice
}

// Choice is an account that a person can connect.
type Choice struct {
	profile
	// Allow is the address for choosing the account.
	Allow string
}

// NewChoice offers an account; allow is the address for a person who chooses it.
func NewChoice(a state.Account, allow string) Choice {
	return Choice{profile: profileOf(a), Allow: allow}
}

// RenderConsent responds with the consent page.
func RenderConsent(w http.ResponseWriter, c Consent) { render(w, http.StatusOK, c.render()) }

// ago formats the time between at and now in the short form of feeds.
func ago(now, at time.Time) string {
	switch d := now.Sub(at); {
	case d < 5*time.Second:
		return "now"
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return withUnit(int(d/time.Minute), "m")
	case d < 24*time.Hour:
		return withUnit(int(d/time.Hour), "h")
	case at.Year() == now.Year():
		return at.Format("Jan 2")
	default:
		return at.Format("Jan 2, 2006")
	}
}
