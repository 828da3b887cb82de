// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/posting"
)

// bulkAct is an action on several posts.
type bulkAct string

const (
	bulkMove    bulkAct = "move"
	bulkCancel  bulkAct = "cancel"
	bulkPublish bulkAct = "publish"
	// bulkCopy copies posts to new drafts; bulkWithdraw also cancels scheduled posts. They are offered after other
	// actions.
	bulkCopy     bulkAct = "copy"
	bulkWithdraw bulkAct = "withdraw"
)

const (
	// maxBulk limits the posts in one action. No page of a list has more.
	maxBulk = 100
	// maxDays is the maximum number of days by which one action can move posts.
	maxDays = 366
	// bulkReads limits the posts that are read concurrently.
	bulkReads = 8
)

// bulkPlan is the planned effect of an action on one post.
type bulkPlan struct {
	id, heading string
	// refused is the reason why the action does not apply to the post; empty if it applies.
	refused string
	// from and to are a scheduled post's times. For a draft, to is its publication time, or nil for immediately.
	from, to *time.Time
	version  string
	// uncopied reports that a withdrawn post was canceled, but not copied.
	uncopied bool
}

// bulk is a request for an action on several posts.
type bulk struct {
	act   bulkAct
	days  int
	posts []string
	// back is the URL of the list from which the posts were selected.
	back string
}

// bulkOf parses an action in an address.
func (v *visit) bulkOf() (*bulk, error) {
	query := v.URL.Query()
	b := &bulk{act: bulkAct(query.Get("act")), posts: distinctIDs(query["post"]), back: v.listAddress(query.Get("back")), days: 1}
	if number, err := strconv.Atoi(query.Get("days")); err == nil {
		b.days = min(max(number, -maxDays), maxDays)
	}
	switch {
	case b.act != bulkMove && b.act != bulkCancel && b.act != bulkPublish:
		return nil, &bridge.Error{Code: bridge.CodeValidation, Message: "choose what to do with the posts"}
	case len(b.posts) == 0:
		return nil, &bridge.Error{Code: bridge.CodeValidation, Message: "no posts are selected; go back and select some"}
	case len(b.posts) > maxBulk:
		return nil, &bridge.Error{Code: bridge.CodeValidation, Message: "at most " + strconv.Itoa(maxBulk) + " posts can be changed at once"}
	}
	return b, nil
}

func distinctIDs(ids []string) (out []string) {
	for _, id := range ids {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
		if len(out) > maxBulk {
			break
		}
	}
	return out
}

// listAddress returns an address that belongs to a list of this team's posts, or else the address of the list of all posts.
func (v *visit) listAddress(address string) string {
	for _, page := range []place{placePosts, placeCalendar} {
		if own := localPath(address, v.path(string(page))); own != "" {
			return own
		}
	}
	return v.path(string(placePosts))
}

// confirmBulk shows an action's planned effect without changing posts.
func (s *Site) confirmBulk(w http.ResponseWriter, v *visit) error {
	b, err := v.bulkOf()
	if err != nil {
		return err
	}
	// Each read of a post counts as a request. One has already been counted.
	limits.MeterFrom(v.Context()).Whole(len(b.posts) - 1)
	plans, err := s.planBulk(v, b)
	if err != nil {
		return err
	}
	var ready, refused []*bulkPlan
	for _, p := range plans {
		if p.refused == "" {
			ready = append(ready, p)
		} else {
			refused = append(refused, p)
		}
	}
	s.render(w, v, http.StatusOK, view{title: b.question(len(ready)), place: placePosts, content: []g.Node{
		g.If(b.act == bulkMove, v.daysForm(b)),
		g.Iff(len(ready) > 0, func() g.Node { return b.readyCard(v, ready) }),
		g.If(len(ready) == 0, notice(caution, paragraph("None of the selected posts can be "+b.did()+"."))),
		g.If(len(refused) > 0, h.Section(h.Class("card"), h.H2(g.Text("Not "+b.did()+": "+plural(len(refused), "post"))), v.bulkList(refused))),
		g.If(len(ready) == 0, h.P(link(b.back, "Back to the list", ""))),
	}})
	return nil
}

// did is the action's past participle.
func (b *bulk) did() string {
	return map[bulkAct]string{bulkMove: "moved", bulkCancel: "cancelled", bulkPublish: "published"}[b.act]
}

func (b *bulk) question(n int) string {
	switch b.act {
	case bulkMove:
		if b.days == 0 {
			return "Move posts"
		}
		if b.days < 0 {
			return "Move " + plural(n, "post") + " " + plural(-b.days, "day") + " earlier"
		}
		return "Move " + plural(n, "post") + " " + plural(b.days, "day") + " later"
	case bulkCancel:
		return "Cancel " + plural(n, "post")
	case bulkPublish, bulkCopy, bulkWithdraw:
		return "Publish " + plural(n, "draft")
	default:
		return ""
	}
}

