// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/platforms"
)

// Outcome is a flow's result.
type Outcome struct {
	// Namespace is the team's namespace, set even if there is an error; empty if the flow is unknown.
	Namespace string
	// Connection is the connected account; nil if the user has to choose one.
	Connection *v1alpha1.Connection
	// Renewed reports that the account already had a connection, which now has new credentials.
	Renewed bool
	// Options are the accounts to choose from. Pending is the sealed state that the page with the choice sends to
	// Choose. It contains tokens, and may be too large for a cookie.
	Options []Option
	Pending string
	// Cookie removes the flow's cookie; nil if there is none. Set it even if there is an error.
	Cookie *http.Cookie
}

// Option is an account that the user can choose.
type Option struct {
	Identity platforms.Identity
	// Connection is the name of the account's existing connection; empty if it has none.
	Connection string
}

// errUnknownFlow is the error for anything that may be a forged callback. It does not reveal the reason.
var errUnknownFlow = &bridge.Error{
	Code: bridge.CodeValidation,
	Message: "nothing was connected: this attempt took longer than ten minutes, was started in another session, or has already ended; " +
		"start again on the team's connections page",
}

// pending is the sealed state of a flow that is waiting for a choice.
type pending struct {
	Flow    flow               `json:"flow"`
	Choices []platforms.Choice `json:"choices"`
}

// Return is a user's return from a consent page.
type Return struct {
	// Platform and Server are those of the callback address. Server is a host, and empty on a platform without servers to
	// choose.
	Platform v1alpha1.Platform
	Server   string
	// Query has the parameters.
	Query url.Values
}

// Callback completes a flow after the platform has redirected the user back. cookie returns a cookie's value by name.
// Callback connects the account, or returns the accounts to choose from.
func (s *Service) Callback(ctx context.Context, v Visitor, back Return, cookie func(name string) string) (Outcome, error) {
	query := back.Query
	f, err := s.open(v, query.Get("state"), cookie)
	if err != nil {
		return Outcome{}, err
	}
	out := Outcome{Namespace: f.Space, Cookie: s.cookie(f.State, "", -1)}
	if err := v.May(ctx, f.Space, f.verb()); err != nil {
		return Outcome{Cookie: out.Cookie}, err
	}
	switch {
	case f.Platform != back.Platform:
		return out, refusef(bridge.CodeValidation, "nothing was connected: the response came from %s, but the request went to %s; start again", back.Platform.Title(), f.Platform.Title())
	case hostOf(f.Server) != back.Server:
		return out, refusef(bridge.CodeValidation, "nothing was connected: the response came from another server than %s, to which the request went; "+
			"do not connect accounts there", hostOf(f.Server))
	case query.Has("error"):
		return out, denied(f.Platform.Title(), query.Get("error"))
	case query.Get("code") == "":
		return out, refusef(bridge.CodeValidation, "nothing was connected: %s sent no code; start again", f.Platform.Title())
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	choices, err := s.exchange(ctx, f, query)
	if err != nil {
		return out, err
	}
	if f.Reconnect == "" && len(choices) > 1 {
		out.Options = s.options(f, choices)
		out.Pending = s.Sealer.Seal(purposeChoice, &pending{Flow: *f, Choices: choices}, flowLife)
		return out, nil
	}
	if out.Connection, out.Renewed, err = s.connect(ctx, v, f, choices); err == nil {
		s.markAppUsed(ctx, f)
	}
	return out, err
}

// open returns the visitor's flow with this state.
func (s *Service) open(v Visitor, state string, cookie func(string) string) (*flow, error) {
	// rand.Text writes only these characters; others must not become part of a cookie's name.
	if state == "" || strings.ContainsFunc(state, func(r rune) bool { return (r < 'A' || r > 'Z') && (r < '2' || r > '7') }) {
		return nil, errUnknownFlow
	}
	var f flow
	sealed := cookie(s.cookie(state, "", 0).Name)
	if sealed == "" || s.Sealer.Open(purposeFlow, sealed, &f) != nil || f.State != state || !f.belongs(v) {
		return nil, errUnknownFlow
	}
	return &f, nil
}

// denied returns the error to show for an OAuth error code. error_description is not shown: anyone can put arbitrary
// text into a callback link.
func denied(name, code string) error {
	if code == "access_denied" || code == "user_denied" {
		return refusef(bridge.CodeValidation, "nothing was connected, since access was not allowed on %s; connect the account again if that was by mistake", name)
	}
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool {
		return r != '_' && !unicode.IsLower(r) && !unicode.IsDigit(r) || r > unicode.MaxASCII
	}) {
		code = "unknown"
	}
	return refusef(bridge.CodeValidation, "nothing was connected: %s refused with the error %s; if this happens again, "+
		"the administrator has to check the app's redirect URI and permissions there", name, code)
}

