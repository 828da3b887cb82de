// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// The lives of a name are objects that are created and deleted under the same name; only the record preserves their
// outcome. Decisions and records are production code; the API server, the bucket and the platform are models.
// Faults happen between two objects and, in a cluster rollback, between two states of an object (rollbacks_test.go).
// The other scenarios cover faults during the delivery of one object.

// bounds limits an exploration of lives.
type bounds struct {
	// lives is the number of objects per schedule that have the name, and targets is their maximum number of accounts.
	lives, targets int
	// later enables scheduled posts. rewinds is the maximum number of rollbacks. begins is the maximum number of times
	// that a manager starts and cannot detect a rollback, or wrongly detects one.
	later           bool
	rewinds, begins int
	// cancels allows a scheduled post to be cancelled if its object shows no call.
	cancels bool
	// crowd claims the post in a group, which is opened before its call.
	crowd bool
}

// lives is one state.
type lives struct {
	bounds
	rewind

	post   *v1alpha1.Post
	bucket *record.Record
	// slow is a record that a former leader has yet to write.
	slow *record.Record
	away bool
	// opened is true once the group of the post's call was opened, as far as the cluster shows.
	opened bool
	born   int
	// out counts published posts per account.
	out [2]int
	// faults is the number of further calls that may end without clearly succeeding.
	faults int
}

// livesBroken is a rule that a mutation breaks.
type livesBroken struct {
	noRecord, replaces, noLook, unlooked, forgetsUnknown        bool
	unnoticed, undoubted, earlyNotice, lateNotice, forgetsAsked bool
}

// livesAccounts holds two accounts, by connection name.
var livesAccounts = map[string]*v1alpha1.Connection{"account-0": livesAccount(0), "account-1": livesAccount(1)}

func livesAccount(n int) *v1alpha1.Connection {
	c := account(n)
	c.Spec.AccountID = fmt.Sprint("account-", n)
	return c
}

func accountOf(connection string) (v1alpha1.Platform, string, bool) {
	c := livesAccounts[connection]
	return c.Spec.Platform, c.Spec.AccountID, true
}

// make creates the next object, for one or both accounts.
func (l *lives) make(annotations map[string]string, targets int) {
	targets = min(targets, l.targets)
	l.born++
	l.post = &v1alpha1.Post{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "launch", UID: types.UID(fmt.Sprint("object-", l.born)), Generation: 1, Annotations: annotations,
			CreationTimestamp: metav1.NewTime(l.stamp()),
		},
		Spec: v1alpha1.PostSpec{Category: v1alpha1.CategoryText},
	}
	for i := range targets {
		l.post.Spec.Targets = append(l.post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprint("account-", i)}, Caption: "hello"})
	}
}

func (l *lives) clone() *lives {
	n := *l
	if l.post != nil {
		n.post = l.post.DeepCopy()
	}
	return &n
}

// key identifies a state.
func (l *lives) key() [sha256.Size]byte {
	data, err := json.Marshal([]any{l.post, l.bucket, l.slow, l.away, l.opened, l.born, l.out, l.faults, l.rewind.key(), l.rewinds, l.begins})
	must(err)
	return sha256.Sum256(data)
}