// effect describes an action's effect on posts, and whether it can be undone.
func (b *bulk) effect(v *visit, ready []*bulkPlan) string {
	switch b.act {
	case bulkMove:
		return "Each post keeps its time of day in " + v.zone.String() + ". You can undo this afterwards."
	case bulkCancel:
		if len(ready) == 1 {
			return "This post will not be published and will disappear from lists. This cannot be undone, but you can copy it to a new draft."
		}
		return "These posts will not be published and will disappear from lists. This cannot be undone, but you can copy them to new drafts."
	case bulkPublish, bulkCopy, bulkWithdraw:
		later := 0
		for _, p := range ready {
			if p.to != nil {
				later++
			}
		}
		out := ""
		if now := len(ready) - later; now > 0 {
			out = plural(now, "post") + " will be published now. This cannot be undone. "
		}
		if later > 0 {
			out += plural(later, "post") + " will be published at the time an agent asked for. You can take " + these(later) + " back until then."
		}
		return strings.TrimSpace(out)
	default:
		return ""
	}
}

// these returns the pronoun for n posts.
func these(n int) string {
	if n == 1 {
		return "it"
	}
	return "them"
}

// readyCard lists the posts to which an action applies, with the button that confirms it.
func (b *bulk) readyCard(v *visit, ready []*bulkPlan) g.Node {
	class := "primary"
	if b.act == bulkCancel {
		class = "danger"
	}
	return h.Section(h.Class("card"),
		h.P(g.Text(b.effect(v, ready))),
		v.bulkList(ready),
		form(v.path("bulk"), "", hidden("act", string(b.act)), hidden("back", b.back), hidden("key", rand.Text()), v.items(ready),
			h.P(h.Class("actions"), submit(b.question(len(ready)), class), link(b.back, "Back", ""))),
	)
}

// daysForm changes the number of days by which posts are moved.
func (v *visit) daysForm(b *bulk) g.Node {
	return h.Form(h.Method("get"), h.Action(v.path("bulk")), h.Class("inline"),
		hidden("act", string(b.act)), hidden("back", b.back), g.Map(b.posts, func(id string) g.Node { return hidden("post", id) }),
		h.Div(h.Class("field"), h.Label(h.For("days"), g.Text("Days")),
			h.Input(h.ID("days"), h.Type("number"), h.Name("days"), h.Min(strconv.Itoa(-maxDays)), h.Max(strconv.Itoa(maxDays)), h.Value(strconv.Itoa(b.days)), h.Required(), h.Aria("describedby", "days-help"))),
		submit("Update", "small"),
		h.P(h.ID("days-help"), h.Class("soft"), g.Text("A negative number moves posts earlier.")))
}

// items returns hidden form fields with an action's posts, and the times and versions that the user saw.
func (v *visit) items(of []*bulkPlan) g.Node {
	return g.Map(of, func(p *bulkPlan) g.Node {
		return g.Group{
			hidden("post", p.id),
			g.If(p.from != nil, timeField("from-"+p.id, p.from)), g.If(p.to != nil, timeField("to-"+p.id, p.to)),
			g.If(p.version != "", hidden("version-"+p.id, p.version)),
		}
	})
}

func timeField(name string, at *time.Time) g.Node {
	if at == nil {
		return nil
	}
	return hidden(name, at.UTC().Format(time.RFC3339Nano))
}

// bulkList shows posts with their times, or the reasons why the action does not apply.
func (v *visit) bulkList(plans []*bulkPlan) g.Node {
	return h.Ul(h.Class("bulk-list"), g.Map(plans, func(p *bulkPlan) g.Node {
		return h.Li(h.A(h.Href(v.path("posts/"+url.PathEscape(p.id))), g.Text(p.heading)),
			g.Iff(p.from != nil && p.to != nil, func() g.Node {
				return h.Span(h.Class("soft"), v.moment(*p.from), g.Text(" → "), v.moment(*p.to))
			}),
			g.Iff(p.from == nil && p.to != nil, func() g.Node { return h.Span(h.Class("soft"), g.Text("for "), v.moment(*p.to)) }),
			g.Iff(p.from != nil && p.to == nil, func() g.Node { return h.Span(h.Class("soft"), v.moment(*p.from)) }),
			g.If(p.refused != "", h.Span(h.Class("soft"), g.Text(sentence(p.refused)))))
	}))
}

// planBulk reads an action's posts, and returns a plan for each.
func (s *Site) planBulk(v *visit, b *bulk) ([]*bulkPlan, error) {
	plans := make([]*bulkPlan, len(b.posts))
	group, ctx := errgroup.WithContext(v.Context())
	group.SetLimit(bulkReads)
	for i, id := range b.posts {
		group.Go(func() error {
			post, err := s.Service.ReadPost(ctx, v.caller, id)
			if known, ok := errors.AsType[*bridge.Error](err); ok {
				plans[i] = &bulkPlan{id: id, heading: "A post", refused: known.Message}
				if known.Code == bridge.CodeNotFound { // the id may be any text in an address
					plans[i].heading, plans[i].refused = "A deleted post", "this team has no such post"
				}
				return nil
			}
			if err != nil {
				return err
			}
			summary := s.Service.Summarise(post)
			plans[i] = &bulkPlan{id: id, heading: headingOf(&summary)}
			s.planPost(ctx, v, b, post, plans[i])
			return nil
		})
	}
	return plans, group.Wait()
}

