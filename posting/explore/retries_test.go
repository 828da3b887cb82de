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

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
	"github.com/herald-social/herald/posting/record"
)

// A failed post is retried by two posts at once, each in its own process. Decisions and records are production code;
// the API server and the platform are models. Between reading the failed post and reserving its targets, and between
// that and the claim, a process may die, the other one may act, a user may settle the failed post, and it may be
// deleted and applied again. The other scenarios cover faults during the delivery of one post.

// retries is one state.
type retries struct {
	// posts holds the failed post and the two retries; nil if deleted. versions counts their writes.
	posts    [3]*v1alpha1.Post
	versions [3]int
	// read is the failed post, with its version, as each retry's process last read it; nil before.
	read        [3]*v1alpha1.Post
	readVersion [3]int
	// bucket is the record of the deleted failed post.
	bucket *record.Record
	// deletions and faults are the numbers of these that may still happen; born counts the failed post's objects. failed
	// is true once a call of a retry has failed.
	deletions, faults, born int
	failed                  bool
	// out counts published posts per account, including that of a call whose outcome is unknown.
	out []int
}

// retriesBroken is a rule that a mutation breaks.
type retriesBroken struct {
	blindly, unreserved, trusting, unfinished, forgetful bool
}

const failedPost = 0

var retryNames = [3]string{"launch", "retry-a", "retry-b"}

func (r *retries) clone() *retries {
	n := *r
	n.out = slices.Clone(r.out)
	for i := range n.posts {
		if n.posts[i] != nil {
			n.posts[i] = n.posts[i].DeepCopy()
		}
	}
	return &n
}

func (r *retries) key() [sha256.Size]byte {
	var stale [3]bool // only whether the failed post has changed since matters, and not how often
	for who := range stale {
		stale[who] = r.read[who] != nil && r.readVersion[who] != r.versions[failedPost]
	}
	data, err := json.Marshal([]any{r.posts, r.read, stale, r.bucket, r.deletions, r.faults, r.born, r.out})
	must(err)
	return sha256.Sum256(data)
}

// make creates a post for both accounts.
func (r *retries) make(who int) {
	post := &v1alpha1.Post{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: retryNames[who], UID: types.UID(fmt.Sprint(retryNames[who], "-", r.born)), Generation: 1, CreationTimestamp: metav1.NewTime(t0),
	}}
	post.Spec.Category = v1alpha1.CategoryText
	if who != failedPost {
		post.Spec.RetryOf = &v1alpha1.LocalReference{Name: retryNames[failedPost]}
	}
	for i := range r.out {
		post.Spec.Targets = append(post.Spec.Targets, v1alpha1.PostTarget{ConnectionRef: v1alpha1.LocalReference{Name: fmt.Sprint("account-", i)}, Caption: "hello"})
	}
	r.posts[who] = post
}

// beginning is the outcome of one target of the failed post.
type beginning struct {
	name string
	// out is whether it is public.
	out     bool
	outcome platforms.Outcome
}

var beginnings = []beginning{
	{"never claimed", false, ""},
	{"refused", false, platforms.Refused},
	{"posted", true, platforms.Posted},
	{"published, with an unknown outcome", true, platforms.Unknown},
	{"lost, with an unknown outcome", false, platforms.Unknown},
}

func (r *retries) begin(i int, b beginning) {
	post := r.posts[failedPost]
	t := posting.Of(post).Target(i)
	if b.out {
		r.out[i]++
	}
	if b.outcome == "" {
		must(attempt.Fail(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonMissedSchedule, Problem: "too late"}))
		return
	}
	r.call(post, i, b.outcome)
}

