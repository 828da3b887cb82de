// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

func (s *Site) post(w http.ResponseWriter, v *visit) error {
	post, err := s.Service.ReadPost(v.Context(), v.caller, v.PathValue("id"))
	if err != nil {
		return err
	}
	v.settled = !posting.Unfinished(posting.Of(post).Phase())
	summary := s.Service.Summarise(post)
	s.render(w, v, http.StatusOK, view{
		title: s.nameOfPost(v, post), before: onTab(&summary), place: placePosts, without: reloads(post),
		actions: s.actions(v, post),
		content: []g.Node{
			h.Div(h.ID("live"), g.If(!finished(post), h.Data("events", v.path("posts/"+post.Name+"/events"))), h.Aria("live", "polite"), s.live(v, post)),
			h.Section(h.Class("card"), h.H2(g.Text("Content")), s.content(v, post)),
		},
	})
	return nil
}

// reloads tells users without scripts to reload the page of an unfinished post.
func reloads(post *v1alpha1.Post) string {
	if finished(post) {
		return ""
	}
	return "Reload to see the latest status."
}

// finished reports whether a post no longer changes unless a user acts.
func finished(post *v1alpha1.Post) bool {
	switch posting.Of(post).Phase() {
	case v1alpha1.PhaseFailed:
		// A user may still resolve a target.
		return !slices.ContainsFunc(post.Status.Targets, func(t v1alpha1.TargetStatus) bool { return posting.StateOf(&t) == v1alpha1.TargetUndecided })
	case v1alpha1.PhasePosted, v1alpha1.PhaseCancelled:
		return true
	case v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseProcessing:
		return false
	default:
		return false
	}
}

func (s *Site) nameOfPost(v *visit, post *v1alpha1.Post) string {
	title := posting.Of(post).Heading(func(i int) v1alpha1.Platform { return s.platformOf(v, post, i) })
	if title == "" {
		return categories[post.Spec.Category] + " post"
	}
	return title
}

// platformOf returns a target's platform, or "" if its account never existed.
func (s *Site) platformOf(v *visit, post *v1alpha1.Post, i int) v1alpha1.Platform {
	if target := posting.Of(post).Target(i); target != nil && target.Platform != "" {
		return target.Platform
	}
	return s.platforms(v)(post.Spec.Targets[i].ConnectionRef.Name)
}

// account returns one of the team's connections, or nil if there is none or the user may not see accounts.
func (s *Site) account(v *visit, name string) *v1alpha1.Connection {
	if !v.may.seeAccounts {
		return nil
	}
	return s.Service.Connections.Get(v.namespace, name)
}

// called returns an account's display name. People who may not see accounts get its object name.
func (v *visit) called(account *v1alpha1.Connection, name string) string {
	if !v.may.seeAccounts {
		return name
	}
	return nameOfAccount(account, name)
}

// actions are the buttons for a post.
func (s *Site) actions(v *visit, post *v1alpha1.Post) []g.Node {
	var out []g.Node
	at := v.path("posts/" + post.Name)
	editable := posting.Of(post).Cancellable()
	if v.may.edit() && editable {
		out = append(out, link(at+"/edit", "Edit", "primary"))
	}
	if v.may.compose() {
		out = append(out, link(v.path("posts/new")+"?from="+post.Name, "Duplicate", ""))
	}
	if v.may.update && editable {
		question := "Cancel this post? It will not be published, and it leaves the lists."
		out = append(out, form(at+"/cancel", question, submit("Cancel post", "danger")))
	}
	return out
}

// onTab returns the prefix for a post's title in the browser tab.
func onTab(summary *postindex.Summary) string {
	if displayStatusOf(summary) == needsAnswer {
		return needsAnswer.word + ": "
	}
	return ""
}

// live is the part of the page that changes during delivery.
func (s *Site) live(v *visit, post *v1alpha1.Post) g.Node {
	view, summary := posting.Of(post), s.Service.Summarise(post)
	return g.Group{
		s.undoCountdown(v, post),
		h.Section(h.Class("card facts"), g.If(!posting.Unfinished(view.Phase()), h.Data("settled", "")), h.Data("tab", onTab(&summary)), h.Dl(
			fact("State", displayStatusOf(&summary).badge()),
			fact("Kind", g.Text(categories[post.Spec.Category])),
			s.when(v, post),
			fact("Created", v.moment(view.Created()), s.author(v, post)),
			g.Iff(post.Spec.RetryOf != nil, func() g.Node {
				return fact("Sent again", h.A(h.Href(v.path("posts/"+post.Spec.RetryOf.Name)), g.Text("Open the post that failed")))
			}),
		)),
		s.refusal(post),
		s.requestedTime(v, post),
		g.Iff(v.may.update && v.isUnhandled(&summary), func() g.Node {
			return notice(caution, paragraph("Send it again where it failed, or dismiss it: until then, it counts as needing attention for 7 days."), v.dismissForm(post.Name, "", ""))
		}),
		h.Section(h.Class("card"), h.H2(g.Text("Where it goes")),
			h.Ul(h.Class("targets"), g.Map(indexes(len(post.Spec.Targets)), func(i int) g.Node { return s.target(v, post, i, summary.Archived) }))),
		h.Section(h.Class("card"), h.H2(g.Text("What happened")), s.timeline(v, post)),
	}
}

