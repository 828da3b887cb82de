// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/herald-social/herald/sandbox/instagram"
	"github.com/herald-social/herald/sandbox/state"
)

// optional is a JSON field that may be absent, null or a value.
type optional[T any] struct {
	set   bool
	value *T
}

// UnmarshalJSON is called only when the field is there.
func (o *optional[T]) UnmarshalJSON(content []byte) error {
	o.set = true
	if bytes.Equal(content, []byte("null")) {
		return nil
	}
	return json.Unmarshal(content, &o.value)
}

// accountChange is what PUT takes; what is absent stays as it is, and null is the default.
type accountChange struct {
	Username        string           `json:"username"`
	DisplayName     string           `json:"display_name"`
	Login           string           `json:"login"`
	Quota           optional[int]    `json:"quota"`
	Private         optional[bool]   `json:"private"`
	CommentDisabled optional[bool]   `json:"comment_disabled"`
	ListingLagMS    optional[int64]  `json:"listing_lag_ms"`
	TokenTTLS       optional[int64]  `json:"token_ttl_s"`
	ProcessingMS    optional[int64]  `json:"processing_ms"`
	ProcessingError optional[string] `json:"processing_error"`
}

func (c accountChange) check() error {
	if q := c.Quota.value; q != nil && *q < 0 {
		return badInput("quota is %d; it is a number of posts in 24 hours, or null for no limit", *q)
	}
	if lag := c.ListingLagMS.value; lag != nil && (*lag < 0 || *lag > maxControlSeconds*1000) {
		return badInput("listing_lag_ms is %d; it must be from 0 to a day, or null for the platform's own", *lag)
	}
	if ttl := c.TokenTTLS.value; ttl != nil && (*ttl < 1 || *ttl > 365*maxControlSeconds) {
		return badInput("token_ttl_s is %d; it must be from 1 to a year, or null for the platform's own", *ttl)
	}
	if ms := c.ProcessingMS.value; ms != nil && (*ms < 0 || *ms > maxControlSeconds*1000) {
		return badInput("processing_ms is %d; it must be from 0 to a day, or null for the platform's own", *ms)
	}
	return nil
}

func (c accountChange) apply(a *state.Account) {
	a.DisplayName = cmp.Or(c.DisplayName, a.DisplayName)
	if c.Quota.set {
		a.Settings.Quota = c.Quota.value
	}
	if c.Private.set {
		a.Settings.Private = valueOf(c.Private)
	}
	if c.CommentDisabled.set {
		a.Settings.CommentDisabled = valueOf(c.CommentDisabled)
	}
	if c.ListingLagMS.set {
		a.Settings.ListingLag = milliseconds(c.ListingLagMS)
	}
	if c.TokenTTLS.set {
		a.Settings.TokenTTL = time.Duration(valueOf(c.TokenTTLS)) * time.Second
	}
	if c.ProcessingMS.set {
		a.Settings.Processing = milliseconds(c.ProcessingMS)
	}
	if c.ProcessingError.set {
		a.Settings.ProcessingError = valueOf(c.ProcessingError)
	}
}

// milliseconds is a time that was given, and nil for null.
func milliseconds(o optional[int64]) *time.Duration {
	if o.value == nil {
		return nil
	}
	return new(time.Duration(*o.value) * time.Millisecond)
}

// inMilliseconds is what milliseconds reads.
func inMilliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(d.Milliseconds())
}

func valueOf[T any](o optional[T]) T {
	if o.value == nil {
		var zero T
		return zero
	}
	return *o.value
}

// controlAccount is an account as the control API shows it.
type controlAccount struct {
	Platform        string   `json:"platform"`
	ID              string   `json:"id"`
	Username        string   `json:"username"`
	DisplayName     string   `json:"display_name"`
	Login           string   `json:"login,omitempty"`
	Quota           *int     `json:"quota"`
	Private         bool     `json:"private"`
	CommentDisabled bool     `json:"comment_disabled"`
	ListingLagMS    *int64   `json:"listing_lag_ms"`
	TokenTTLS       *int64   `json:"token_ttl_s"`
	ProcessingMS    *int64   `json:"processing_ms"`
	ProcessingError string   `json:"processing_error"`
	AccessToken     string   `json:"access_token"`
	RefreshToken    string   `json:"refresh_token"`
	ExpiresAt       *string  `json:"expires_at"`
	Scopes          []string `json:"scopes"`
	URL             string   `json:"url"`
}

