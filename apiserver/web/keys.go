// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"strings"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
)

func (s *Site) keys(w http.ResponseWriter, v *visit) error {
	return s.showKeys(w, v, http.StatusOK)
}

// showKeys shows the keys below the given nodes, such as a new token.
func (s *Site) showKeys(w http.ResponseWriter, v *visit, status int, first ...g.Node) error {
	all, err := s.Service.ListKeys(v.Context(), v.caller)
	if err != nil {
		return err
	}
	content := first
	if len(all) == 0 {
		content = append(content, empty("No API key yet", "Programs and agents post with their own keys, through the REST API or MCP."))
	} else {
		content = append(content, h.Ul(h.Class("accounts"), g.Map(all, func(k bridge.APIKey) g.Node { return s.keyCard(v, k) })))
	}
	if v.may.createKeys {
		content = append(content, s.keyForm(v))
	}
	s.render(w, v, status, view{title: "API keys", place: placeKeys, content: content})
	return nil
}

func (s *Site) keyForm(v *visit) g.Node {
	return h.Section(h.Class("card"), h.H2(g.Text("New API key")),
		form(v.path("keys"), "",
			h.P(h.Class("field"), h.Label(h.For("description"), g.Text("What is it for?")),
				h.Input(h.ID("description"), h.Name("description"), h.Required(), h.MaxLength("500"), h.AutoComplete("off"), h.Placeholder("the newsletter's script"))),
			h.P(h.Class("field"), h.Label(h.For("ends"), g.Text("It works until")),
				h.Select(h.ID("ends"), h.Name("ends"), h.Option(h.Value(""), g.Text("it is revoked")), h.Option(h.Value("30"), g.Text("30 days from now")),
					h.Option(h.Value("90"), g.Text("90 days from now")), h.Option(h.Value("365"), g.Text("a year from now")))),
			g.If(v.may.writeNotifiers(), h.P(h.Class("box"), h.Input(h.Type("checkbox"), h.ID("notifiers"), h.Name("permission"), h.Value(string(v1alpha1.PermissionNotifiers))),
				h.Label(h.For("notifiers"), g.Text("It may also change notifications, which send the team's data to others")))),
			submit("Create a key", "primary"),
		))
}

// keyStates are the labels and tones of key states.
var keyStates = map[bridge.KeyState]struct {
	tone  tone
	label string
}{
	bridge.KeyActive: {good, "Works"}, bridge.KeyExpired: {neutral, "Has ended"}, bridge.KeyRevoked: {neutral, "Revoked"},
}

func (s *Site) keyCard(v *visit, k bridge.APIKey) g.Node {
	state, at := keyStates[k.State], v.path("keys/"+k.ID)
	return h.Li(h.Class("card account"), h.ID(k.ID),
		h.Div(h.Class("target-head"), h.Span(h.Class("account"), h.H2(g.Text(describe(k))), h.Span(h.Class("soft"), g.Text(k.ID))), h.Span(h.Class("badge kind-"+string(state.tone)), g.Text(state.label))),
		h.Dl(h.Class("small"),
			g.Map(k.Tokens, func(t bridge.KeyToken) g.Node {
				return token(v, t)
			}),
			fact("Last used", lastUsed(v, k)),
			g.If(slices.Contains(k.Permissions, v1alpha1.PermissionNotifiers), fact("May also", g.Text("change notifications"))),
			g.If(!k.ExpiresAt.IsZero(), fact("Works until", v.moment(k.ExpiresAt))),
			g.If(k.Author != "", fact("Made by", g.Text(s.personNamed(v, k.Author)))),
		),
		g.If(v.may.changeKeys && k.State == bridge.KeyActive, h.Div(h.Class("actions"),
			g.If(len(k.Tokens) < 2, form(at+"/roll", "", submit("Create a second token", "small"))),
			g.Iff(len(k.Tokens) > 1, func() g.Node {
				return form(at+"/drop", "Stop the older token? Programs that still use it will be rejected.", hidden("token", k.Tokens[0].Name), submit("Stop the older token", "small danger"))
			}),
			form(at+"/revoke", "Revoke this key? Programs that use it are rejected immediately and permanently.", submit("Revoke", "small danger")),
		)),
	)
}

