// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/plan"
	"github.com/herald-social/herald/posting/ratelimit"
	"github.com/herald-social/herald/posting/usage"
)

// publisher is a platform that only declares its capabilities, for package delivery.
type publisher struct{ platforms.Publisher }

// Capabilities returns the same capabilities for all simulated platforms.
func (publisher) Capabilities() platforms.Capabilities {
	all := []v1alpha1.Category{v1alpha1.CategoryText, v1alpha1.CategoryImage, v1alpha1.CategoryVideo}
	return platforms.Capabilities{Delivers: all, ListingAuthoritative: all, PreparedTTL: preparedTTL, CallTimeout: 20 * time.Second, ListingLag: 2 * time.Second}
}

// preparedTTL is the time that a platform keeps an upload.
const preparedTTL = 24 * time.Hour

func registry() platforms.Registry {
	all := platforms.Registry{}
	for _, name := range platformsOf {
		all[name] = publisher{}
	}
	return all
}

// facts returns a post's facts. Constant facts are collected only once.
func (s *simulation) facts(p *post) *delivery.Facts {
	if p.known == nil {
		connections := map[string]*v1alpha1.Connection{}
		for i := range p.Spec.Targets {
			name := p.Spec.Targets[i].ConnectionRef.Name
			connections[name] = p.team.connection(name)
		}
		p.known = &delivery.Facts{
			Earlier: delivery.Earlier{State: delivery.EarlierDisabled},
			View:    posting.Of(p.Post), Settings: s.settings, Platforms: s.platforms, Connections: connections, Media: media,
			BlockedUntil:       func(c *v1alpha1.Connection) time.Time { return ratelimit.BlockedUntil(&c.Status, s.now) },
			Invalid:            func() field.ErrorList { return nil },
			CredentialsProblem: func(string) error { return nil },
			Preparation:        func(i int) delivery.Preparation { return s.preparation(p, i) },
			Group:              func(string) delivery.GroupState { return delivery.GroupMayBeOpen },
		}
	}
	f := *p.known
	f.Now, f.Results, f.Crowded = s.now, p.results, s.isCrowded(p)
	return &f
}

// pass reconciles a post once: it decides, and executes the decision.
func (s *simulation) pass(p *post) {
	if p.busy {
		return
	}
	p.passes++
	if p.Status.Finished {
		s.finish(p)
		return
	}
	f := s.facts(p)
	stored := p.Status.DeepCopy()
	s.execute(p, f, stored, delivery.Decide(f))
	if p.granted != nil && !p.busy {
		unused := p.granted
		p.granted = nil
		unused.release()
	}
}

// execute carries out actions, and stops after the first write.
func (s *simulation) execute(p *post, f *delivery.Facts, stored *v1alpha1.PostStatus, actions []delivery.Action) {
	for _, action := range actions {
		switch a := action.(type) {
		case delivery.Record:
			s.record(p)
			return
		case delivery.Lookup:
			s.lookup(p, f, a.Targets)
			return
		case delivery.Prepare:
			s.prepare(p)
			p.Status, f.SlotsRequested = *stored.DeepCopy(), true
			s.execute(p, f, stored, delivery.Decide(f))
			return
		case delivery.Claim:
			if p.granted != nil {
				s.claim(p, f, a.Targets)
				return
			}
			p.Status = *stored
			s.requestTurn(p, a.Targets)
			return
		case delivery.Arm:
			s.arm(p, f, a.Targets)
			return
		case delivery.Write:
			delivery.Describe(p.Post, s.now)
			if !reflect.DeepEqual(stored, &p.Status) {
				s.store(p, func() {})
				return
			}
		case delivery.Wait:
			s.wait(p, a)
		case delivery.StopPreparing, delivery.ReportPreparation, delivery.Resolve, delivery.TakeBack, delivery.FindEarlier, delivery.Release:
			panic(fmt.Sprintf("no upload fails here, one manager runs, no earlier post exists and nobody deletes or answers: %T", a))
		}
	}
	if !p.busy {
		p.Status = *stored
	}
}

