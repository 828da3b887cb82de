// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"slices"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
)

// Shards divide the teams among the replicas of the manager; see docs/adr/0035. The model has two posts of one account,
// of a team that may be moved, and two replicas, which take over and give up two shards. Decisions and records are the
// code of package delivery. The other scenarios cover what happens to a single post in more detail.

// shardBounds limits an exploration of shards.
type shardBounds struct {
	// faults is the number of faults per run, and kinds are the allowed ones.
	faults int
	kinds  []fault
	// handOvers is the number of times that a replica may give up a shard, and moves that the team may be moved.
	handOvers, moves int
	// arrives creates the second post at any moment, with its team's label, with an outdated one or without one.
	arrives bool
	// restores is the number of times that a snapshot may be taken and restored. early: it is taken at the
	// start and restored before the posts are due, and a replica may stall until then.
	restores int
	early    bool
	// clocks are the offsets of the replicas' clocks.
	clocks [managers]int64
	// prepares: the first post needs a preparation, which each replica may complete at any moment. The second post does not
	// wait for it.
	prepares bool
	// readsBack lets a replica read the Lease between each claim and its call.
	readsBack bool
	broken    shardBroken
}

// shardBroken selects the rules that a mutation breaks.
type shardBroken struct {
	omits, unnamedIsOwn, ignoresOpen, sendsReleased, keepsClaiming bool
	unlisted, unlistedTeam, unsuspended, resumesEarly, anyTeam     bool
	adopts, noPause, unlabelled, blindClaim, countsForced, reuses  bool
}

// cut: a replica does not reach the API server. Its calls to the platform continue.
const cut fault = "the API server cannot be reached"

// lease is the Lease of a shard. It is written only when the shard changes hands, and each new holder gives it a version
// that was never used before.
type lease struct {
	holder  int8 // a replica, or nobody
	version int8
}

// term is what a claim names: a shard's Lease and its version. It is zero if a claim names none.
type term struct{ shard, version int8 }

// labelledPost is a Post with its label. rv is its resourceVersion.
type labelledPost struct {
	*version

	// shard is the label's value, or unlabelled.
	shard int8
	rv    int8
}

const unlabelled int8 = -1

// assignment is the part of the Team's status that shards use. The team is suspended while it is moved.
type assignment struct {
	shard  int8
	moving bool
}

// accountPosts are the account's two posts in due order. A post that does not exist has no
// version.
type accountPosts [2]labelledPost

// shards is one state.
type shards struct {
	x   *shardExplorer
	now int64

	posts accountPosts
	// past holds the previous states of the posts, latest first.
	past   []accountPosts
	leases [2]lease
	// versions counts the versions of the Leases.
	versions int8
	// forced holds the versions, as bits, that were taken over from a running replica.
	forced [2]uint16
	// team is the team's assignment, and teamBefore is the one before its last change.
	team, teamBefore assignment
	replica          [managers]replica
	// orphans are the calls of replicas that were killed.
	orphans []shardCall
	// out counts the published posts. firstSent: a call for the first one was sent.
	out       [2]int8
	firstSent bool
	// named holds, by attempt, the term that its claim names.
	named []term

	left, handOvers, moves, restores int
	arrives                          bool
	// snapshot is the snapshot, and restoredAt is the time when it was restored, or never.
	snapshot   *shardSnapshot
	restoredAt int64

	violation *violation
}

// shardSnapshot is an earlier state of etcd.
type shardSnapshot struct {
	posts  accountPosts
	leases [2]lease
	team   assignment
}

// shardCall is a call whose bytes have left a replica. by is the time when the replica stops waiting for it.
type shardCall struct {
	post   int8
	by     int64
	exempt bool
}

// shardStep is one transition.
type shardStep struct {
	what   string
	fault  fault
	choice bool
	next   *shards
}

type shardAdder = func(what string, f fault, choice bool, do func(*shards))

func (s *shards) clone() *shards {
	n := *s
	n.past, n.orphans, n.named = slices.Clone(s.past), slices.Clone(s.orphans), slices.Clone(s.named)
	return &n
}

