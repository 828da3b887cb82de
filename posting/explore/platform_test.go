// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// call is a publishing call whose bytes have left a process.
type call struct {
	attempt string
	target  int
	card    int
	text    string
	// container is the number of the container that is published, counted from 1, or 0.
	container int
	// limit is the time by which the platform has processed the call: one call timeout after it arrived.
	limit int64
}

// published is a post visible on the platform, now or later.
type published struct {
	attempt      string
	target, card int
	text         string
	at           int64
	// visibleAt is the time when a listing first contains it, or never.
	visibleAt int64
}

// container is a container on the platform; post counts from 1. partial: its files are not all uploaded.
type container struct {
	text    string
	post    int
	partial bool
}

// answer is how the platform responds to a call.
type answer string

// The responses.
const (
	none         answer = ""
	yes          answer = "posted"
	no           answer = "refused"
	later        answer = "busy"
	limited      answer = "limited"
	lost         answer = "lost"
	twin         answer = "duplicate"
	took         answer = "taken"
	notSent      answer = "not sent"
	withheld     answer = "withheld"
	neverClaimed answer = "claim lost"
)

// limitEnds is the time until a rate limit ends. A search does not reach that far by default.
const limitEnds = 80 * time.Second

// result returns the response as publishers report it. post is the number of the published post or ticket.
func (a answer) result(post int) platforms.Result {
	switch a {
	case yes:
		return platforms.Result{Outcome: platforms.Posted, ExternalID: externalID(post), ExternalURL: "https://platform/" + externalID(post)}
	case took:
		return platforms.Result{Outcome: platforms.Accepted, OperationID: ticketName(post)}
	case no:
		return platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassPermanent, "no")}
	case later:
		return platforms.Result{Outcome: platforms.Refused, Err: platforms.Errorf(platforms.ClassTransient, "busy")}
	case limited:
		err := platforms.Errorf(platforms.ClassRateLimited, "too many calls")
		err.RetryAt = t0.Add(limitEnds)
		return platforms.Result{Outcome: platforms.Refused, Err: err}
	case twin:
		return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassDuplicate, "duplicate")}
	case notSent, neverClaimed:
		return platforms.Result{Outcome: platforms.NotSent, Err: platforms.Errorf(platforms.ClassTransient, "not sent")}
	case withheld:
		return platforms.Result{Outcome: platforms.NotSent, Withheld: true, Err: platforms.Errorf(platforms.ClassTransient, "withheld")}
	case lost, none:
		return platforms.Result{Outcome: platforms.Unknown, Err: platforms.Errorf(platforms.ClassUnknown, "the connection broke")}
	}
	panic("no such answer: " + string(a))
}

// externalID returns the ID of the post with this number, counted from 1.
func externalID(post int) string { return "p" + strconv.Itoa(post) }

// land executes a call and returns the number of the post, or 0 if the container was already visible. If hidden is set,
// the listing contains the post only after the declared lag or, if it is unreliable, never.
func (w *world) land(c call, hidden bool) int {
	if c.container > 0 && w.containers[c.container-1].post > 0 || w.x.dedupes && w.repeats(c) || w.byKey(c.target, c.card, c.attempt) > 0 {
		return 0
	}
	visible := w.now
	switch {
	case hidden && w.x.listing == unreliable:
		visible = never
	case hidden:
		visible += w.timing().Lag.Milliseconds() + w.x.beyond.lag
	}
	w.posts = append(w.posts, published{c.attempt, c.target, c.card, c.text, w.now, visible})
	if c.container > 0 {
		w.containers[c.container-1].post = len(w.posts)
	}
	w.checkLanded(c)
	return len(w.posts)
}

// repeats reports whether the platform already has a post with the text of the call.
func (w *world) repeats(c call) bool {
	return slices.ContainsFunc(w.posts, func(p published) bool { return p.target == c.target && p.text == c.text })
}

// byKey returns the number of the post with the key of a call, or 0. Only a manager that breaks rules has a key per
// attempt.
func (w *world) byKey(target, card int, attempt string) int {
	if !w.x.keyed {
		return 0
	}
	return 1 + slices.IndexFunc(w.posts, func(p published) bool {
		return p.target == target && p.card == card && (!w.x.broken.otherKey || p.attempt == attempt)
	})
}

// platformSteps adds what may become of orphaned calls: the platform executes them within its time limit, or not at
// all.
func (w *world) platformSteps(add adder) {
	for i := range w.orphans {
		c := w.orphans[i]
		drop := func(n *world) { n.orphans = append(n.orphans[:i], n.orphans[i+1:]...) }
		name := "the platform acts on the call of attempt " + c.attempt
		if w.x.works {
			add(nobody, "the platform takes the call of attempt "+c.attempt, "", false, func(n *world) { drop(n); n.accept(c) })
			add(nobody, "the platform drops the call of attempt "+c.attempt, "", false, drop)
			continue
		}
		add(nobody, name+", and its listing shows it", "", false, func(n *world) { drop(n); n.land(c, false) })
		add(nobody, name+", and its listing lags", "", false, func(n *world) { drop(n); n.land(c, true) })
		add(nobody, "the platform drops the call of attempt "+c.attempt, "", false, drop)
	}
}

// lookupResult returns the lookup result for a target's call.
func (w *world) lookupResult(post *v1alpha1.Post, i int) platforms.LookupResult {
	a := posting.Of(post).Target(i).Attempt
	if w.x.keyed {
		if at := w.byKey(i, int(a.Card), a.ID); at > 0 {
			return platforms.LookupResult{Matches: 1, ExternalID: externalID(at), Certain: true}
		}
		return platforms.LookupResult{Proof: true}
	}
	if a.Checkpoint != "" {
		if at := w.containers[number(a.Checkpoint)-1].post; at > 0 {
			return platforms.LookupResult{Matches: 1, ExternalID: externalID(at)}
		}
		return platforms.LookupResult{Proof: true}
	}
	var f platforms.LookupResult
	from := attempt.SearchFrom(a).Sub(t0).Milliseconds()
	text := contentOf(post, i)
	for n, p := range w.posts {
		if p.target == i && p.text == text && p.at >= from && p.visibleAt != never && p.visibleAt <= w.now {
			f.Matches++
			f.ExternalID = externalID(n + 1)
		}
	}
	return f
}

// contentOf returns what to publish next for a target: a caption, or the text and parent of the next card.
func contentOf(post *v1alpha1.Post, i int) string {
	c := delivery.Content(post, i, nil)
	if c.InReplyTo != "" {
		return c.Text + " after " + c.InReplyTo
	}
	return c.Text
}

// edit changes a post's text.
func edit(p *v1alpha1.Post) {
	if p.Spec.Tree != nil {
		p.Spec.Tree.Cards[0].Caption = "edited"
		return
	}
	for i := range p.Spec.Targets {
		p.Spec.Targets[i].Caption = "edited"
	}
}

// resolution returns a user's answer for the first undecided target. The user has checked the account, once no call can
// take effect any longer.
func (w *world) resolution() (string, bool) {
	if _, pending := w.etcd.post.Annotations[v1alpha1.SettleAnnotation]; pending || len(w.orphans) > 0 || w.atWork() {
		return "", false
	}
	for i := range w.etcd.post.Status.Targets {
		t := &w.etcd.post.Status.Targets[i]
		if !attempt.Undecided(t) {
			continue
		}
		for n, p := range w.posts {
			if p.target == i && p.card == int(attempt.NextCard(t)) {
				return fmt.Sprintf("%d=posted:%s", i, externalID(n+1)), true
			}
		}
		return fmt.Sprintf("%d=not-sent", i), true
	}
	return "", false
}