// wait schedules the post's next reconciliation for the time in w.
func (s *simulation) wait(p *post, w delivery.Wait) {
	if w.InTurn {
		s.expect(p)
	}
	if number := p.passes; !w.Until.IsZero() && !s.broken.forgetful {
		s.at(w.Until, func() {
			if p.passes == number {
				s.pass(p)
			}
		})
	}
}

// store writes the post's status. The write's event triggers the next reconciliation.
func (s *simulation) store(p *post, then func()) {
	p.busy = true
	s.at(s.server.write(s.now), func() {
		p.busy = false
		then()
		s.pass(p)
	})
}

func (s *simulation) record(p *post) {
	results := p.results
	p.results = nil
	if err := delivery.RecordResults(p.Post, results, s.deadlines(), s.now); err != nil {
		s.violatef("post %s: %v", p.Name, err)
	}
	// Herald also writes an Event per result. These writes have low priority.
	s.server.rest += len(results)
	s.store(p, func() {
		if held := p.held; held != nil {
			p.held = nil
			held.release()
		}
	})
}

func (s *simulation) deadlines() *delivery.Deadlines {
	return &delivery.Deadlines{StartingDeadline: s.settings.StartingDeadline, LongestDelay: s.settings.LongestDelay}
}

// lookup settles calls whose response was lost, with a lookup on their platform.
func (s *simulation) lookup(p *post, f *delivery.Facts, targets []int) {
	for _, i := range targets {
		timing, _ := f.Timing(f.Target(i).Platform)
		found := platforms.LookupResult{Matches: p.shown[i], Proof: p.shown[i] == 0, Certain: true}
		if found.Matches > 0 {
			found.ExternalID, found.PostedAt = f.Target(i).Attempt.ID, s.now
		}
		if err := delivery.RecordLookup(p.Post, &delivery.LookupAnswer{Target: i, AskedAt: s.now, LookupResult: found}, timing, s.deadlines(), s.now); err != nil {
			s.violatef("post %s: %v", p.Name, err)
		}
	}
	delivery.Describe(p.Post, s.now)
	s.result.Lookups++
	s.store(p, func() {})
}

// requestTurn requests the gates of a post's accounts, and a slot. Once it has them, the post is reconciled again.
func (s *simulation) requestTurn(p *post, targets []int) {
	if p.asked != nil {
		return
	}
	p.asked = &turn{accounts: p.accounts(targets), pool: &s.places, run: func() {
		p.granted, p.asked = p.asked, nil
		s.pass(p)
	}}
	p.asked.enqueue()
}

// claim claims targets and calls the platforms.
func (s *simulation) claim(p *post, f *delivery.Facts, targets []int) {
	s.enter(p, f, targets, "", s.settings.SendWindow)
	p.held, p.granted = p.granted, nil
	p.busy = true
	s.at(s.server.write(s.now), func() { s.call(p, targets) })
}

// enter records the claims in a post.
func (s *simulation) enter(p *post, f *delivery.Facts, targets []int, group string, window time.Duration) {
	s.countersOf(p.team, p.Post, func(u *v1alpha1.Usage, limit int) {
		if refused := usage.Confirm(u, plan.UsesOfStored(&u.Spec, p.Post, p.team.connection, s.settings.StartingDeadline), limit, s.now); len(refused) > 0 {
			s.violatef("post %s was accepted, and its team's plan does not allow it", p.Name)
		}
	})
	claims := make([]delivery.TargetClaim, len(targets))
	for n, i := range targets {
		s.calls++
		c := f.Connections[p.Spec.Targets[i].ConnectionRef.Name]
		claims[n] = delivery.TargetClaim{Target: i, Claim: attempt.Claim{
			ID: fmt.Sprint(s.calls), ContentHash: p.hash(i), AccountID: c.Spec.AccountID, Group: group, Window: window,
		}}
	}
	if err := delivery.RecordClaims(p.Post, claims, s.now); err != nil {
		s.violatef("post %s: %v", p.Name, err)
	}
}

func (p *post) accounts(targets []int) (all []*account) {
	for _, i := range targets {
		all = append(all, p.team.accounts[p.Spec.Targets[i].ConnectionRef.Name])
	}
	return all
}