func token(v *visit, t bridge.KeyToken) g.Node {
	// A token created by this request is newer than the request.
	made := t.CreatedAt
	if !made.Before(v.now) {
		made = v.now.Add(-time.Millisecond)
	}
	return fact("Token",
		g.If(t.Shown != "", h.Code(g.Text(t.Shown+"…"))), g.If(t.Shown == "", g.Text(t.Name)),
		g.If(!t.CreatedAt.IsZero(), g.Group{g.Text(", made "), v.about(made)}),
		g.If(t.Secret != "" && v.may.seeMembers, g.Group{g.Text(", in the Secret "), h.Code(g.Text(t.Secret))}))
}

func describe(k bridge.APIKey) string {
	if k.Description != "" {
		return k.Description
	}
	return k.ID
}

func lastUsed(v *visit, k bridge.APIKey) g.Node {
	if k.LastUsedAt.IsZero() {
		return g.Text("never")
	}
	return v.about(k.LastUsedAt)
}

// createKey creates a key and shows its token, which no other page shows.
func (s *Site) createKey(w http.ResponseWriter, v *visit) error {
	if _, err := s.readForm(w, v); err != nil {
		return err
	}
	var until time.Time
	for _, choice := range []struct {
		value string
		days  int
	}{{"30", 30}, {"90", 90}, {"365", 365}} {
		if v.PostForm.Get("ends") == choice.value {
			until = s.Clock.Now().AddDate(0, 0, choice.days)
		}
	}
	var permissions []v1alpha1.KeyPermission
	if v.PostForm.Get("permission") == string(v1alpha1.PermissionNotifiers) {
		if !v.may.writeNotifiers() { // users must not grant rights that they lack
			return forbidden(createNotifiers, v)
		}
		permissions = append(permissions, v1alpha1.PermissionNotifiers)
	}
	made, err := s.Service.CreateKey(v.Context(), v.caller, strings.TrimSpace(v.PostForm.Get("description")), until, permissions...)
	if err != nil {
		return err
	}
	return s.showKeys(w, v, http.StatusCreated, shown(made))
}

func shown(made bridge.NewToken) g.Node {
	return h.Section(h.Class("note good once"), h.Role("status"), drawing("check"), h.Div(
		h.P(h.Strong(g.Text("Copy the token now. It is not shown again."))),
		h.P(h.Code(h.ID("token"), g.Text(made.Token)), h.Button(h.Type("button"), h.Class("button small"), h.Data("copy", "#token"), g.Text("Copy"))),
		h.P(h.Class("soft"), g.Text("It belongs to the key "+made.Key+". Send it with each request, after the word Bearer in the Authorization header."))))
}

// changeKey revokes a key, or adds or removes a token.
func (s *Site) changeKey(w http.ResponseWriter, v *visit) error {
	id := v.PathValue("id")
	switch v.PathValue("act") {
	case "roll":
		made, err := s.Service.RollKey(v.Context(), v.caller, id)
		if err != nil {
			return err
		}
		return s.showKeys(w, v, http.StatusOK, shown(made))
	case "drop":
		if _, err := s.readForm(w, v); err != nil {
			return err
		}
		if err := s.Service.RemoveToken(v.Context(), v.caller, id, v.PostForm.Get("token")); err != nil {
			return err
		}
		v.redirect(w, "keys", "dropped")
	case "revoke":
		if err := s.Service.RevokeKey(v.Context(), v.caller, id); err != nil {
			return err
		}
		v.redirect(w, "keys", "revoked")
	default:
		s.absent(w, v.Request)
	}
	return nil
}