// next returns the successor states by event. goesOn reports whether the manager has work to do.
func (l *lives) next(b livesBroken) (steps map[string]*lives, goesOn bool) {
	steps = map[string]*lives{}
	add := func(what string, do func(*lives)) {
		n := l.clone()
		do(n)
		steps[what] = n
	}
	add("the store goes or comes", func(n *lives) { n.away = !n.away })
	if l.slow != nil && !l.away {
		add("an old leader writes its record", func(n *lives) { n.store(n.slow, b); n.slow = nil })
	}
	switch {
	case l.post == nil && l.born < l.lives:
		add("it is applied to one account", func(n *lives) { n.make(nil, 1) })
		if l.targets > 1 {
			add("it is applied to both", func(n *lives) { n.make(nil, 2) })
		}
		if l.later && !l.late {
			add("it is applied for later", func(n *lives) { n.make(nil, 1); n.post.Spec.ScheduledAt = v1alpha1.NewTimePtr(livesLater) })
		}
		if l.born > 0 {
			add("it is restored", func(n *lives) {
				n.make(map[string]string{v1alpha1.ArmedAnnotation: fmt.Sprint("launch/object-", l.born)}, 2)
			})
		}
	case l.post != nil:
		if l.post.DeletionTimestamp.IsZero() {
			add("it is deleted", func(n *lives) { n.post.DeletionTimestamp = new(metav1.NewTime(t0)) })
		}
		if l.cancels && l.post.Spec.ScheduledAt != nil && !l.post.Spec.Cancelled && !l.post.Status.Finished && !posting.Of(l.post).Started() {
			add("it is cancelled", func(n *lives) { n.post.Spec.Cancelled = true; n.post.Generation++ })
		}
		if l.post.Status.Finished && !l.away && l.slow == nil {
			add("its record is about to be written", func(n *lives) { n.slow = record.New(n.post, "team", accountOf) })
		}
		before := len(steps)
		l.pass(b, add)
		goesOn = len(steps) > before
	}
	l.rewindSteps(b, add)
	return steps, goesOn
}

func (l *lives) store(r *record.Record, b livesBroken) {
	if b.replaces {
		l.bucket = r
		return
	}
	l.bucket = r.Merge(l.bucket)
}

// pass reconciles the object once. A call may be posted, refused, or get no response, with or without effect.
func (l *lives) pass(b livesBroken, add func(string, func(*lives))) {
	n := l.clone()
	f := n.facts(b)
	actions := delivery.Decide(f)
	if len(actions) > 0 && actions[0] == (delivery.FindEarlier{}) {
		n = l.clone()
		f = n.facts(b)
		f.Earlier = n.found()
		actions = delivery.Decide(f)
	}
	for _, action := range actions {
		switch a := action.(type) {
		case delivery.Lookup:
			l.addLookups(a.Targets, add)
			return
		case delivery.Claim:
			l.claim(f.Post, a.Targets, add)
			return
		case delivery.Record: // the group of a snapshot was closed
			add("the call is taken back", func(n *lives) {
				must(delivery.RecordResults(n.post, f.Results, &delivery.Deadlines{}, n.now()))
				posting.Of(n.post).Target(f.Results[0].Target).NextTryAt = nil // the pause is over by the next reconciliation
				delivery.Describe(n.post, n.now())
			})
			return
		case delivery.Write:
			delivery.Describe(f.Post, l.now())
			if !v1alpha1.SemanticEqual(l.post.Status, f.Post.Status) {
				add("a pass writes", func(n *lives) { n.post = f.Post.DeepCopy() })
				return
			}
		case delivery.Release:
			l.release(b, add)
			return
		default:
		}
	}
}

func (l *lives) claim(post *v1alpha1.Post, targets []int, add func(string, func(*lives))) {
	i := targets[0]
	var call func(what string, taken bool, cost int, outcome platforms.Outcome, inBetween bool)
	call = func(what string, taken bool, cost int, outcome platforms.Outcome, inBetween bool) {
		if l.faults < cost {
			return
		}
		if l.maySnapshot() && !inBetween {
			call(what+", after a snapshot is taken in the middle of it", taken, cost, outcome, true)
		}
		add(fmt.Sprintf("a call for target %d %s", i, what), func(n *lives) {
			n.post, n.faults = post.DeepCopy(), n.faults-cost
			metav1.SetMetaDataAnnotation(&n.post.ObjectMeta, v1alpha1.ArmedAnnotation, record.Arm(n.post))
			id := fmt.Sprintf("%s-%d", n.post.UID, i)
			claim := delivery.TargetClaim{Target: i, Claim: attempt.Claim{ID: id, AccountID: fmt.Sprint("account-", i), Window: time.Second}}
			if n.crowd {
				claim.Group, n.opened = groupName(1), false
			}
			must(delivery.RecordClaims(n.post, []delivery.TargetClaim{claim}, n.stamp()))
			if inBetween {
				n.saveSnapshot()
			}
			n.opened = n.crowd
			if taken {
				n.out[i]++
			}
			result := platforms.Result{Outcome: outcome, Err: platforms.Errorf(platforms.ClassPermanent, "no")}
			if outcome == platforms.Posted {
				result.ExternalID, result.Err = fmt.Sprint("post-", n.out[i]), nil
			}
			must(delivery.RecordResults(n.post, []delivery.Result{{Target: i, Attempt: id, Result: result}}, &delivery.Deadlines{}, n.now()))
			if outcome == platforms.Refused {
				n.confirm(i, taken)
			}
			if outcome == platforms.Unknown {
				must(attempt.Abandon(posting.Of(n.post).Target(i), n.now()))
				delivery.Describe(n.post, n.now())
			}
		})
	}
	call("is posted", true, 0, platforms.Posted, false)
	call("is refused", false, 1, platforms.Refused, false)
	call("is taken and refused", true, 1, platforms.Refused, false)
	call("is taken, and nobody knows", true, 1, platforms.Unknown, false)
	call("is lost, and nobody knows", false, 1, platforms.Unknown, false)
}

