// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"

	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/posting"
)

// bulkResult is the outcome of an action on one post.
type bulkResult struct {
	*bulkPlan

	// err is the reason why the post was not changed; nil if it was.
	err error
	// note is additional information for the user.
	note string
}

// applyBulk performs an action on several posts, one after the other, each like the action on a single post. A form
// that is sent again has no effect: it contains each post's version, which both an action and undoing it change.
func (s *Site) applyBulk(w http.ResponseWriter, v *visit) error {
	done, err := s.parseForm(w, v.Request, v.namespace)
	v.done = done
	if err != nil {
		return err
	}
	act, plans := bulkAct(v.PostForm.Get("act")), v.plansIn()
	apply := map[bulkAct]func(context.Context, *visit, *bulkPlan) (string, error){
		bulkMove: s.bulkMove, bulkCancel: s.bulkCancel, bulkPublish: s.bulkPublish, bulkCopy: s.bulkCopy, bulkWithdraw: s.bulkWithdraw,
	}[act]
	switch {
	case apply == nil:
		return &bridge.Error{Code: bridge.CodeValidation, Message: "the form does not say what to do with the posts; go back to the list"}
	case len(plans) == 0 || len(plans) > maxBulk:
		return &bridge.Error{Code: bridge.CodeValidation, Message: "select from 1 to " + strconv.Itoa(maxBulk) + " posts"}
	case (act == bulkCopy || act == bulkWithdraw) && !v.may.compose():
		return forbidden(createPosts, v)
	}
	// Each post counts as a request. One has already been counted.
	limits.MeterFrom(v.Context()).Whole(len(plans) - 1)
	var changed, failed []*bulkResult
	for _, p := range plans {
		r := &bulkResult{bulkPlan: p}
		if r.note, r.err = apply(v.Context(), v, p); r.err == nil {
			changed = append(changed, r)
			continue
		}
		failed = append(failed, r)
		if _, known := asError(r.err); !known {
			request.From(v.Context()).Err = r.err
		}
	}
	s.nameResults(v, changed, failed)
	s.render(w, v, http.StatusOK, s.bulkResult(v, act, changed, failed))
	return nil
}

// plansIn parses the posts of a form.
func (v *visit) plansIn() (plans []*bulkPlan) {
	when := func(name string) *time.Time {
		if at, err := time.Parse(time.RFC3339Nano, v.PostForm.Get(name)); err == nil {
			return &at
		}
		return nil
	}
	for _, id := range distinctIDs(v.PostForm["post"]) {
		plans = append(plans, &bulkPlan{id: id, heading: "A post", from: when("from-" + id), to: when("to-" + id), version: v.PostForm.Get("version-" + id)})
	}
	return plans
}

// nameResults reads the posts' headings.
func (s *Site) nameResults(v *visit, results ...[]*bulkResult) {
	for _, of := range results {
		b := &bulk{act: bulkCancel}
		for _, r := range of {
			b.posts = append(b.posts, r.id)
		}
		named, err := s.planBulk(v, b)
		if err != nil {
			continue
		}
		for i := range of {
			of[i].heading = named[i].heading
		}
	}
}

var errIncomplete = &bridge.Error{Code: bridge.CodeValidation, Message: "something is missing from this form; go back to the list and try again"}

func (s *Site) bulkMove(ctx context.Context, v *visit, p *bulkPlan) (string, error) {
	if p.from == nil || p.to == nil {
		return "", errIncomplete
	}
	post, err := s.Service.Reschedule(ctx, v.caller, p.id, p.version, *p.to)
	if err == nil {
		p.version = bridge.Version(post)
	}
	return "", err
}

func (s *Site) bulkCancel(ctx context.Context, v *visit, p *bulkPlan) (string, error) {
	return "", s.Service.CancelSeen(ctx, v.caller, p.id, p.version)
}

func (s *Site) bulkPublish(ctx context.Context, v *visit, p *bulkPlan) (string, error) {
	post, err := s.Service.ReadPost(ctx, v.caller, p.id)
	if err != nil {
		return "", err
	}
	spec := post.Spec
	spec.Draft = false
	if err := audienceChosen(&spec); err != nil {
		return "", &bridge.Error{Code: bridge.CodeValidation, Message: err.Error()}
	}
	published, err := s.Service.PublishUnlessRepeated(ctx, v.caller, p.id, p.version, spec, p.to)
	if err == nil {
		p.version = bridge.Version(published)
	}
	if repeated, ok := errors.AsType[*bridge.RepeatedError](err); ok {
		return "", &bridge.Error{Code: bridge.CodeConflict, Message: repeated.Error() + "; open the draft to publish it anyway"}
	}
	return "", err
}

// bulkCopy copies a post to a new draft. The form's key prevents a second copy.
func (s *Site) bulkCopy(ctx context.Context, v *visit, p *bulkPlan) (string, error) {
	like, err := s.Service.DuplicatePost(ctx, v.caller, p.id)
	if err != nil {
		return "", err
	}
	spec := like.Spec
	spec.Draft = true
	made, err := s.Service.CreatePost(ctx, v.caller, bridge.CreatePost{Spec: spec, IdempotencyKey: v.PostForm.Get("key") + "-" + p.id})
	if err != nil {
		return "", err
	}
	p.id = made.ID
	if len(like.Omitted) > 0 {
		return "some content was left out: " + bridge.JoinProblems(like.Omitted), nil
	}
	return "", nil
}

