// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting/plan"
)

// warnBefore is how long in advance users are warned that they have to connect an account again.
const warnBefore = 14 * 24 * time.Hour

type accountState struct {
	tone        tone
	label, text string
	// reconnect reports that connecting the account again solves the problem.
	reconnect bool
	// person reports that the state does not resolve itself.
	person bool
}

func stateOf(c *v1alpha1.Connection, now time.Time) accountState {
	ready := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionReady)
	switch by := c.Status.ReconnectBy; {
	case c.Spec.Disabled:
		return accountState{tone: neutral, label: "Disabled", text: "Nothing is published to it while it is disabled."}
	case beingChecked(c, now):
		return accountState{tone: neutral, label: "Being checked", text: "Herald is asking the platform about the account."}
	case ready.Status != metav1.ConditionTrue:
		return accountState{
			tone: bad, label: "Not ready", text: sentence(ready.Message),
			reconnect: !slices.Contains([]string{v1alpha1.ReasonPlatformUnavailable, v1alpha1.ReasonAccountRestricted, v1alpha1.ReasonPlanLimit, v1alpha1.ReasonNoTeam}, ready.Reason),
			person:    ready.Reason != v1alpha1.ReasonPlatformUnavailable,
		}
	case restricted(c) != "":
		return accountState{tone: bad, label: "Restricted", text: sentence(restricted(c)), person: true}
	case c.Status.RateLimitedUntil != nil && c.Status.RateLimitedUntil.After(now):
		return accountState{tone: caution, label: "Limited", text: sentence(cmp.Or(c.Status.RateLimitedMessage, "the platform does not accept calls at the moment"))}
	case by != nil && by.Sub(now) < 0:
		return accountState{tone: caution, label: "Ended", text: "It had to be reconnected " + distance(by.Sub(now)) + ".", reconnect: true, person: true}
	case by != nil && by.Sub(now) < warnBefore:
		return accountState{tone: caution, label: "Ends soon", text: "It must be reconnected " + distance(by.Sub(now)) + ".", reconnect: true, person: true}
	default:
		return accountState{tone: good, label: "Ready"}
	}
}

// restricted returns the platform's reason for blocking publishing until the account's owner acts, or "".
func restricted(c *v1alpha1.Connection) string {
	if refused := meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionPublishingRefused); refused != nil && refused.Reason == v1alpha1.ReasonAccountRestricted {
		return refused.Message
	}
	return ""
}

// accounts returns the team's accounts, sorted by platform and name, or none if the user may not see them.
func (s *Site) accounts(v *visit) []*v1alpha1.Connection {
	if !v.may.seeAccounts {
		return nil
	}
	all := slices.DeleteFunc(s.Service.Connections.List(v.namespace), func(c *v1alpha1.Connection) bool { return !c.DeletionTimestamp.IsZero() })
	order := v1alpha1.Platforms()
	slices.SortFunc(all, func(a, b *v1alpha1.Connection) int {
		return cmp.Or(slices.Index(order, a.Spec.Platform)-slices.Index(order, b.Spec.Platform), cmp.Compare(a.Name, b.Name))
	})
	return all
}

func (s *Site) connections(w http.ResponseWriter, v *visit) error {
	accounts := s.accounts(v)
	view := view{title: "Accounts", place: placeAccounts}
	if limit := plan.LimitsOf(v.team).Accounts; limit > 0 {
		view.content = append(view.content, h.P(h.Class("soft"), g.Text(roomFor(limit, accounts))))
	}
	if len(accounts) == 0 {
		view.content = append(view.content, empty("No account is connected yet", "Choose a platform below. Choose the account there; you will return here."))
	} else {
		view.content = append(view.content, h.Ul(h.Class("accounts"), s.watch(v, accounts), g.Map(accounts, func(c *v1alpha1.Connection) g.Node { return s.accountCard(v, c) })))
	}
	if v.may.connect {
		view.content = append(view.content, s.connectButtons(v))
	}
	s.render(w, v, http.StatusOK, view)
	return nil
}

// roomFor describes how many of the plan's accounts are used. Disabled accounts do not count.
func roomFor(limit int, accounts []*v1alpha1.Connection) string {
	used := 0
	for _, c := range accounts {
		if !c.Spec.Disabled {
			used++
		}
	}
	text := "The plan has room for " + plural(limit, "account") + "; " + plural(used, "account") + " in use"
	if disabled := len(accounts) - used; disabled > 0 {
		text += ", not counting " + strconv.Itoa(disabled) + " disabled"
	}
	return text + "."
}

