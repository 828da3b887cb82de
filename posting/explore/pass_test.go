// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// preparation is the preparation of a target's next call.
type preparation struct {
	// hash identifies the text that was prepared.
	hash, text string
	// container is its number. visible means that it is already published.
	container int
	visible   bool
	running   bool
	begunAt   time.Time
	// failed: its upload has failed. endedAt is the time when it ended, and limit is the latest time when it ends.
	failed  bool
	endedAt time.Time
	limit   int64
}

// publisher is the platform for package delivery.
type publisher struct {
	platforms.Publisher
	capabilities platforms.Capabilities
}

func (p publisher) Capabilities() platforms.Capabilities { return p.capabilities }

// accounts holds the targets' connections by name; all are ready.
var accounts = map[string]*v1alpha1.Connection{"account-0": account(0), "account-1": account(1)}

func account(target int) *v1alpha1.Connection {
	c := &v1alpha1.Connection{ObjectMeta: metav1.ObjectMeta{Name: "account-" + strconv.Itoa(target), UID: "uid"}}
	c.Spec = v1alpha1.ConnectionSpec{Platform: v1alpha1.PlatformX, AccountID: "account"}
	c.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonConnected}}
	return c
}

// facts returns a post's facts at a time, without preparations.
func (s *scenario) facts(post *v1alpha1.Post, now time.Time) *delivery.Facts {
	return &delivery.Facts{
		Earlier: delivery.Earlier{State: delivery.EarlierDisabled},
		View:    posting.Of(post.DeepCopy()), Now: now, Settings: s.settings, Connections: accounts,
		Platforms:          platforms.Registry{v1alpha1.PlatformX: publisher{capabilities: s.capabilities}},
		BlockedUntil:       func(*v1alpha1.Connection) time.Time { return time.Time{} },
		Invalid:            func() field.ErrorList { return nil },
		CredentialsProblem: func(string) error { return nil },
		Preparation:        func(int) delivery.Preparation { return delivery.Preparation{} },
	}
}

// begin runs a reconciliation up to its first observable step.
func (w *world) begin(i int, v *version, behind int8) {
	m := &w.manager[i]
	m.dirty, m.wake, m.seen = behind > 0, never, behind
	if m.first == nil && w.x.broken.fromCache {
		m.first = v
	}
	if behind > m.wrote && !w.x.broken.noStaleness {
		w.end(i, never)
		return
	}
	m.read, m.behind, m.passAt = v, behind, w.local(i)
	f := w.x.facts(v.post, m.passAt)
	if w.brake != nil {
		f.Suspended, f.Suspensions = w.readBrake(i)
	}
	f.Crowded, f.Group = w.x.crowd, m.groupState
	f.Results = m.recall()
	f.Preparation = func(target int) delivery.Preparation { return w.preparation(i, f.Post, target) }
	if w.x.shares {
		w.share(i, f)
	}
	w.decide(i, f)
}

// decide calls the real Decide, and stops before the first action.
func (w *world) decide(i int, f *delivery.Facts) {
	m := &w.manager[i]
	decide := delivery.Decide
	if m.standby {
		decide = delivery.DecidePreparation
	}
	actions := w.x.broken.decision(f.Post, decide(f))
	w.forgetCounted(f.Post)
	m.copy = w.x.intern(f.Post)
	wake := never
	for _, action := range actions {
		switch a := action.(type) {
		case delivery.Record:
			m.pc, m.claimed, m.copy = sending, m.read, m.read
			if len(m.ships) == 0 {
				m.ships = unsentShips(f.Results)
			}
			return
		case delivery.TakeBack:
			m.pc, m.group = takingBack, groupVersion(a.Groups[0])
			return
		case delivery.Arm:
			m.pc, m.ready, m.copy = grouping, a.Targets, w.x.intern(f.Post)
			return
		case delivery.Resolve:
			m.pc, m.copy = resolving, w.changed(m.copy, func(p *v1alpha1.Post) {
				// If a resolution is already recorded, an error is expected.
				_ = delivery.RecordResolutions(p, a.Value, nil, &w.x.settings, m.passAt)
				describe(p)
			})
			return
		case delivery.Lookup:
			m.pc = asking
			for _, k := range a.Targets {
				m.lookups = append(m.lookups, lookup{LookupAnswer: delivery.LookupAnswer{Target: k, AskedAt: m.passAt}})
			}
			return
		case delivery.Prepare:
			if len(a.Hold) > 0 {
				w.startHolding(i, f, a.Hold)
				return
			}
			w.prepare(i, a.Targets[0])
			f.Post, f.SlotsRequested = m.read.post.DeepCopy(), true
			w.decide(i, f)
			return
		case delivery.StopPreparing:
			if !w.x.broken.deafLoser {
				m.prep = preparation{}
			}
		case delivery.Claim:
			m.pc, m.ready = claiming, a.Targets
			return
		case delivery.Write:
			if m.copy = w.changed(m.copy, describe); m.copy != m.read && (!w.x.broken.silentHolder || !m.prep.running) {
				m.pc = describing
				return
			}
		case delivery.Wait:
			if !a.Until.IsZero() {
				wake = max(w.truly(i, a.Until), w.now+1)
			}
		case delivery.ReportPreparation:
			if !a.Ahead {
				m.prep = preparation{}
			}
		case delivery.Release, delivery.FindEarlier, delivery.ReadOriginal, delivery.ReserveRetry:
			panic("no post is deleted or retried, and nothing is kept: see lives_test.go and retries_test.go")
		}
	}
	w.end(i, wake)
}