// call records a claim and the result of its call.
func (r *retries) call(post *v1alpha1.Post, i int, outcome platforms.Outcome) {
	t := posting.Of(post).Target(i)
	id := fmt.Sprintf("%s-%d", post.UID, i)
	must(attempt.Open(t, attempt.Claim{ID: id, AccountID: fmt.Sprint("account-", i), Window: time.Second}, t0))
	switch outcome {
	case platforms.Posted:
		result := platforms.Result{Outcome: outcome, ExternalID: fmt.Sprint("post-", id)}
		must(delivery.RecordResults(post, []delivery.Result{{Target: i, Attempt: id, Result: result}}, &delivery.Deadlines{}, t0))
	case platforms.Unknown:
		must(attempt.Abandon(t, t0))
	case platforms.Refused, platforms.NotSent, platforms.Accepted:
		t.Attempt.Outcome = v1alpha1.OutcomeRefused // a lookup has confirmed it
		must(attempt.Fail(t, v1alpha1.Blocked{Reason: v1alpha1.ReasonRefused, Problem: "no"}))
	}
}

// next returns the successor states by event. goesOn reports whether a process has work to do.
func (r *retries) next(b retriesBroken) (steps map[string]*retries, goesOn bool) {
	steps = map[string]*retries{}
	add := func(what string, do func(*retries)) {
		n := r.clone()
		do(n)
		for i := range n.posts {
			if n.posts[i] != nil && n.versions[i] != r.versions[i] {
				for t := range n.posts[i].Status.Targets {
					n.posts[i].Status.Targets[t].NextTryAt = nil // the pause is over by the next pass
				}
				delivery.Describe(n.posts[i], t0)
			}
		}
		steps[what] = n
	}
	for who, post := range r.posts {
		if post == nil || post.Status.Finished {
			continue
		}
		before := len(steps)
		r.pass(who, b, add)
		goesOn = goesOn || len(steps) > before
		if r.read[who] != nil {
			add(retryNames[who]+": the process dies", func(n *retries) { n.read[who] = nil })
		}
	}
	r.users(b, add)
	return steps, goesOn
}

// users adds what happens to the failed post from outside.
func (r *retries) users(b retriesBroken, add func(string, func(*retries))) {
	failed := r.posts[failedPost]
	if failed == nil && r.bucket != nil {
		add("the failed post is applied again", func(n *retries) {
			n.born++
			n.make(failedPost)
			n.versions[failedPost]++
		})
	}
	if failed == nil {
		return
	}
	for i := range failed.Status.Targets {
		if t := &failed.Status.Targets[i]; attempt.Undecided(t) {
			add(fmt.Sprintf("a person answers about target %d", i), func(n *retries) { n.settle(i) })
		}
	}
	if r.deletions > 0 {
		add("the failed post is deleted", func(n *retries) {
			n.deletions--
			n.bucket = record.New(n.posts[failedPost], "team", accountOf)
			if b.forgetful {
				for i := range n.bucket.Targets {
					n.bucket.Targets[i].RetriedBy = ""
				}
			}
			n.posts[failedPost] = nil
			n.versions[failedPost]++
		})
	}
}

// settle answers truthfully about a call of the failed post. It is too late to send that post again.
func (r *retries) settle(i int) {
	t := posting.Of(r.posts[failedPost]).Target(i)
	r.versions[failedPost]++
	if r.out[i] > 0 {
		t.State, t.Blocked, t.ExternalID, t.Attempt.Outcome = v1alpha1.TargetPosted, nil, "answer", v1alpha1.OutcomePosted
		return
	}
	t.Attempt.Outcome, t.Attempt.UnknownSince = v1alpha1.OutcomeNotSent, nil
	t.State, t.Blocked = v1alpha1.TargetFailed, &v1alpha1.Blocked{Reason: v1alpha1.ReasonMissedSchedule, Problem: "too late"}
}