// connectButtons are the buttons for the platforms that this installation has an app for.
func (s *Site) connectButtons(v *visit) g.Node {
	offered := s.Connect.Available()
	if len(offered) == 0 {
		return notice(neutral, paragraph("No platform's app is configured, so accounts cannot be connected here. "+
			"An administrator of this installation can set one up for each platform."))
	}
	return h.Section(h.Header(h.Class("section"), h.H2(g.Text("Connect an account"))),
		h.Ul(h.Class("connect"), g.Map(v1alpha1.Platforms(), func(p v1alpha1.Platform) g.Node {
			return g.If(slices.Contains(offered, p), h.Li(form(v.path("connections/connect"), "", hidden("platform", string(p)),
				h.Button(h.Type("submit"), h.Class("button"), chip(p), g.Text("Connect "+p.Title())))))
		})))
}

// reconnectForm leads to the platform's consent for an account, unless the person may not connect it here.
func (s *Site) reconnectForm(v *visit, c *v1alpha1.Connection, button g.Node) g.Node {
	return g.If(v.may.reconnect && slices.Contains(s.Connect.Available(), c.Spec.Platform),
		form(v.path("connections/connect"), "", hidden("platform", string(c.Spec.Platform)), hidden("connection", c.Name), button))
}

func (s *Site) accountCard(v *visit, c *v1alpha1.Connection) g.Node {
	state := stateOf(c, v.now)
	return h.Li(h.Class("card account"), h.ID(c.Name),
		h.Div(h.Class("target-head"), avatar(c, c.Spec.Platform),
			h.Span(h.Class("account"), h.H2(g.Text(nameOfAccount(c, c.Name))),
				h.Span(h.Class("soft"), g.Text(handleOn(c)))),
			h.Span(h.Class("badge kind-"+string(state.tone)), g.Text(state.label))),
		g.If(state.text != "", notice(state.tone, paragraph(state.text))),
		h.Dl(h.Class("small"),
			g.Iff(c.Status.ConnectedAt != nil, func() g.Node { return fact("Connected", v.moment(c.Status.ConnectedAt.Time)) }),
			g.Iff(c.Status.ReconnectBy != nil, func() g.Node { return fact("Connect again before", v.moment(c.Status.ReconnectBy.Time)) }),
			g.Iff(c.Status.LastProbedAt != nil, func() g.Node { return fact("Checked", v.about(c.Status.LastProbedAt.Time)) }),
			g.Map(c.Status.RateLimits, func(l v1alpha1.RateLimit) g.Node { return s.limit(v, l) }),
			g.If(v.may.listKeys, fact("Id", h.Code(g.Text(c.Name)))),
		),
		h.Div(h.Class("actions"),
			s.reconnectForm(v, c, submit("Connect again", classes("small", state.reconnect, "primary"))),
			g.If(v.may.disconnect, form(v.path("connections/"+c.Name+"/disconnect"),
				"Disconnect "+nameOfAccount(c, c.Name)+"? Posts that are scheduled for it will not be published there.", submit("Disconnect", "small danger"))),
		),
	)
}

// handleOn returns an account's platform and username, to distinguish accounts with the same name.
func handleOn(c *v1alpha1.Connection) string {
	if c.Status.Username == "" {
		return c.Spec.Platform.Title()
	}
	return c.Spec.Platform.Title() + ", @" + c.Status.Username
}

var limitNames = map[string]string{
	"postsPerDay": "Posts left in 24 hours", "repliesPerDay": "Replies left in 24 hours", "postsPerWindow": "Posts left in this window",
	"appPostsPerDay": "Posts left for all accounts", "usage": "Calls left, percent", "appUsage": "Calls left for all accounts, percent",
}

func (s *Site) limit(v *visit, l v1alpha1.RateLimit) g.Node {
	left := strconv.Itoa(int(l.Remaining))
	if l.Limit > 0 {
		left += " of " + strconv.Itoa(int(l.Limit))
	}
	return fact(cmp.Or(limitNames[l.Name], l.Name), g.Text(left), g.Iff(l.ResetsAt != nil && l.ResetsAt.After(v.now), func() g.Node {
		return g.Group{g.Text(", more "), v.about(l.ResetsAt.Time)}
	}))
}