// recall returns and removes the results in memory of open attempts, which are about to be recorded.
func (m *manager) recall() []delivery.Result {
	var memory delivery.Unrecorded
	for _, s := range m.kept {
		memory.AddResult(s.result())
	}
	for _, id := range m.unsent {
		memory.AddUnsent(id, m.passAt)
	}
	known := memory.Drain(m.read.post)
	for _, r := range known {
		if k := slices.IndexFunc(m.kept, func(s ship) bool { return s.attempt == r.Attempt }); k >= 0 {
			m.ships = append(m.ships, m.kept[k])
			continue
		}
		card := posting.Of(m.read.post).Target(r.Target).Attempt.Card
		m.ships = append(m.ships, ship{target: r.Target, card: int(card), attempt: r.Attempt, phase: answered, answer: neverClaimed})
	}
	m.kept = slices.DeleteFunc(m.kept, func(s ship) bool { _, still := memory.Results[s.attempt]; return !still })
	m.unsent = slices.DeleteFunc(m.unsent, func(id string) bool { _, still := memory.Unsent[id]; return !still })
	return known
}

// preparation returns a target's preparation in this process. If the platform has containers, the scenario has one
// target with one container.
func (w *world) preparation(i int, post *v1alpha1.Post, target int) delivery.Preparation {
	switch {
	case w.x.shares:
		return w.upload(i, post, target)
	case !w.x.containers:
		return delivery.Preparation{}
	}
	p := w.manager[i].prep
	d := delivery.Preparation{State: delivery.PreparationMissing, Hash: hashOf(post, target), BegunAt: p.begunAt, TTL: time.Hour}
	if made := p.hash == d.Hash || w.x.broken.otherCheckpoint && p.container > 0; !made {
		return d
	}
	switch {
	case p.running:
		d.State = delivery.PreparationRunning
	case p.visible:
		d.State = delivery.PreparationVisible
	default:
		d.State, d.Checkpoint = delivery.PreparationReady, strconv.Itoa(p.container)
	}
	return d
}

func (w *world) prepare(i, target int) {
	m := &w.manager[i]
	post := m.read.post
	if w.x.shares {
		w.startUpload(i, target)
		return
	}
	m.prep = preparation{hash: hashOf(post, target), text: contentOf(post, target), running: true, begunAt: m.passAt}
	if earlier := attempt.Checkpoint(posting.Of(post).Target(target).Attempt, m.prep.hash); earlier != "" {
		m.prep.container = number(earlier)
	}
}

// prepared completes a preparation. An existing container is used again unless it has become visible.
func (w *world) prepared(i int) {
	m := &w.manager[i]
	m.prep.running = false
	m.dirty = true
	if c := m.prep.container; c > 0 {
		m.prep.visible = w.containers[c-1].post > 0
		return
	}
	w.containers = append(w.containers, container{text: m.prep.text})
	m.prep.container = len(w.containers)
}

func hashOf(p *v1alpha1.Post, target int) string {
	return delivery.ContentHash(p, target, accounts[p.Spec.Targets[target].ConnectionRef.Name], nil)
}

// lookup is a target's lookup and its result.
type lookup struct {
	delivery.LookupAnswer
	// gave is the platform's response about an abandoned call.
	gave answer
}

// sendLookups sends each lookup to the platform.
func (w *world) sendLookups(i int) {
	m := &w.manager[i]
	m.pc = entering
	for k := range m.lookups {
		l := &m.lookups[k]
		w.checkAsked(m.copy.post, l.Target)
		if name := posting.Of(m.copy.post).Target(l.Target).Attempt.OperationID; name != "" {
			w.answerTicket(name, l)
			continue
		}
		if w.x.tells {
			w.answerUnnamed(posting.Of(m.copy.post).Target(l.Target).Attempt.ID, l)
			continue
		}
		l.LookupResult = w.lookupResult(m.copy.post, l.Target)
	}
}

// failLookups makes the lookups fail with an error.
func (w *world) failLookups(i int, why *platforms.Error) {
	m := &w.manager[i]
	m.pc = entering
	for k := range m.lookups {
		w.checkAsked(m.copy.post, m.lookups[k].Target)
		m.lookups[k].Err = why
	}
}

var (
	noAnswer     = platforms.Errorf(platforms.ClassTransient, "no answer")
	noPermission = platforms.Errorf(platforms.ClassPermanent, "no permission to list posts")
)

// found returns the post with the results of the lookups.
func (w *world) found(i int) *version {
	m := &w.manager[i]
	timing := w.timing()
	timing.Authoritative = timing.Authoritative || w.x.broken.trustListing
	timing.Idempotent = timing.Idempotent && !w.x.broken.doubtKeyed
	return w.changed(m.copy, func(p *v1alpha1.Post) {
		if w.x.broken.alwaysRetry {
			p.Spec.OnUnknownOutcome = v1alpha1.OnUnknownRetry
		}
		for _, l := range m.lookups {
			l.Refused = l.gave.result(0).Err
			if l.gave == none {
				l.Refused = nil
			}
			if w.x.broken.datedLate {
				l.AskedAt = w.local(i)
			}
			must(delivery.RecordLookup(p, &l.LookupAnswer, timing, w.deadlines(), w.local(i)))
			if a := posting.Of(p).Target(l.Target).Attempt; w.x.broken.oneLook && attempt.IsOpen(a) && a.Lookups > 0 {
				must(delivery.RecordLookup(p, &l.LookupAnswer, timing, w.deadlines(), w.local(i)))
			}
		}
		p.Spec.OnUnknownOutcome = w.x.policy
		describe(p)
		for _, l := range m.lookups {
			if t := posting.Of(p).Target(l.Target); w.x.broken.silent && t.Attempt.Outcome == v1alpha1.OutcomeUnknown {
				t.Message = "failed"
			}
		}
	})
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