func fact(name string, value ...g.Node) g.Node {
	return h.Div(h.Dt(g.Text(name)), h.Dd(g.Group(value)))
}

func (s *Site) when(v *visit, post *v1alpha1.Post) g.Node {
	switch view, at := posting.Of(post), post.Spec.ScheduledAt; {
	case view.Phase() == v1alpha1.PhasePosted:
		return fact("Posted", v.moment(view.DisplayAt()))
	case at != nil:
		return fact("Scheduled for", v.moment(at.Time), g.Text(" ("), v.about(at.Time), g.Text(")"), g.If(v.may.update && view.Phase() == v1alpha1.PhaseScheduled,
			h.Details(h.ID("move"), h.Class("move"), h.Summary(g.Text("Move")), v.moveForm(post.Name, at.Time))))
	case post.Spec.Draft:
		return fact("Scheduled for", g.Text("no time yet"))
	default:
		return fact("Scheduled for", g.Text("at once"))
	}
}

// requestedTime shows that an agent's draft is waiting for a user, and when the agent wanted to publish it.
func (s *Site) requestedTime(v *visit, post *v1alpha1.Post) g.Node {
	at, now := requestedAt(post)
	if at == nil && !now {
		return nil
	}
	when := g.Text("at once")
	if at != nil {
		when = g.Group{g.Text("on "), v.moment(at.Time)}
	}
	claim := " The agent "
	if !bridge.IsCreated(post.Name) {
		claim = " It claims that the agent "
	}
	return notice(caution, h.P(h.Strong(g.Text("This post waits for a user.")), g.Text(claim), h.Strong(g.Text(post.Annotations[v1alpha1.AgentAnnotation])), g.Text(" wanted to publish it "), when,
		g.If(v.may.update, g.Text(". Edit it to publish it, or cancel it.")), g.If(!v.may.update, g.Text("."))))
}

// requestedAt returns the time at which an agent wanted to publish a draft. now reports that it wanted to publish
// immediately.
func requestedAt(post *v1alpha1.Post) (at *v1alpha1.Time, now bool) {
	value := post.Annotations[v1alpha1.WantedAtAnnotation]
	if !post.Spec.Draft || posting.Of(post).Cancelled() || value == "" {
		return nil, false
	}
	parsed, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return nil, value == v1alpha1.WantedNow
	}
	return v1alpha1.NewTimePtr(parsed), false
}

// author shows who created a post. An agent chooses its own name, which is marked as such, and may act for a user.
// The annotations on a post that the apiserver did not create are not trusted: any user may have written them before
// the admission policy was installed.
func (s *Site) author(v *visit, post *v1alpha1.Post) g.Node {
	by, agent := post.Annotations[v1alpha1.AuthorAnnotation], h.Strong(g.Text(post.Annotations[v1alpha1.AgentAnnotation]))
	if owner := metav1.GetControllerOf(post); owner != nil && owner.Kind == "PostSchedule" {
		return g.Group{g.Text(", by the schedule "), g.If(v.may.seeSchedules, h.A(h.Href(v.path(pageSchedules)+"#"+owner.Name), g.Text(owner.Name))), g.If(!v.may.seeSchedules, g.Text(owner.Name))}
	}
	claims := ", by "
	if !bridge.IsCreated(post.Name) {
		claims = ", claims to be by "
	}
	switch known := post.Annotations[v1alpha1.AgentAnnotation] != ""; {
	case known && by != "":
		return g.Group{g.Text(claims), agent, g.Text(" for " + s.personNamed(v, by))}
	case known:
		return g.Group{g.Text(claims), agent, g.Text(", an agent")}
	case by == "" && post.Labels[v1alpha1.OriginLabel] == v1alpha1.OriginAPI:
		by = "the API"
	}
	return g.If(by != "", g.Text(claims+s.personNamed(v, by)))
}

func (s *Site) refusal(post *v1alpha1.Post) g.Node {
	for i := range post.Status.Conditions {
		c := &post.Status.Conditions[i]
		if c.Type == v1alpha1.ConditionAccepted && c.Status == "False" {
			return notice(caution, paragraph(sentence(c.Message)))
		}
	}
	return nil
}