// pass makes one step of a post's reconciliation. It reads and reserves in different steps.
func (r *retries) pass(who int, b retriesBroken, add func(string, func(*retries))) {
	n, name := r.clone(), retryNames[who]
	f := n.facts(who)
	if r.read[who] != nil {
		f.Original = n.original(who, b)
	}
	for _, action := range delivery.Decide(f) {
		switch a := action.(type) {
		case delivery.ReadOriginal:
			add(name+": reads the failed post", func(n *retries) {
				n.readVersion[who], n.read[who] = n.versions[failedPost], &v1alpha1.Post{}
				if n.posts[failedPost] != nil {
					n.read[who] = n.posts[failedPost].DeepCopy()
				}
			})
			return
		case delivery.ReserveRetry:
			add(name+": reserves its targets", func(n *retries) { n.reserve(who, a.Targets, b) })
			return
		case delivery.Claim:
			r.claim(who, f.Post, a.Targets[0], add)
			return
		case delivery.Write:
			delivery.Describe(f.Post, t0)
			if !v1alpha1.SemanticEqual(r.posts[who].Status, f.Post.Status) {
				add(name+": writes its status", func(n *retries) { n.store(who, f.Post) })
				return
			}
		default:
		}
	}
	if r.read[who] != nil && r.readVersion[who] != r.versions[failedPost] {
		add(name+": waits, and reads again", func(n *retries) { n.read[who] = nil })
	}
}

// original returns the failed post as a retry's process has read it. A mutation treats undecided targets as failed, or
// does not wait for the end of the failed post.
func (r *retries) original(who int, b retriesBroken) *delivery.Original {
	if r.read[who].Name == "" {
		return &delivery.Original{}
	}
	original := r.read[who].DeepCopy()
	for i := range original.Status.Targets {
		t := &original.Status.Targets[i]
		if b.trusting && attempt.Undecided(t) {
			t.State, t.Attempt.Outcome, t.Attempt.UnknownSince = v1alpha1.TargetFailed, v1alpha1.OutcomeRefused, nil
		}
		if b.unfinished && posting.StateOf(t) == v1alpha1.TargetPending {
			t.State, t.Attempt = v1alpha1.TargetFailed, nil
		}
	}
	original.Status.Finished = original.Status.Finished || b.trusting || b.unfinished
	return &delivery.Original{Post: original}
}

// reserve is a conditional write. After a conflict, the failed post is read again.
func (r *retries) reserve(who int, targets []int, b retriesBroken) {
	next := r.read[who].DeepCopy()
	delivery.Reserve(next, targets, retryNames[who], t0)
	switch {
	case b.unreserved:
	case r.posts[failedPost] == nil, r.versions[failedPost] != r.readVersion[who] && !b.blindly:
		r.read[who] = nil
		return
	default:
		r.posts[failedPost] = next.DeepCopy()
		r.versions[failedPost]++
	}
	r.read[who], r.readVersion[who] = next, r.versions[failedPost]
}

func (r *retries) claim(who int, post *v1alpha1.Post, i int, add func(string, func(*retries))) {
	call := func(what string, taken bool, cost int, outcome platforms.Outcome) {
		if r.faults < cost {
			return
		}
		add(fmt.Sprintf("%s: a call for target %d %s", retryNames[who], i, what), func(n *retries) {
			n.faults, n.failed = n.faults-cost, n.failed || cost > 0
			if taken {
				n.out[i]++
			}
			post := post.DeepCopy()
			n.call(post, i, outcome)
			n.store(who, post)
		})
	}
	call("is posted", true, 0, platforms.Posted)
	call("is refused", false, 1, platforms.Refused)
	call("is taken, and nobody knows", true, 1, platforms.Unknown)
}

func (r *retries) store(who int, post *v1alpha1.Post) {
	r.posts[who], r.read[who] = post.DeepCopy(), nil
	r.versions[who]++
}

func (r *retries) facts(who int) *delivery.Facts {
	f := (&lives{post: r.posts[who]}).facts(livesBroken{})
	f.Now, f.Rollback, f.Group = t0, delivery.Rollback{}, nil
	f.Earlier = delivery.Earlier{State: delivery.EarlierFetched}
	if who == failedPost {
		f.Earlier.Record = r.bucket
	}
	return f
}

