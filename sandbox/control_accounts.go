// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"k8s.io/utils/ptr"

	"github.com/herald-social/herald/sandbox/instagram"
	"github.com/herald-social/herald/sandbox/state"
)

// controlSettings represents account settings in the control API.
type controlSettings struct {
	Quota           *int   `json:"quota"`
	Private         bool   `json:"private"`
	CommentDisabled bool   `json:"comment_disabled"`
	ListingLagMS    *int64 `json:"listing_lag_ms"`
	TokenTTLS       *int64 `json:"token_ttl_s"`
	ProcessingMS    *int64 `json:"processing_ms"`
	ProcessingError string `json:"processing_error"`

	Pages []string `json:"pages,omitempty"`
}

// settingsOf returns deep copies, which isolates the account from decoding.
func settingsOf(s state.Settings) controlSettings {
	out := controlSettings{
		Private: s.Private, CommentDisabled: s.CommentDisabled, ListingLagMS: inMilliseconds(s.ListingLag),
		ProcessingMS: inMilliseconds(s.Processing), ProcessingError: s.ProcessingError, Pages: slices.Clone(s.Pages),
	}
	if s.Quota != nil {
		out.Quota = new(*s.Quota)
	}
	if s.TokenTTL > 0 {
		out.TokenTTLS = new(int64(s.TokenTTL / time.Second))
	}
	return out
}

func milliseconds(ms *int64) *time.Duration {
	if ms == nil {
		return nil
	}
	return new(time.Duration(*ms) * time.Millisecond)
}

func inMilliseconds(d *time.Duration) *int64 {
	if d == nil {
		return nil
	}
	return new(d.Milliseconds())
}

// accountChange is the body of PUT. It is decoded over the current settings: an absent field keeps its value, and
// null restores the default.
type accountChange struct {
	Username    string `json:"username"`
	DisplayName string `json:"display_name"`
	Login       string `json:"login"`
	controlSettings
	// Nullable fields that shadow the embedded ones.
	Private         *bool   `json:"private"`
	CommentDisabled *bool   `json:"comment_disabled"`
	ProcessingError *string `json:"processing_error"`
}

// changeOf returns a change that keeps all settings.
func changeOf(s state.Settings) accountChange {
	return accountChange{
		controlSettings: settingsOf(s), Private: &s.Private, CommentDisabled: &s.CommentDisabled, ProcessingError: &s.ProcessingError,
	}
}

func (c accountChange) settings() state.Settings {
	return state.Settings{
		Quota: c.Quota, Private: ptr.Deref(c.Private, false), CommentDisabled: ptr.Deref(c.CommentDisabled, false),
		ListingLag: milliseconds(c.ListingLagMS), Processing: milliseconds(c.ProcessingMS),
		TokenTTL:        time.Duration(ptr.Deref(c.TokenTTLS, 0)) * time.Second,
		ProcessingError: ptr.Deref(c.ProcessingError, ""), Pages: c.Pages,
	}
}

func (c accountChange) check() error {
	const day = maxControlSeconds * 1000
	outside := func(n *int64, least, most int64) bool { return n != nil && (*n < least || *n > most) }
	switch {
	case c.Quota != nil && *c.Quota < 0:
		return badInput("quota is %d; it is a number of posts in 24 hours, or null for no limit", *c.Quota)
	case outside(c.ListingLagMS, 0, day):
		return badInput("listing_lag_ms is %d; it must be from 0 to a day, or null for the platform's own", *c.ListingLagMS)
	case outside(c.TokenTTLS, 1, 365*maxControlSeconds):
		return badInput("token_ttl_s is %d; it must be from 1 to a year, or null for the platform's own", *c.TokenTTLS)
	case outside(c.ProcessingMS, 0, day):
		return badInput("processing_ms is %d; it must be from 0 to a day, or null for the platform's own", *c.ProcessingMS)
	default:
		return nil
	}
}

// controlAccount represents an account in the control API.
type controlAccount struct {
	Platform    string `json:"platform"`
	ID          string `json:"id"`
	Username    string `json:"username"`
	DisplayName string `json:"display_name"`
	Login       string `json:"login,omitempty"`
	controlSettings
	AccessToken  string   `json:"access_token"`
	RefreshToken string   `json:"refresh_token"`
	ExpiresAt    *string  `json:"expires_at"`
	Scopes       []string `json:"scopes"`
	URL          string   `json:"url"`
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
	content, err := io.ReadAll(r.Body)
	if err != nil {
		return 0, nil, badInput("the body cannot be read: %v", err)
	}
	var change accountChange
	if err := decodeControl(content, &change); err != nil {
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
	account, err = s.store.ChangeAccount(account.Key, func(a *state.Account) {
		onto := changeOf(a.Settings)
		_ = decodeControl(content, &onto) // the content was decoded successfully above
		a.DisplayName, a.Settings = cmp.Or(onto.DisplayName, a.DisplayName), onto.settings()
	})
	if err != nil {
		return 0, nil, err
	}
	if s.useless(s.store.Tokens(account.Key)) {
		if _, err := s.store.Grant(account.Key, s.fullGrant(p, account), p.Terms(account).Refresh); err != nil {
			return 0, nil, err
		}
	}
	return http.StatusOK, s.showAccount(r, p, account), nil
}

// useless reports whether neither token is usable.
func (s *Server) useless(t state.Tokens) bool {
	over := func(end time.Time) bool { return !end.IsZero() && !s.clock.Now().Before(end) }
	return (t.Access == "" || over(t.ExpiresAt)) && (t.Refresh == "" || over(t.RefreshExpiresAt))
}

// createAccount creates the account unless it exists.
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
	fresh.DisplayName, fresh.Settings = cmp.Or(change.DisplayName, fresh.Username), change.settings()
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
	tokens := p.Terms(a).Tokens(s.clock.Now())
	tokens.Access = p.NewAccess(a)
	return tokens
}

func (s *Server) showAccount(r *http.Request, p platform, a state.Account) controlAccount {
	tokens := s.store.Tokens(a.Key)
	out := controlAccount{
		Platform: a.Platform, ID: a.ID, Username: a.Username, DisplayName: a.DisplayName, Login: a.Login,
		controlSettings: settingsOf(a.Settings), AccessToken: tokens.Access, RefreshToken: tokens.Refresh, Scopes: tokens.Scopes,
		URL: s.site(r) + "/accounts/" + a.Platform + "/" + a.ID,
	}
	if life := p.Terms(a).Access; life > 0 {
		out.TokenTTLS = new(int64(life / time.Second))
	}
	if !tokens.ExpiresAt.IsZero() {
		out.ExpiresAt = new(tokens.ExpiresAt.UTC().Format(timeFormat))
	}
	return out
}
