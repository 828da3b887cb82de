// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package bluesky

import (
	"cmp"
	"crypto/rand"
	"net/http"
	"strings"
	"time"

	"github.com/herald-social/herald/sandbox/faults"
	"github.com/herald-social/herald/sandbox/simulator"
	"github.com/herald-social/herald/sandbox/state"
)

// The lifetimes of a session's tokens (packages/pds/src/account-manager/helpers/auth.ts). An account's token_ttl_s
// replaces the access token's.
const (
	accessLife  = 2 * time.Hour
	refreshLife = 90 * 24 * time.Hour
)

// session is a session that was created with an app password.
type session struct {
	account state.Key
	// password is the handle and the app password that started the session.
	password            string
	access, refresh     string
	accessEnds, allEnds time.Time
}

// createSession implements com.atproto.server.createSession.
func (p *Platform) createSession(w http.ResponseWriter, r *faults.Request) {
	var in struct {
		Identifier      *string `json:"identifier"`
		Password        *string `json:"password"`
		AuthFactorToken *string `json:"authFactorToken"`
		AllowTakendown  *bool   `json:"allowTakendown"`
	}
	if with := p.decode(r, &in); with != nil {
		p.fail(w, with)
		return
	}
	if in.Identifier == nil || in.Password == nil {
		p.fail(w, invalid("Missing required key at $"))
		return
	}
	account, found := p.account(*in.Identifier)
	password := account.Username + ":" + *in.Password
	if !found || !p.opens(password, account.Key) {
		p.fail(w, unauthorized("AuthenticationRequired", "Invalid identifier or password"))
		return
	}
	p.respondWithSession(w, account, password)
}

// opens reports whether a handle and an app password are valid for an account.
func (p *Platform) opens(password string, account state.Key) bool {
	bearer, ok := p.Store.Bearer(password)
	return ok && bearer.Account == account && !bearer.Expired(p.Clock.Now())
}

// account returns the account of a handle or a DID.
func (p *Platform) account(identifier string) (state.Account, bool) {
	if strings.HasPrefix(identifier, "did:") {
		return p.Store.Account(state.Key{Platform: Name, ID: identifier})
	}
	return p.Store.AccountNamed(Name, strings.ToLower(strings.TrimPrefix(identifier, "@")))
}

// respondWithSession creates a session, and responds with its tokens.
func (p *Platform) respondWithSession(w http.ResponseWriter, account state.Account, password string) {
	now := p.Clock.Now()
	made := &session{
		account: account.Key, password: password, access: "session-" + rand.Text(), refresh: "renewal-" + rand.Text(),
		accessEnds: now.Add(cmp.Or(account.Settings.TokenTTL, accessLife)), allEnds: now.Add(refreshLife),
	}
	p.mu.Lock()
	p.sessions[made.access], p.sessions[made.refresh] = made, made
	p.mu.Unlock()
	out := shown(account)
	out["accessJwt"], out["refreshJwt"] = made.access, made.refresh
	p.write(w, http.StatusOK, out)
}

// shown renders an account (com.atproto.server.getSession).
func shown(a state.Account) map[string]any {
	return map[string]any{"did": a.ID, "handle": a.Username, "active": true, "emailConfirmed": false}
}

// find returns the session of a token.
func (p *Platform) find(token string) (session, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if held := p.sessions[token]; held != nil {
		return *held, true
	}
	return session{}, false
}

// end ends a session.
func (p *Platform) end(s session) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.sessions, s.access)
	delete(p.sessions, s.refresh)
}

// refreshSession implements com.atproto.server.refreshSession. A refresh token works once; the real server accepts it
// for two more hours (packages/pds/src/account-manager/account-manager.ts).
func (p *Platform) refreshSession(w http.ResponseWriter, r *faults.Request) {
	held, account, with := p.renewable(r)
	if with != nil {
		p.fail(w, with)
		return
	}
	p.end(held)
	p.respondWithSession(w, account, held.password)
}

// renewable returns the session of a request's refresh token, and its account.
func (p *Platform) renewable(r *faults.Request) (session, state.Account, *problem) {
	token := simulator.BearerToken(r.Request)
	held, found := p.find(token)
	account, known := p.Store.Account(held.account)
	switch {
	case token == "":
		return held, account, unauthorized("AuthMissing", "Authentication Required")
	case !found || !known || held.refresh != token:
		return held, account, named("InvalidToken", "Token could not be verified")
	case !p.Clock.Now().Before(held.allEnds) || !p.opens(held.password, held.account):
		return held, account, named("ExpiredToken", "Token has been revoked")
	default:
		return held, account, nil
	}
}

// deleteSession implements com.atproto.server.deleteSession.
func (p *Platform) deleteSession(w http.ResponseWriter, r *faults.Request) {
	held, _, with := p.renewable(r)
	if with != nil {
		p.fail(w, with)
		return
	}
	p.end(held)
	w.WriteHeader(http.StatusOK)
}

// getSession implements com.atproto.server.getSession.
func (p *Platform) getSession(w http.ResponseWriter, r *faults.Request) {
	if account, ok := p.authorized(w, r); ok {
		p.write(w, http.StatusOK, shown(account))
	}
}

// authorized returns the account of a request's session. Otherwise it responds with an error and returns false.
func (p *Platform) authorized(w http.ResponseWriter, r *faults.Request) (state.Account, bool) {
	token := simulator.BearerToken(r.Request)
	held, found := p.find(token)
	account, known := p.Store.Account(held.account)
	switch {
	case token == "":
		p.fail(w, unauthorized("AuthMissing", "Authentication Required"))
	case !found || !known || held.access != token:
		p.fail(w, named("InvalidToken", "Token could not be verified"))
	case !p.Clock.Now().Before(held.accessEnds):
		p.fail(w, named("ExpiredToken", "Token has expired"))
	default:
		return account, true
	}
	return state.Account{}, false
}

// accountOf returns the account of a request's session, or the account that requests a session.
func (p *Platform) accountOf(r *faults.Request) string {
	if held, found := p.find(simulator.BearerToken(r.Request)); found {
		return held.account.ID
	}
	var in struct {
		Identifier string `json:"identifier"`
	}
	_ = readJSON(r, &in) // a body in another form is of no account
	account, _ := p.account(in.Identifier)
	return account.ID
}