func (s *Server) getAccount(r *http.Request) (int, any, error) {
	p, err := s.simulated(r.PathValue("platform"))
	if err != nil {
		return 0, nil, err
	}
	account, ok := s.store.Account(state.Key{Platform: p.Name(), ID: r.PathValue("id")})
	if !ok {
		return 0, nil, missing("there is no account %s on %s; PUT creates it", r.PathValue("id"), p.Name())
	}
	return http.StatusOK, s.showAccount(r, p, account), nil
}

func (s *Server) putAccount(r *http.Request) (int, any, error) {
	p, err := s.simulated(r.PathValue("platform"))
	if err != nil {
		return 0, nil, err
	}
	var change accountChange
	if err := readControl(r, &change); err != nil {
		return 0, nil, err
	}
	if err := change.check(); err != nil {
		return 0, nil, err
	}
	account, created, err := s.createAccount(p, r.PathValue("id"), change)
	if err != nil {
		return 0, nil, err
	}
	if created {
		return http.StatusCreated, s.showAccount(r, p, account), nil
	}
	if change.Username != "" && change.Username != account.Username {
		return 0, nil, badInput("account %s is called %s; a username cannot be changed", account.ID, account.Username)
	}
	if change.Login != "" && change.Login != account.Login {
		return 0, nil, badInput("account %s is connected by login %q; that cannot be changed", account.ID, account.Login)
	}
	if account, err = s.store.ChangeAccount(account.Key, change.apply); err != nil {
		return 0, nil, err
	}
	if s.useless(s.store.Tokens(account.Key)) {
		if _, err := s.store.Grant(account.Key, s.fullGrant(p, account), p.Terms(account).Refresh); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, s.showAccount(r, p, account), nil
}

// useless says whether nothing can be done with tokens any more: neither with the one nor with the other.
func (s *Server) useless(t state.Tokens) bool {
	over := func(end time.Time) bool { return !end.IsZero() && !s.clock.Now().Before(end) }
	return (t.Access == "" || over(t.ExpiresAt)) && (t.Refresh == "" || over(t.RefreshExpiresAt))
}

// createAccount makes the account unless it exists.
func (s *Server) createAccount(p platform, id string, change accountChange) (state.Account, bool, error) {
	fresh := state.Account{
		Key: state.Key{Platform: p.Name(), ID: id}, Username: cmp.Or(change.Username, p.DefaultUsername(id)), Login: change.Login,
	}
	if fresh.Login != "" && (p.Name() != instagram.Name || fresh.Login != state.FacebookLogin) {
		return state.Account{}, false, badInput("account %s: login is %q; only %s has more than one, and the other is %q",
			id, fresh.Login, instagram.Name, state.FacebookLogin)
	}
	if err := p.CheckAccount(id, fresh.Username); err != nil {
		return state.Account{}, false, badInput("account %s: %v", id, err)
	}
	fresh.DisplayName = fresh.Username
	change.apply(&fresh)
	account, created, err := s.store.CreateAccount(fresh, s.fullGrant(p, fresh), p.Terms(fresh).Refresh)
	if _, taken := errors.AsType[*state.UsernameTakenError](err); taken {
		return state.Account{}, false, badInput("account %s: %v", id, err)
	}
	if created {
		s.log.Info("account created", "platform", p.Name(), "account", id)
	}
	return account, created, err
}

func (s *Server) fullGrant(p platform, a state.Account) state.Tokens {
	return p.Terms(a).Tokens(s.clock.Now())
}

func (s *Server) showAccount(r *http.Request, p platform, a state.Account) controlAccount {
	tokens := s.store.Tokens(a.Key)
	out := controlAccount{
		Platform: a.Platform, ID: a.ID, Username: a.Username, DisplayName: a.DisplayName, Login: a.Login,
		Quota: a.Settings.Quota, Private: a.Settings.Private, CommentDisabled: a.Settings.CommentDisabled,
		ListingLagMS: inMilliseconds(a.Settings.ListingLag), ProcessingMS: inMilliseconds(a.Settings.Processing),
		ProcessingError: a.Settings.ProcessingError,
		AccessToken:     tokens.Access, RefreshToken: tokens.Refresh, Scopes: tokens.Scopes,
		URL: s.site(r) + "/accounts/" + a.Platform + "/" + a.ID,
	}
	if life := p.Terms(a).Access; life > 0 {
		seconds := int64(life / time.Second)
		out.TokenTTLS = &seconds
	}
	if !tokens.ExpiresAt.IsZero() {
		end := tokens.ExpiresAt.UTC().Format(timeFormat)
		out.ExpiresAt = &end
	}
	return out
}
