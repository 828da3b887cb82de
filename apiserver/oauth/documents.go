// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package oauth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/internal/publicaddr"
)

const (
	// maxDocument and documentTimeout are a metadata document's maximum size, in bytes, and the timeout for fetching
	// it.
	maxDocument     = 64 << 10
	documentTimeout = 5 * time.Second
	// maxDocuments limits the cached documents. documentLife is the TTL of a response without max-age, and longestLife
	// the maximum TTL. failureLife is the TTL of a failed fetch.
	maxDocuments = 500
	documentLife = 5 * time.Minute
	longestLife  = 24 * time.Hour
	failureLife  = 10 * time.Second
)

// documents fetches and caches client metadata documents, whose address is the client's id
// (draft-ietf-oauth-client-id-metadata-document).
type documents struct {
	web      *http.Client
	loopback bool
	clock    clock.PassiveClock
	log      *slog.Logger

	known   *cache.LRUExpireCache
	flights singleflight.Group
}

type found struct {
	client *Client
	err    *PageError
}

func newDocuments(c *Config) *documents {
	allow := publicaddr.Check
	if c.LoopbackClients {
		allow = func(to netip.Addr) error {
			if to.Unmap().IsLoopback() {
				return nil
			}
			return publicaddr.Check(to)
		}
	}
	transport := publicaddr.NewTransport(publicaddr.TransportOptions{
		Allow: allow, Roots: c.Roots, DialTimeout: documentTimeout, MaxHeaderBytes: 16 << 10,
	})
	transport.ResponseHeaderTimeout = documentTimeout
	return &documents{
		loopback: c.LoopbackClients, clock: c.Clock, log: c.Log, known: cache.NewLRUExpireCacheWithClock(maxDocuments, c.Clock),
		web: &http.Client{
			// Following a redirect would let another site speak for this one.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
			Timeout:       documentTimeout,
			Transport:     transport,
		},
	}
}

// client returns the client whose id is this address. It calls allowed before it fetches.
func (d *documents) client(ctx context.Context, id string, allowed func() bool) (*Client, *PageError) {
	const title = "Unknown agent"
	if err := d.checkID(id); err != nil {
		return nil, pageErrorf(title, "Its client_id is neither a registration with this installation nor the address of a metadata document: %v.", err)
	}
	if known, ok := d.known.Get(id); ok {
		if f, ok := known.(found); ok {
			return f.client, f.err
		}
	}
	if !allowed() {
		return nil, &PageError{http.StatusTooManyRequests, "Too many agents", "There were too many requests from agents for you. Wait a minute."}
	}
	result, _, _ := d.flights.Do(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), documentTimeout)
		defer cancel()
		client, life, err := d.fetch(ctx, id)
		f := found{client: client}
		if err != nil {
			d.log.InfoContext(ctx, "The metadata document of an agent cannot be used", "client", id, "error", err)
			life, f.err = failureLife, pageErrorf(title, "Its metadata document at %s cannot be used: %v.", id, shownCause(err))
		}
		d.known.Add(id, f, life)
		return f, nil
	})
	f, _ := result.(found)
	return f.client, f.err
}

func (d *documents) checkID(id string) error {
	u, err := url.Parse(id)
	switch {
	case err != nil || strings.ContainsFunc(id, func(r rune) bool { return r <= ' ' || r > '~' || r == '\\' }):
		return errors.New("it is not an address")
	case u.Scheme != secure && (!d.loopback || !loopback(u)):
		return errors.New("it does not begin with https://")
	case len(id) > maxRedirect:
		return errors.New("it is too long")
	case u.Hostname() == "" || u.User != nil || strings.Contains(id, "#"):
		return errors.New("it has no host name, or has a user name or a fragment")
	case !plainHost(u):
		return errHost
	case u.Path == "" || u.Path == "/" || slices.ContainsFunc(strings.Split(u.Path, "/"), func(part string) bool { return part == "." || part == ".." }):
		return errors.New("it must not have a path")
	default:
		return nil
	}
}

// errDocument is an error that a page may show. Other errors would reveal details of the network.
type errDocument struct{ text string }

func (e *errDocument) Error() string { return e.text }

// shownCause returns the cause to show on a page. All network errors have the same text, which reveals nothing about
// the internal network.
func shownCause(err error) error {
	if known, ok := errors.AsType[*errDocument](err); ok {
		return known
	}
	return errors.New("the address does not respond, or is not on the public internet")
}

// fetch fetches a document and returns its TTL.
func (d *documents) fetch(ctx context.Context, id string) (*Client, time.Duration, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, id, http.NoBody)
	if err != nil {
		return nil, 0, fmt.Errorf("make the request: %w", err)
	}
	r.Header.Set("Accept", jsonType)
	r.Header.Set("User-Agent", "Herald")
	answer, err := d.web.Do(r)
	if err != nil {
		return nil, 0, fmt.Errorf("fetch the document: %w", err)
	}
	defer answer.Body.Close()
	kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, 0, &errDocument{"the server responds with the status " + strconv.Itoa(answer.StatusCode)}
	case kind != jsonType && !strings.HasSuffix(kind, "+json"):
		return nil, 0, &errDocument{"the response is not " + jsonType}
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("read the document: %w", err)
	case len(text) > maxDocument:
		return nil, 0, &errDocument{fmt.Sprintf("it is longer than %d bytes", maxDocument)}
	}
	client, err := clientOf(id, text)
	return client, lifeOf(answer.Header.Get("Cache-Control")), err
}

func clientOf(id string, text []byte) (*Client, error) {
	var m clientMetadata
	switch err := json.Unmarshal(text, &m); {
	case err != nil:
		return nil, &errDocument{"it is not a JSON object with the fields of RFC 7591"}
	case m.ClientID != id:
		return nil, &errDocument{"its client_id is not its own address"}
	case m.Method != "" && m.Method != methodNone:
		return nil, &errDocument{"its token_endpoint_auth_method is not none"}
	}
	if wrong := m.check(); wrong != nil {
		return nil, &errDocument{wrong.description}
	}
	return &Client{ID: id, Name: bridge.AgentName(m.Name), URI: uriOf(m.URI), Redirects: m.Redirects, Verified: true}, nil
}

func lifeOf(cacheControl string) time.Duration {
	for directive := range strings.SplitSeq(strings.ToLower(cacheControl), ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(directive), "=")
		switch name {
		case "no-store", "no-cache":
			return failureLife // consecutive requests of one authorization share the fetch
		case "max-age":
			seconds, err := strconv.Atoi(strings.Trim(value, `"`))
			if err == nil && seconds >= 0 {
				return min(max(time.Duration(min(seconds, int(longestLife/time.Second)))*time.Second, failureLife), longestLife)
			}
		}
	}
	return documentLife
}