// confirm records the platform's response about a refused call after its listing lag.
func (l *lives) confirm(target int, taken bool) {
	timing, _ := l.facts(livesBroken{}).Timing(v1alpha1.PlatformX)
	asked := l.now().Add(time.Minute)
	answer := delivery.LookupAnswer{Target: target, AskedAt: asked}
	if taken {
		answer.LookupResult = platforms.LookupResult{Matches: 1, ExternalID: fmt.Sprint("post-", l.out[target])}
	}
	must(delivery.RecordLookup(l.post, &answer, timing, &delivery.Deadlines{}, asked))
}

// release finalizes the object as the reconciler does, with or without its record.
func (l *lives) release(b livesBroken, add func(string, func(*lives))) {
	needed := record.Required(l.post) && !b.noRecord && (posting.Of(l.post).Started() || l.post.Status.Finished || !b.forgetsAsked)
	if needed && l.away {
		return
	}
	add("it is gone", func(n *lives) {
		if needed {
			r := record.New(n.post, "team", accountOf)
			if b.forgetsUnknown {
				for i := range r.Targets {
					if t := &r.Targets[i]; t.State == v1alpha1.TargetUndecided {
						t.State, t.Attempt.Outcome = v1alpha1.TargetFailed, v1alpha1.OutcomeRefused
					}
				}
			}
			n.store(r, b)
		}
		n.post = nil
	})
}

func (l *lives) facts(b livesBroken) *delivery.Facts {
	f := &delivery.Facts{
		View: posting.Of(l.post), Now: l.now(), Connections: livesAccounts, Rollback: l.rewound(b),
		Settings:           delivery.Settings{StartingDeadline: time.Hour, SendWindow: time.Second, ClockMargin: time.Second},
		Platforms:          platforms.Registry{v1alpha1.PlatformX: publisher{capabilities: platforms.Capabilities{Delivers: []v1alpha1.Category{v1alpha1.CategoryText}}}},
		BlockedUntil:       func(*v1alpha1.Connection) time.Time { return time.Time{} },
		Invalid:            func() field.ErrorList { return nil },
		CredentialsProblem: func(string) error { return nil },
		Preparation:        func(int) delivery.Preparation { return delivery.Preparation{} },
	}
	f.Group = func(string) delivery.GroupState {
		if l.opened {
			return delivery.GroupMayBeOpen
		}
		return delivery.GroupClosed
	}
	switch {
	case b.noLook:
		f.Earlier = delivery.Earlier{State: delivery.EarlierDisabled}
	case b.unlooked && l.away:
		f.Earlier = delivery.Earlier{State: delivery.EarlierFetched}
	}
	return f
}

func (l *lives) found() delivery.Earlier {
	if l.away {
		return delivery.Earlier{State: delivery.EarlierUnavailable, Problem: "away"}
	}
	return delivery.Earlier{State: delivery.EarlierFetched, Record: l.bucket}
}