// planPost completes a post's plan.
func (s *Site) planPost(ctx context.Context, v *visit, b *bulk, post *v1alpha1.Post, p *bulkPlan) {
	view := posting.Of(post)
	phase := view.Phase()
	p.version = bridge.Version(post)
	if at := post.Spec.ScheduledAt; at != nil {
		p.from = &at.Time
	}
	switch {
	case b.act == bulkCancel && !view.Cancellable():
		p.refused = already(phase) + ". Only drafts and scheduled posts can be cancelled"
	case b.act == bulkCancel:
	case b.act == bulkMove && phase != v1alpha1.PhaseScheduled:
		p.refused = already(phase) + ". Only scheduled posts can be moved"
	case b.act == bulkMove:
		v.planMove(b, p)
	case phase != v1alpha1.PhaseDraft:
		p.refused = "not a draft (" + phases[phase] + ")"
	default:
		if at, _ := requestedAt(post); at != nil && at.After(v.now) {
			p.to = &at.Time
		}
		p.refused = s.problemOfDraft(ctx, v, post)
	}
}

// planMove moves a post by days. It rejects a time of day that the new day lacks or repeats: only a user can choose.
func (v *visit) planMove(b *bulk, p *bulkPlan) {
	from := p.from.In(v.zone)
	to := from.AddDate(0, 0, b.days)
	p.to = &to
	local := time.Date(from.Year(), from.Month(), from.Day()+b.days, from.Hour(), from.Minute(), from.Second(), from.Nanosecond(), time.UTC)
	switch found := instants(local, v.zone); {
	case b.days == 0:
		p.refused = "choose how many days earlier or later"
	case len(found) != 1:
		p.to, p.refused = nil, (&oddHour{local: local, zone: v.zone, twice: len(found) > 1}).Error()
	case !to.After(v.now):
		p.refused = "its new time would be in the past"
	}
}

// already names the state that prevents an action.
func already(phase v1alpha1.PostPhase) string {
	switch phase {
	case v1alpha1.PhasePosted, v1alpha1.PhaseCancelled, v1alpha1.PhaseProcessing:
		return "already " + strings.ToLower(phases[phase])
	case v1alpha1.PhaseDraft, v1alpha1.PhaseScheduled, v1alpha1.PhaseFailed:
	}
	return phases[phase]
}

// problemOfDraft returns the first problem that prevents a draft's publication, or "".
func (s *Site) problemOfDraft(ctx context.Context, v *visit, post *v1alpha1.Post) string {
	spec := post.Spec.DeepCopy()
	spec.Draft = false
	if err := audienceChosen(spec); err != nil {
		return err.Error()
	}
	check := s.Service.CheckPost(ctx, v.caller, spec)
	if len(check.Problems) == 0 {
		return ""
	}
	return inSentences(check.Problems[:1], func(i int) string { return check.Targets[i].Platform.Title() })[0]
}

// selectable reports whether a list has a checkbox for a post, because an action on several posts can change it.
func (v *visit) selectable(p *postindex.Summary) bool {
	return v.may.update && !p.Archived && (p.Status == v1alpha1.PhaseDraft || p.Status == v1alpha1.PhaseScheduled)
}

// bulkForm wraps a list whose posts can be selected. Without the page's script, the link reloads the page with all
// posts selected.
func (v *visit) bulkForm(found *postindex.Found, list g.Node) g.Node {
	if !slices.ContainsFunc(found.Posts, func(p postindex.Summary) bool { return v.selectable(&p) }) {
		return list
	}
	all, _ := url.Parse(v.here())
	query := all.Query()
	query.Set(paramSelect, "all")
	all.RawQuery = query.Encode()
	act := func(act bulkAct, label, class string) g.Node {
		return h.Button(h.Type("submit"), h.Name("act"), h.Value(string(act)), h.Class("button small "+class), g.Text(label))
	}
	return h.Form(h.Method("get"), h.Action(v.path("bulk")), h.Class("bulk"),
		hidden("back", v.here()),
		h.FieldSet(h.Class("actions"), h.Legend(h.Class("hidden"), g.Text("Selected posts")),
			h.A(h.Class("button small"), h.Href(all.RequestURI()), h.Data("select-all", ""), g.Text("Select all on this page")),
			act(bulkMove, "Move…", ""), act(bulkPublish, "Publish drafts…", ""), act(bulkCancel, "Cancel…", "danger"),
			g.El("output", h.Class("soft")),
		),
		list)
}

// paramSelect selects all posts on a page.
const paramSelect = "select"

// selection returns a post's checkbox in a list.
func (v *visit) selection(p *postindex.Summary) g.Node {
	return g.Iff(v.selectable(p), func() g.Node {
		return h.Label(h.Class("select"), h.Input(h.Type("checkbox"), h.Name("post"), h.Value(p.ID), g.If(v.URL.Query().Get(paramSelect) == "all", h.Checked())),
			h.Span(h.Class("hidden"), g.Text("Select "+headingOf(p))))
	})
}