func (s *Service) exchange(ctx context.Context, f *flow, query url.Values) ([]platforms.Choice, error) {
	code := platforms.Code{Value: query.Get("code"), RedirectURI: s.redirect(f), Verifier: f.Verifier}
	if f.Begun != "" {
		return s.finish(ctx, f, code, query.Get("iss"))
	}
	connector, err := s.connector(f)
	if err != nil {
		return nil, err
	}
	token, err := connector.Exchange(ctx, code)
	if err != nil {
		return nil, s.explain(ctx, f, err)
	}
	choices, err := connector.Choices(ctx, token)
	if err != nil {
		return nil, s.explain(ctx, f, err)
	}
	return choices, nil
}

func (s *Service) explain(ctx context.Context, f *flow, err error) error {
	failure, ok := errors.AsType[*platforms.Error](err)
	if !ok {
		return err
	}
	s.Log.WarnContext(ctx, "An account was not connected", "person", f.Person, "namespace", f.Space, "platform", f.Platform,
		"class", failure.Class, "answer", failure.Error(), "cause", failure.Err)
	code := bridge.CodeReadinessUnavailable
	if failure.Class == platforms.ClassReconnect || failure.Class == platforms.ClassPermanent || failure.Class == platforms.ClassRefresh {
		code = bridge.CodeValidation
	}
	return refusef(code, "nothing was connected: %s", failure.Error())
}

func (s *Service) options(f *flow, choices []platforms.Choice) []Option {
	taken := map[string]string{}
	for _, c := range s.Connections.List(f.Space) {
		if c.Spec.Platform == f.Platform && c.DeletionTimestamp.IsZero() {
			taken[c.Spec.AccountID] = c.Name
		}
	}
	options := make([]Option, len(choices))
	for i, c := range choices {
		options[i] = Option{Identity: c.Identity, Connection: taken[c.Identity.AccountID]}
	}
	slices.SortStableFunc(options, func(a, b Option) int { return strings.Compare(a.Identity.DisplayName, b.Identity.DisplayName) })
	return options
}

// Choose connects the account with this id, one of the options that Callback returned. sealed is Outcome.Pending.
func (s *Service) Choose(ctx context.Context, v Visitor, sealed, accountID string) (Outcome, error) {
	var p pending
	if s.Sealer.Open(purposeChoice, sealed, &p) != nil || !p.Flow.belongs(v) {
		return Outcome{}, errUnknownFlow
	}
	if err := v.May(ctx, p.Flow.Space, p.Flow.verb()); err != nil {
		return Outcome{}, err
	}
	out := Outcome{Namespace: p.Flow.Space}
	i := slices.IndexFunc(p.Choices, func(c platforms.Choice) bool { return c.Identity.AccountID == accountID })
	if i < 0 {
		return out, refusef(bridge.CodeValidation, "nothing was connected: choose one of the offered accounts")
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTimeout)
	defer cancel()
	var err error
	if out.Connection, out.Renewed, err = s.connect(ctx, v, &p.Flow, p.Choices[i:i+1]); err == nil {
		s.markAppUsed(ctx, &p.Flow)
	}
	return out, err
}
