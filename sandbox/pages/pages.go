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

// Platform is what the pages need to know of a simulated platform.
type Platform interface {
	Name() string
	Title() string
	// PostPath is the path of a post's public page.
	PostPath(username, id string) string
	// PagePatterns are the mux's patterns, without a method, of the pages of posts and accounts.
	PagePatterns() []string
	// Find says which post, or else whose page, is at an address that one of the patterns matched.
	Find(r *http.Request) (post, username string)
	// Links returns the addresses in a text as pairs of byte offsets, in order.
	Links(text string) [][2]int
}

// apiBeside is a platform whose API has addresses that look like those of its pages.
type apiBeside interface {
	// APIAt returns the API when an address that a pattern of pages matched is the API's; nil for a page.
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

// New returns the pages for these platforms, in the order in which they are to be shown.
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

// address answers a platform's own address of a post or an account. Beside a post's id the username is not looked at, as
// on the platforms: the id decides, and leads to the right address.
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

// policy lets a page load nothing that is not the sandbox's own, and lets no site frame it.
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

// render answers a page.
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
	_, _ = w.Write(page.Bytes()) // the reader may be gone
}

// message is a page with a heading and a sentence.
type message struct{ Title, Text string }

// Message answers a page with a heading and a sentence.
func Message(w http.ResponseWriter, status int, title, text string) {
	render(w, status, message{Title: title, Text: text}.render())
}

// Consent is what a connect flow asks a person.
type Consent struct {
	// On is the platform's name in paths and styles.
	On string
	// Platform is its name for people.
	Platform string
	// Client is the id of the application that wants access.
	Client string
	Scopes []string
	// Deny is where a person goes who does not agree.
	Deny    string
	Choices []Choice
}

// Choice is an account that a person can connect.
type Choice struct {
	profile
	// Allow is where a person goes who chooses it.
	Allow string
}

// NewChoice offers an account; allow is where a person goes who chooses it.
func NewChoice(a state.Account, allow string) Choice {
	return Choice{profile: profileOf(a), Allow: allow}
}

// RenderConsent answers the page of a connect flow.
func RenderConsent(w http.ResponseWriter, c Consent) { render(w, http.StatusOK, c.render()) }

// ago says how long before now something happened, as short as feeds do.
func ago(now, at time.Time) string {
	switch d := now.Sub(at); {
	case d < 5*time.Second:
		return "now"
	case d < time.Minute:
		return d.Truncate(time.Second).String()
	case d < time.Hour:
		return count(int(d/time.Minute), "m")
	case d < 24*time.Hour:
		return count(int(d/time.Hour), "h")
	case at.Year() == now.Year():
		return at.Format("Jan 2")
	default:
		return at.Format("Jan 2, 2006")
	}
}