// steps returns every transition from a state.
func (s *shards) steps() []shardStep {
	var steps []shardStep
	add := func(what string, f fault, choice bool, do func(*shards)) {
		if f != "" && (s.left == 0 || !slices.Contains(s.x.kinds, f)) {
			return
		}
		n := s.clone()
		if f != "" {
			n.left--
		}
		do(n)
		steps = append(steps, shardStep{what, f, choice, n})
	}
	for i := range s.replica {
		s.replicaSteps(i, add)
	}
	s.leaderSteps(add)
	s.orphanSteps(add)
	s.outsideSteps(add)
	s.timeStep(add)
	return steps
}

// leaderSteps adds what the leader of the singletons does: it labels posts, and it resumes a team whose posts are all
// labelled.
func (s *shards) leaderSteps(add shardAdder) {
	complete := true
	for p := range s.posts {
		if s.posts[p].version == nil || s.posts[p].shard == s.team.shard {
			continue
		}
		complete = false
		if s.posts[p].shard != unlabelled || !s.x.broken.unlabelled {
			add("the leader labels "+postName(p), "", false, func(n *shards) {
				next := n.posts[p]
				next.shard = n.team.shard
				n.store(p, next)
			})
		}
	}
	if s.team.moving && (complete || s.x.broken.resumesEarly) {
		add("the leader resumes the team", "", false, func(n *shards) {
			n.assign(assignment{shard: n.team.shard})
			for i := range n.replica {
				// Its new holder lists the team's posts at the earliest now.
				if !n.x.broken.unlistedTeam {
					n.replica[i].seen = 0
				}
			}
		})
	}
}

// outsideSteps adds what users do, and what happens to the cluster as a whole.
func (s *shards) outsideSteps(add shardAdder) {
	if s.moves > 0 && !s.team.moving {
		add("the team is assigned to the other shard", "", true, func(n *shards) {
			n.moves--
			n.assign(assignment{1 - n.team.shard, !n.x.broken.unsuspended})
		})
	}
	if s.arrives && (s.x.restores == 0 || s.restoredAt != never) {
		labels := map[string]int8{"with its label": s.team.shard, "without a label": unlabelled}
		if s.moves < s.x.moves {
			labels["with an outdated label"] = 1 - s.team.shard
		}
		for _, how := range []string{"with its label", "with an outdated label", "without a label"} {
			if label, ok := labels[how]; ok {
				add("the second post is created "+how, "", true, func(n *shards) {
					n.arrives = false
					n.store(1, labelledPost{version: n.x.posts[1], shard: label})
				})
			}
		}
	}
	if s.restores > 0 && s.snapshot == nil {
		add("a snapshot is taken", "", true, func(n *shards) { n.snapshot = &shardSnapshot{n.posts, n.leases, n.team} })
	}
	if s.restores > 0 && s.snapshot != nil && (!s.x.early || s.now < dueAt) {
		add("the snapshot is restored", "", true, (*shards).restore)
	}
}

// restore returns etcd to the snapshot. The API server is down meanwhile, so the replicas stop, except one that stalls.
// Their calls continue. How the rollback is detected is not part of this model.
func (s *shards) restore() {
	before := s.posts
	s.restores--
	s.posts, s.leases, s.team, s.teamBefore, s.past = s.snapshot.posts, s.snapshot.leases, s.snapshot.team, s.snapshot.team, nil
	s.snapshot = nil
	for p := range s.posts {
		s.posts[p].rv = before[p].rv + 1 // no copy from before has it
	}
	for i := range s.replica {
		if !s.replica[i].stalled {
			s.killReplica(i)
			continue
		}
		for l, held := range s.replica[i].held {
			if held > 0 && held != s.leases[l].version {
				s.forced[l] |= 1 << held
			}
		}
	}
	s.restoredAt = s.now
}

func (s *shards) assign(to assignment) { s.teamBefore, s.team = s.team, to }

