// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"time"

	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/ratelimit"
	"github.com/herald-social/herald/posting/usage"
)

// The numbers of calls, out of a hundred thousand, whose result is not a published post.
const (
	ofCalls   = 100_000
	lost      = 100 // the answer is lost; half of these posts were published
	limited   = 50  // the account has posted too often
	busy      = 100 // the platform has a temporary error
	permanent = 20  // the platform rejects the content
)

// call calls the platforms for claimed targets. The next pass records the results.
func (s *simulation) call(p *post, targets []int) {
	var results []delivery.Result
	for _, i := range targets {
		results = append(results, s.publish(p, i))
	}
	s.at(s.now.Add(s.costs.Answer), func() {
		p.results, p.busy = results, false
		s.pass(p)
	})
}

func (s *simulation) publish(p *post, i int) delivery.Result {
	view := posting.Of(p.Post)
	t := view.Target(i)
	r := delivery.Result{Target: i, Attempt: t.Attempt.ID}
	if s.now.After(t.Attempt.SendBefore.Time) {
		s.result.Expired++
		r.Outcome, r.Err = platforms.NotSent, delivery.Unsent
		return r
	}
	account := p.team.accounts[p.Spec.Targets[i].ConnectionRef.Name]
	switch {
	case p.called[i] || p.Spec.ScheduledAt == nil:
	case account.pausedUntil.After(view.Due()):
		s.result.Paused++
	default:
		s.result.late(view.Due(), s.now)
	}
	p.called[i] = true
	draw := s.random.IntN(ofCalls)
	refuse := func(class platforms.Class) delivery.Result {
		r.Outcome, r.Unpublished, r.Err = platforms.Refused, true, platforms.Errorf(class, "no")
		return r
	}
	switch {
	case draw < lost:
		if draw%2 == 0 {
			s.show(p, i)
		}
		r.Outcome, r.Err = platforms.Unknown, platforms.Errorf(platforms.ClassUnknown, "the answer is lost")
		if s.broken.hasty {
			return refuse(platforms.ClassTransient)
		}
		return r
	case draw < lost+limited:
		refuse(platforms.ClassRateLimited)
		r.Result = ratelimit.SanitizeResult(r.Result, platforms.Token{}, s.now)
		ratelimit.Block(&account.Status, r.Err.RetryAt, false, "the account has posted too often", s.now)
		account.pausedUntil = r.Err.RetryAt
		s.server.rest++
		s.at(r.Err.RetryAt, func() { ratelimit.DropExpired(&account.Status, s.now) })
		return r
	case draw < lost+limited+busy:
		return refuse(platforms.ClassTransient)
	case draw < lost+limited+busy+permanent:
		return refuse(platforms.ClassPermanent)
	}
	s.show(p, i)
	r.Outcome, r.ExternalID, r.PostedAt = platforms.Posted, t.Attempt.ID, s.now
	return r
}

// show publishes a target.
func (s *simulation) show(p *post, i int) {
	p.shown[i]++
	s.result.Published++
	if p.shown[i] > 1 {
		s.result.Twice++
		s.violatef("target %d of post %s was published twice", i, p.Name)
	}
	if p.team.limits.XPosts == 0 || p.team.connection(p.Spec.Targets[i].ConnectionRef.Name).Spec.Platform != platformsOf[0] {
		return
	}
	month := usage.Month(posting.Of(p.Post).Due())
	p.team.shownOnX[month]++
	if p.team.shownOnX[month] > p.team.limits.XPosts {
		s.violatef("%s has published more on X in %s than its plan allows", p.team.Name, month)
	}
}

// preparation returns the state of a post's upload. The post's targets are uploaded one after another, in one slot.
func (s *simulation) preparation(p *post, i int) delivery.Preparation {
	if p.bytes == 0 {
		return delivery.Preparation{}
	}
	d := delivery.Preparation{
		State: delivery.PreparationMissing, TTL: preparedTTL, BegunAt: p.begun, EndedAt: p.ready,
		Hash: p.hash(i),
	}
	switch {
	case !p.ready.IsZero():
		d.State, d.Checkpoint = delivery.PreparationReady, "upload"
	case !p.begun.IsZero():
		d.State = delivery.PreparationRunning
	}
	return d
}

// hash returns a target's content hash, which is computed only once.
func (p *post) hash(i int) string {
	if p.hashes[i] == "" {
		p.hashes[i] = delivery.ContentHash(p.Post, i, p.team.connection(p.Spec.Targets[i].ConnectionRef.Name), media)
	}
	return p.hashes[i]
}

// prepare uploads a post's files as soon as a slot is free.
func (s *simulation) prepare(p *post) {
	if !p.begun.IsZero() {
		return
	}
	p.begun = s.now
	t := &turn{pool: &s.uploads}
	t.run = func() {
		s.at(s.now.Add(s.duration(p)), func() {
			p.ready = s.now
			if due := posting.Of(p.Post).Due(); p.Spec.ScheduledAt != nil && s.now.After(due) {
				s.result.LateUploads++
			}
			s.result.Uploads++
			t.release()
			s.pass(p)
		})
	}
	t.enqueue()
}

func (s *simulation) duration(p *post) time.Duration {
	return time.Duration(len(p.Spec.Targets)) * time.Duration(float64(p.bytes)/s.costs.UploadRate*float64(time.Second))
}
