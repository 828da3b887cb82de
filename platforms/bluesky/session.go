// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"context"
	"crypto/sha256"
	"net/http"
	"strings"
	"sync"

	"k8s.io/utils/lru"

	"github.com/herald-social/herald/internal/transport"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/platforms/internal/client"
	"github.com/herald-social/herald/platforms/internal/jsondoc"
)

// session is a response from com.atproto.server.createSession or refreshSession.
type session struct {
	DID     jsondoc.Text `json:"did"`
	Handle  jsondoc.Text `json:"handle"`
	Access  jsondoc.Text `json:"accessJwt"`
	Refresh jsondoc.Text `json:"refreshJwt"`
}

// maxSessions limits the number of sessions in memory, of about 1 KiB each, to the number of accounts that one
// installation is designed for (docs/capacity.md). The limit is needed because a replaced app password leaves its
// session behind.
const maxSessions = 20_000

// sessions holds the most recently used sessions, by a hash of the access token. They are kept in memory only: after a
// restart, each account signs in again.
type sessions struct {
	mu    sync.Mutex
	known *lru.Cache
}

func newSessions(most int) *sessions { return &sessions{known: lru.New(most)} }

// signIn is the session of one app password. Its lock is held while the account signs in, because each sign-in counts
// towards one of the account's rate limits.
type signIn struct {
	mu      sync.Mutex
	session session
}

func (s *sessions) of(token platforms.Token) *signIn {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := sha256.Sum256([]byte(token.Access))
	if known, ok := s.known.Get(key); ok {
		if held, ok := known.(*signIn); ok {
			return held
		}
	}
	held := &signIn{}
	s.known.Add(key, held)
	return held
}

// session returns the account's session, and replaces it if its access token is the expired one. expired is empty if no
// token is known to have expired.
func (p *Platform) session(ctx context.Context, token platforms.Token, expired string) (session, *platforms.Error) {
	held := p.sessions.of(token)
	held.mu.Lock()
	defer held.mu.Unlock()
	if held.session.Access != "" && held.session.Access.String() != expired {
		return held.session, nil
	}
	if held.session.Refresh != "" {
		if renewed, failure := p.sessionFrom(ctx, client.Call{
			Action: "refresh_token", Path: "/xrpc/com.atproto.server.refreshSession", Method: http.MethodPost, Token: held.session.Refresh.String(),
		}); failure == nil {
			held.session = renewed
			return renewed, nil
		}
	}
	held.session = session{}
	identifier, password, ok := splitToken(token.Access)
	if !ok {
		return session{}, new(malformedToken)
	}
	begun, failure := p.sessionFrom(ctx, client.Call{
		Action: "sign_in", Path: "/xrpc/com.atproto.server.createSession",
		Body: asJSON(map[string]string{"identifier": identifier, "password": password}),
	})
	if failure == nil {
		held.session = begun
	}
	return begun, failure
}

// splitToken splits an access token into the handle or DID, and the app password. A DID contains colons; an app
// password does not.
func splitToken(token string) (identifier, password string, ok bool) {
	at := strings.LastIndex(token, ":")
	if at <= 0 || at == len(token)-1 {
		return "", "", false
	}
	return token[:at], token[at+1:], true
}

func (p *Platform) sessionFrom(ctx context.Context, call client.Call) (session, *platforms.Error) {
	call.Timeout = readTimeout
	resp, err := p.api.Do(ctx, call)
	if err != nil {
		return session{}, p.api.Unanswered(err)
	}
	if resp.Status != http.StatusOK {
		failure, _ := p.classify(resp)
		return session{}, failure
	}
	s, _ := jsondoc.Decode[session](resp.Body)
	if s.Access == "" || s.DID == "" {
		return session{}, p.api.NoToken()
	}
	return s, nil
}

// authorized makes a call with the account's session, and repeats it with a new session if the old one has expired. An
// expired session and a failure both mean that the call had no effect.
func (p *Platform) authorized(ctx context.Context, token platforms.Token, send func(c *caller) (*transport.Response, error)) (resp *transport.Response, failure *platforms.Error, err error) {
	if isBound(token.Access) {
		of, access, ok := parseBound(token.Access)
		if !ok {
			return nil, new(damagedToken), nil
		}
		return p.proven(&caller{p: p, token: access, of: &of}, send)
	}
	s, failure := p.session(ctx, token, "")
	if failure != nil {
		return nil, failure, nil
	}
	if resp, err = send(p.bearer(&s)); err != nil || !isExpired(resp) {
		return resp, nil, err
	}
	if s, failure = p.session(ctx, token, s.Access.String()); failure != nil {
		return nil, failure, nil
	}
	resp, err = send(p.bearer(&s))
	return resp, nil, err
}

// read makes a read-only call with the account's session.
func (p *Platform) read(ctx context.Context, action, path string, token platforms.Token) (*transport.Response, *platforms.Error) {
	resp, failure, err := p.authorized(ctx, token, func(c *caller) (*transport.Response, error) {
		return c.do(ctx, client.Call{Action: action, Path: path, Timeout: readTimeout})
	})
	if err != nil {
		return nil, p.clientOf(token).Unanswered(err)
	}
	return resp, failure
}

func asJSON(v any) client.Body { return client.JSON("application/json", v) }