func indexes(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func (s *Site) target(v *visit, post *v1alpha1.Post, i int, archived bool) g.Node {
	name := post.Spec.Targets[i].ConnectionRef.Name
	account, platform := s.account(v, name), s.platformOf(v, post, i)
	view := posting.Of(post)
	status, phase, mark := view.Target(i), view.TargetPhase(i), view.Mark(i)
	undecided := mark == v1alpha1.MarkUndecided
	return h.Li(h.Class("target"),
		h.Div(h.Class("target-head"), avatar(account, platform), h.Span(h.Class("account"), h.Strong(g.Text(v.called(account, name))), h.Span(h.Class("soft"), g.Text(platform.Title()))),
			targetStatusOf(postindex.PlatformStatus{Platform: platform, Status: phase, Mark: mark}, archived).badge(),
			g.Iff(status != nil && status.ExternalURL != "", func() g.Node { return elsewhere(status.ExternalURL, "Open on "+platform.Title()) }),
		),
		g.Iff(status != nil && phase != v1alpha1.PhasePosted && status.Message != "", func() g.Node { return s.trouble(v, post, i, phase) }),
		g.Iff(undecided && !archived && v.may.update, func() g.Node { return s.verdict(v, post, i) }),
		g.If(v.may.compose() && view.Retriable(i), v.linkToSendAgain(post, i, platform)),
		g.Iff(status != nil && status.RetriedBy != "", func() g.Node {
			return h.P(link(v.path("posts/"+status.RetriedBy), "Open the post that sends it again", "small"))
		}),
	)
}

func (s *Site) trouble(v *visit, post *v1alpha1.Post, i int, phase v1alpha1.PostPhase) g.Node {
	status := posting.Of(post).Target(i)
	how := neutral
	if status.Blocked != nil {
		how = caution
	}
	if phase == v1alpha1.PhaseFailed && !attempt.Undecided(status) {
		how = bad
	}
	return notice(how, paragraph(v.explain(status)),
		g.Iff(status.NextTryAt != nil && phase != v1alpha1.PhaseFailed, func() g.Node {
			return h.P(h.Class("soft"), g.Text("The next try is "), v.about(status.NextTryAt.Time), g.Text("."))
		}),
		g.If(v.may.seeAccounts && status.Blocked != nil && status.Blocked.Reason == v1alpha1.ReasonConnectionNotReady, h.P(link(v.path("connections"), "Look at the account", "small"))),
	)
}

// avatar is an account's picture, with the platform's chip.
func avatar(account *v1alpha1.Connection, platform v1alpha1.Platform) g.Node {
	icon := ""
	if account != nil {
		icon = platforms.PictureURL(account.Status.IconURL)
	}
	return h.Span(h.Class("avatar"),
		g.If(icon == "", h.Span(h.Class("blank"), h.Aria("hidden", "true"))),
		g.If(icon != "", h.Img(h.Src(icon), h.Alt(""), h.Width("40"), h.Height("40"), h.Loading("lazy"), g.Attr("referrerpolicy", "no-referrer"))),
		chip(platform),
	)
}

func nameOfAccount(account *v1alpha1.Connection, name string) string {
	switch {
	case account == nil:
		return name + " (disconnected)"
	case account.Status.AccountName != "":
		return account.Status.AccountName
	case account.Status.Username != "":
		return "@" + account.Status.Username
	default:
		return account.Spec.AccountID
	}
}

func (s *Site) content(v *visit, post *v1alpha1.Post) g.Node {
	v.pictures.players, v.pictures.moment = true, momentOf(&post.Spec)
	if tree := post.Spec.Tree; tree != nil {
		return g.Group{h.Ol(h.Class("cards"), g.Map(tree.Cards, func(card v1alpha1.TreeCard) g.Node {
			return h.Li(h.P(h.Class("caption"), h.Dir("auto"), g.Text(card.Caption)), s.shownFiles(v, card.MediaRefs))
		})), s.targetOptions(v, post)}
	}
	var media []v1alpha1.MediaReference
	if post.Spec.Image != nil {
		media = post.Spec.Image.MediaRefs
	}
	if post.Spec.Video != nil {
		media = []v1alpha1.MediaReference{post.Spec.Video.MediaRef}
	}
	return g.Group{s.shownFiles(v, media), s.captions(v, post), s.targetOptions(v, post)}
}

// captions shows each caption once, with its accounts.
func (s *Site) captions(v *visit, post *v1alpha1.Post) g.Node {
	type text struct {
		caption, title string
		accounts       []g.Node
	}
	var texts []*text
	for i := range post.Spec.Targets {
		t := &post.Spec.Targets[i]
		title := ""
		if t.YouTube != nil {
			title = t.YouTube.Title
		}
		var found *text
		for _, other := range texts {
			if other.caption == t.Caption && other.title == title {
				found = other
			}
		}
		if found == nil {
			found = &text{caption: t.Caption, title: title}
			texts = append(texts, found)
		}
		found.accounts = append(found.accounts, chip(s.platformOf(v, post, i)))
	}
	return g.Map(texts, func(t *text) g.Node {
		return h.Div(h.Class("caption-of"), h.P(h.Class("chips"), g.Group(t.accounts)),
			g.If(t.title != "", h.P(h.Dir("auto"), h.Strong(g.Text(t.title)))), h.P(h.Class("caption"), h.Dir("auto"), g.Text(t.caption)))
	})
}