// wrong returns the guarantee that a state violates, or "".
func (r *retries) wrong() string {
	for account, out := range r.out {
		if out > 1 {
			return fmt.Sprintf("it is out %d times on account %d", out, account)
		}
	}
	for who, post := range r.posts {
		if post == nil || who == failedPost {
			continue
		}
		for i := range post.Status.Targets {
			t := &post.Status.Targets[i]
			if failed := r.posts[failedPost]; t.Attempt != nil && failed != nil && r.born == 0 && posting.Of(failed).Target(i).RetriedBy != retryNames[who] {
				return fmt.Sprintf("%s has sent target %d, and the failed post does not name it", retryNames[who], i)
			}
		}
	}
	return ""
}

// lost returns the missing posts in a state in which no process has work to do: as long as the failed post exists and
// no further call failed, everything that is proven not to be public has been sent by one of the retries.
func (r *retries) lost() string {
	failed := r.posts[failedPost]
	if failed == nil || r.born > 0 || r.failed || !failed.Status.Finished {
		return ""
	}
	for i, out := range r.out {
		if out == 0 {
			return fmt.Sprintf("target %d is nowhere: it is lost", i)
		}
	}
	for _, post := range r.posts {
		if !post.Status.Finished {
			return "a retry stays unfinished"
		}
	}
	return ""
}

// exploreRetries visits every schedule from each beginning of one target, and from some pairs of beginnings with fewer
// faults.
func exploreRetries(b retriesBroken) (states int, broken string) {
	visit := func(first *retries, targets ...beginning) bool {
		n, why := exploreRetriesFrom(first, targets, b)
		states += n
		if why != "" {
			broken = fmt.Sprintf("the targets were %v: %s", targets, why)
		}
		return why == ""
	}
	for _, one := range beginnings {
		if !visit(&retries{deletions: 1, faults: 1}, one) {
			return states, broken
		}
	}
	for _, two := range beginnings {
		if !visit(&retries{}, beginnings[1], two) {
			return states, broken
		}
	}
	return states, ""
}

func exploreRetriesFrom(first *retries, targets []beginning, b retriesBroken) (states int, broken string) {
	type visit struct {
		state *retries
		path  []string
	}
	first.out = make([]int, len(targets))
	for who := range first.posts {
		first.make(who)
	}
	failed := first.posts[failedPost]
	for i := range first.out {
		failed.Status.Targets = append(failed.Status.Targets, v1alpha1.TargetStatus{Index: int32(i), Platform: v1alpha1.PlatformX})
		first.begin(i, targets[i])
	}
	delivery.Describe(failed, t0)
	seen := map[[sha256.Size]byte]bool{first.key(): true}
	queue := []visit{{first, nil}}
	for len(queue) > 0 {
		v := queue[0]
		queue[0] = visit{}
		queue = queue[1:]
		steps, goesOn := v.state.next(b)
		if why := v.state.lost(); !goesOn && why != "" {
			return len(seen), why + ":\n  " + strings.Join(v.path, "\n  ")
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

func TestRetries(t *testing.T) {
	states, broken := exploreRetries(retriesBroken{})
	assertUnbroken(t, states, broken)
	t.Logf("%d states", states)
}

func TestRetriesMutations(t *testing.T) {
	for name, b := range map[string]retriesBroken{
		"the reservation ignores the version":           {blindly: true},
		"no reservation":                                {unreserved: true},
		"a possibly published target counts as refused": {trusting: true},
		"the failed post's end is not awaited":          {unfinished: true},
		"the record forgets who retries":                {forgetful: true},
	} {
		t.Run(name, func(t *testing.T) {
			states, broken := exploreRetries(b)
			assertNoticed(t, states, broken)
		})
	}
}