// bulkWithdraw cancels a scheduled post and copies it to a new draft: a post that is not a draft cannot become one. If
// the form is sent again, a post that was canceled but not copied is copied.
func (s *Site) bulkWithdraw(ctx context.Context, v *visit, p *bulkPlan) (string, error) {
	if err := s.Service.CancelSeen(ctx, v.caller, p.id, p.version); err != nil {
		post, unread := s.Service.ReadPost(ctx, v.caller, p.id)
		if unread != nil || !posting.Of(post).Cancelled() {
			return "", err
		}
	}
	note, err := s.bulkCopy(ctx, v, p)
	p.uncopied = err != nil
	return note, err
}

// bulkWords describe the changed and the unchanged posts of an action.
var bulkWords = map[bulkAct][2]string{
	bulkMove: {" moved", "Not moved"}, bulkCancel: {" cancelled", "Not cancelled"}, bulkPublish: {" being published", "Not published"},
	bulkCopy: {" copied to new drafts", "Not copied"}, bulkWithdraw: {" withdrawn and copied to new drafts", "Not completed"},
}

// bulkTitle describes an action's result in a title.
func bulkTitle(act bulkAct, changed, failed []*bulkResult) string {
	later := 0
	for _, r := range changed {
		if act == bulkPublish && r.to != nil {
			later++
		}
	}
	switch now := len(changed) - later; {
	case later > 0:
		title := plural(later, "post") + " scheduled"
		if now > 0 {
			title = plural(now, "post") + " being published, " + strconv.Itoa(later) + " scheduled"
		}
		if len(failed) > 0 {
			title += ", " + strconv.Itoa(len(failed)) + " not published"
		}
		return title
	case len(failed) > 0:
		return strconv.Itoa(now) + " of " + plural(now+len(failed), "post") + bulkWords[act][0]
	default:
		return plural(now, "post") + bulkWords[act][0]
	}
}

func (s *Site) bulkResult(v *visit, act bulkAct, changed, failed []*bulkResult) view {
	title := bulkTitle(act, changed, failed)
	back := v.listAddress(v.PostForm.Get("back"))
	plans := make([]*bulkPlan, 0, len(changed)+len(failed))
	var uncopied []*bulkPlan
	for _, r := range changed {
		r.refused = r.note
		plans = append(plans, r.bulkPlan)
	}
	for _, r := range failed {
		r.refused = s.whyNot(v, r.err)
		if r.uncopied {
			r.refused = "cancelled, but not copied: " + r.refused
			uncopied = append(uncopied, &bulkPlan{id: r.id})
		}
		plans = append(plans, r.bulkPlan)
	}
	return view{title: title, place: placePosts, content: []g.Node{
		g.If(len(failed) > 0, h.Section(h.Class("card"), h.Role("alert"), h.H2(g.Text(bulkWords[act][1]+": "+plural(len(failed), "post"))), v.bulkList(plans[len(changed):]),
			v.nextBulk(bulkCopy, "Copy to new drafts", "The copies have the same content but no times.", back, uncopied))),
		g.Iff(len(changed) > 0, func() g.Node {
			return h.Section(h.Class("card"), h.Role("status"), v.bulkList(plans[:len(changed)]), v.undoBulk(act, changed, back))
		}),
		h.P(link(back, "Back to the list", "")),
	}}
}

// whyNot returns an error's text for a user.
func (s *Site) whyNot(v *visit, err error) string {
	if known, ok := asError(err); ok {
		return withoutID(s.messageOf(v, known))
	}
	if errors.Is(err, bridge.ErrMaybeChanged) || errors.Is(err, bridge.ErrUncertain) {
		return "Herald could not confirm that this was saved. Check the post."
	}
	return "an internal error occurred; try again"
}

// undoBulk offers to undo an action or, after a cancellation, to copy the posts to new drafts.
func (v *visit) undoBulk(act bulkAct, changed []*bulkResult, back string) g.Node {
	var of []*bulkPlan
	switch act {
	case bulkMove:
		for _, r := range changed {
			if r.from.After(v.now) {
				of = append(of, &bulkPlan{id: r.id, from: r.to, to: r.from, version: r.version})
			}
		}
		explains := "Undo moves the posts back to where they were."
		if len(of) < len(changed) {
			explains += " Posts whose earlier time has passed stay where they are."
		}
		return v.nextBulk(bulkMove, "Undo", explains, back, of)
	case bulkCancel:
		if !v.may.compose() {
			return nil
		}
		for _, r := range changed {
			of = append(of, &bulkPlan{id: r.id})
		}
		return v.nextBulk(bulkCopy, "Copy to new drafts", "A cancelled post stays cancelled. The new drafts have the same content but no times.", back, of)
	case bulkPublish:
		if !v.may.compose() {
			return nil
		}
		for _, r := range changed {
			if r.to != nil {
				of = append(of, &bulkPlan{id: r.id, version: r.version})
			}
		}
		return v.nextBulk(bulkWithdraw, "Undo", "Scheduled posts cannot become drafts again. Undo cancels them and copies them to new drafts.", back, of)
	case bulkCopy, bulkWithdraw:
	}
	return nil
}

// nextBulk is the form of an action that follows another.
func (v *visit) nextBulk(act bulkAct, label, explains, back string, of []*bulkPlan) g.Node {
	if len(of) == 0 {
		return nil
	}
	return form(v.path("bulk"), "", hidden("act", string(act)), hidden("back", back), hidden("key", v.PostForm.Get("key")), v.items(of),
		h.P(h.Class("soft"), g.Text(explains)), submit(label+" ("+strconv.Itoa(len(of))+")", ""))
}