// store stores a version of a post.
func (s *shards) store(p int, next labelledPost) {
	s.past = append([]accountPosts{s.posts}, s.past...)
	s.past = s.past[:min(len(s.past), depth)]
	next.rv = s.posts[p].rv + 1
	s.posts[p] = next
	for i := range s.replica {
		r := &s.replica[i]
		r.seen = min(r.seen+1, forgotten)
		for q := range r.wrote {
			r.wrote[q] = min(r.wrote[q]+1, forgotten)
		}
	}
}

// timeStep moves the clock to the next time when something may change, once no replica has work to do.
func (s *shards) timeStep(add shardAdder) {
	next := never
	consider := func(at int64) {
		if at > s.now && (next == never || at < next) {
			next = at
		}
	}
	if s.team.moving || s.x.arrives && s.unlabelledPost() {
		return
	}
	consider(dueAt)
	if s.restoredAt != never {
		consider(s.restoredAt + s.x.over() + margin)
	}
	for _, c := range s.orphans {
		if c.by <= s.now {
			return
		}
		consider(c.by)
	}
	for i := range s.replica {
		if s.replicaBusy(i) {
			return
		}
		s.replicaTimes(i, consider)
	}
	if next != never {
		add("time passes", "", false, func(n *shards) { n.now = next })
	}
}

// unlabelledPost reports whether the leader still has to label a post.
func (s *shards) unlabelledPost() bool {
	return !s.x.broken.unlabelled && slices.ContainsFunc(s.posts[:], func(p labelledPost) bool { return p.version != nil && p.shard != s.team.shard })
}

// key identifies a state. Only the equality of versions matters, so they are numbered in the order of their appearance.
func (s *shards) key() []byte {
	var k key
	var known []int8
	id := func(version int8) int64 {
		if version == 0 || s.x.broken.reuses {
			return int64(version)
		}
		if !slices.Contains(known, version) {
			known = append(known, version)
		}
		return int64(1 + slices.Index(known, version))
	}
	k.put(s.now, int64(s.left), int64(s.handOvers), int64(s.moves), int64(s.restores), bit(s.arrives), s.restoredAt, int64(s.out[0]), int64(s.out[1]), bit(s.firstSent))
	s.posts.put(&k, &s.posts)
	k.put(int64(len(s.past)))
	for i := range s.past {
		s.past[i].put(&k, &s.posts)
	}
	for _, l := range s.leases {
		k.put(int64(l.holder), id(l.version))
	}
	k.put(int64(s.team.shard), bit(s.team.moving), int64(s.teamBefore.shard), bit(s.teamBefore.moving))
	for i := range s.replica {
		s.replica[i].put(&k, s, id)
	}
	k.put(int64(len(s.orphans)))
	for _, c := range s.orphans {
		k.put(int64(c.post), c.by, bit(c.exempt))
	}
	s.putNamed(&k, &s.posts, id)
	k.put(bit(s.snapshot != nil), int64(len(s.named)))
	if s.snapshot != nil {
		s.snapshot.posts.put(&k, &s.snapshot.posts)
		for _, l := range s.snapshot.leases {
			k.put(int64(l.holder), id(l.version))
		}
		k.put(int64(s.snapshot.team.shard), bit(s.snapshot.team.moving))
		s.putNamed(&k, &s.snapshot.posts, id)
	}
	return k
}

// putNamed adds the terms that open claims name to a key.
func (s *shards) putNamed(k *key, posts *accountPosts, id func(int8) int64) {
	for _, post := range posts {
		if a := openCall(post); a != nil {
			named := s.named[number(a.ID[1:])-1]
			k.put(int64(named.shard), id(named.version))
		}
	}
}

// put adds posts to a key. Their resourceVersions only count relative to the current ones.
func (a *accountPosts) put(k *key, current *accountPosts) {
	for p := range a {
		k.put(a[p].number(), int64(a[p].shard), int64(current[p].rv-a[p].rv))
	}
}

func postName(p int) string { return []string{"the first post", "the second post"}[p] }

// local returns the time by a replica's clock.
func (s *shards) local(i int) time.Time {
	return t0.Add(time.Duration(s.now+s.x.clocks[i]) * time.Millisecond)
}

// entry returns the status of a post's target.
func (p labelledPost) entry() *v1alpha1.TargetStatus { return posting.Of(p.post).Target(0) }