// wrong returns the guarantee that a state violates, or "".
func (l *lives) wrong() string {
	for account, out := range l.out {
		if out > 1 {
			return fmt.Sprintf("it is out %d times on account %d", out, account)
		}
	}
	if l.post == nil {
		return ""
	}
	if l.cancels && l.post.Status.Phase == v1alpha1.PhaseCancelled && l.out[0] > 0 {
		return "it reads cancelled, and is out"
	}
	for i := range l.post.Status.Targets {
		switch t := &l.post.Status.Targets[i]; {
		case attempt.Posted(t) && l.out[t.Index] == 0:
			return fmt.Sprintf("target %d reads posted, and is nowhere: it is lost", t.Index)
		case attempt.Undecided(t) && t.Attempt == nil && !record.IsCopy(l.post) && l.bucket == nil && posting.Of(l.post).Due().After(l.doubted):
			return fmt.Sprintf("a person is asked about target %d, which cannot have gone out", t.Index)
		}
	}
	return ""
}

// stuck reports whether a due post makes no progress although the store is available and it is known whether there was
// a rollback.
func (l *lives) stuck() bool {
	return l.post != nil && l.post.DeletionTimestamp.IsZero() && !l.away && l.unsure.IsZero() && posting.Of(l.post).UntilDue(l.now()) <= 0 &&
		!posting.Of(l.post).AllSettled() && l.post.Status.Phase != v1alpha1.PhaseCancelled
}

// exploreLives visits every schedule within the bounds. It returns the number of states and the trace to a violation,
// if there is one.
func exploreLives(within bounds, b livesBroken) (states int, broken string) {
	type visit struct {
		state *lives
		path  []string
	}
	first := &lives{bounds: within, faults: 1}
	seen := map[[sha256.Size]byte]bool{first.key(): true}
	queue := []visit{{first, nil}}
	for len(queue) > 0 {
		v := queue[0]
		queue[0] = visit{}
		queue = queue[1:]
		steps, goesOn := v.state.next(b)
		if !goesOn && v.state.stuck() {
			return len(seen), "the state does not change:\n  " + strings.Join(v.path, "\n  ")
		}
		for what, n := range steps {
			key := n.key()
			if seen[key] {
				continue
			}
			seen[key] = true
			path := slices.Concat(v.path, []string{what})
			if why := n.wrong(); why != "" {
				return len(seen), why + ":\n  " + strings.Join(path, "\n  ")
			}
			queue = append(queue, visit{n, path})
		}
	}
	return len(seen), ""
}

// deletions bounds schedules without rollbacks.
var deletions = bounds{lives: 3, targets: 2}

func TestLives(t *testing.T) {
	states, broken := exploreLives(deletions, livesBroken{})
	assertUnbroken(t, states, broken)
	t.Logf("%d states", states)
}

// assertUnbroken fails a test if an exploration found a broken rule, or did not go far.
func assertUnbroken(t *testing.T, states int, broken string) {
	t.Helper()
	if broken != "" {
		t.Fatal(broken)
	}
	if states < 1000 {
		t.Errorf("only %d states: the model does not go far", states)
	}
}

// assertNoticed fails a test if an exploration of a mutation found no broken rule.
func assertNoticed(t *testing.T, states int, broken string) {
	t.Helper()
	if broken == "" {
		t.Errorf("no invariant detects it in %d states", states)
	}
	t.Log(broken)
}

func TestLivesMutations(t *testing.T) {
	for name, b := range map[string]livesBroken{
		"a post is deleted without a record":              {noRecord: true},
		"a record replaces the one before":                {replaces: true},
		"no lookup":                                       {noLook: true},
		"an unknown outcome counts as rejected":           {forgetsUnknown: true},
		"an unavailable store counts as having no record": {unlooked: true},
	} {
		t.Run(name, func(t *testing.T) {
			states, broken := exploreLives(deletions, b)
			assertNoticed(t, states, broken)
		})
	}
}
