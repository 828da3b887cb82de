// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package explore

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
	"github.com/herald-social/herald/posting/delivery"
)

// replica is a process and its memory.
type replica struct {
	up, stalled, cut bool
	// prepared: it has prepared the first post.
	prepared bool
	// held are the versions of the Leases that made this process the holder, or 0. given are those that it gives up and
	// has not released yet.
	held, given [2]int8
	// seen and wrote are the numbers of stored versions since its cache was last known to be complete, and since it wrote
	// each post.
	seen  int8
	wrote [2]int8
	jobs  [2]shardJob
}

// jobPhase is the progress of a replica's claim.
type jobPhase int8

const (
	noJob jobPhase = iota
	// writing: the request to store the claim is on its way. ready: the claim is stored. calling: the call's bytes have
	// left.
	writing
	ready
	calling
	ended
)

// shardJob is a replica's claim of a post, and its call.
type shardJob struct {
	phase  jobPhase
	term   term
	copy   *version
	rv     int8
	passAt int64
	number int
	by     int64
	slow   bool
	answer answer
	post   int
	// exempt: the claim was stored after another replica had taken over the shard by force.
	exempt bool
}

func (r *replica) put(k *key, s *shards, id func(int8) int64) {
	k.put(bit(r.up), bit(r.stalled), bit(r.cut), bit(r.prepared), int64(r.seen))
	for l, held := range r.held {
		k.put(id(held), id(r.given[l]), int64(r.wrote[l]), int64(s.forced[l]>>held&1))
	}
	for p := range r.jobs {
		j := &r.jobs[p]
		k.put(int64(j.phase), int64(j.term.shard), id(j.term.version), j.copy.number(), j.passAt, int64(j.number), j.by, bit(j.slow), int64(j.post), bit(j.exempt))
		k.text(string(j.answer))
		if j.phase == writing {
			k.put(int64(s.posts[p].rv-j.rv), int64(s.forced[j.term.shard]>>j.term.version&1))
		}
	}
}

// replicaSteps adds what a replica may do next, and the faults that may happen to it.
func (s *shards) replicaSteps(i int, add shardAdder) {
	name := fmt.Sprintf("replica %d ", i)
	r := &s.replica[i]
	switch {
	case !r.up:
		add(name+"starts", "", false, func(n *shards) { n.startReplica(i) })
		return
	case r.stalled:
		add(name+"goes on", "", false, func(n *shards) { n.replica[i].stalled = false })
	case s.x.early && s.restores > 0, !s.x.early && s.replicaBusy(i):
		add(name+"stalls", stall, false, func(n *shards) { n.replica[i].stalled = true })
	}
	add(name+"is killed", crash, false, func(n *shards) { n.killReplica(i) })
	for p := range r.jobs {
		if r.jobs[p].phase == writing && !r.cut {
			add(name+"is killed, and its claim is stored", crash, false, func(n *shards) { n.land(i, p); n.killReplica(i) })
		}
	}
	if r.cut {
		add(name+"reaches the API server again", "", false, func(n *shards) { n.replica[i].cut = false })
	} else {
		add(name+"is cut off", cut, false, func(n *shards) { n.replica[i].cut = true })
	}
	s.answerSteps(i, name, add)
	if r.stalled {
		return
	}
	if s.x.prepares && !r.prepared {
		add(name+"has prepared the first post", "", false, func(n *shards) { n.replica[i].prepared = true })
	}
	for p := range r.jobs {
		s.jobSteps(i, p, name+postName(p)+": ", add)
	}
	if r.cut {
		return
	}
	for l := range s.x.shards() {
		s.leaseSteps(i, l, fmt.Sprintf("%sshard %d: ", name, l), add)
	}
	for p := range s.posts {
		s.shardPasses(i, p, name+postName(p)+": ", add)
	}
}

func (s *shards) startReplica(i int) {
	s.replica[i] = replica{up: true, seen: forgotten, wrote: [2]int8{forgotten, forgotten}}
	for l := range s.leases {
		if s.x.broken.adopts && s.leases[l].holder == int8(i) {
			s.replica[i].held[l], s.replica[i].seen = s.leases[l].version, 0
		}
	}
}

// killReplica kills a process. Its calls continue.
func (s *shards) killReplica(i int) {
	for p := range s.replica[i].jobs {
		if j := &s.replica[i].jobs[p]; j.phase == calling && j.by > s.now {
			s.orphans = append(s.orphans, shardCall{int8(p), j.by, j.exempt})
		}
	}
	s.replica[i] = replica{seen: forgotten, wrote: [2]int8{forgotten, forgotten}}
}

// leaseSteps adds the writes of a Lease by which a replica takes over a shard or releases it.
func (s *shards) leaseSteps(i, l int, name string, add shardAdder) {
	r := &s.replica[i]
	switch {
	case r.given[l] > 0:
		add(name+"released", "", false, func(n *shards) {
			if n.leases[l].version == n.replica[i].given[l] {
				n.leases[l].holder = nobody
			}
			n.replica[i].given[l] = 0
		})
	case r.held[l] > 0 && r.held[l] != s.leases[l].version:
		add(name+"lost, as it notices", "", false, func(n *shards) { n.replica[i].held[l] = 0 })
	case r.held[l] > 0 && s.handOvers > 0:
		add(name+"given up", "", true, func(n *shards) {
			n.handOvers--
			n.replica[i].given[l] = n.replica[i].held[l]
			if !n.x.broken.keepsClaiming {
				n.replica[i].held[l] = 0
			}
		})
	case r.held[l] == 0 && s.available(i, l):
		add(name+"acquired", "", false, func(n *shards) { n.acquire(i, l) })
	}
}

// available reports whether a replica may take over a shard: it has no holder, or its holder does not renew its own
// Lease. A process does not know the Lease of its predecessor with the same name.
func (s *shards) available(i, l int) bool {
	holder := s.leases[l].holder
	if holder == nobody || int(holder) == i {
		return true
	}
	h := &s.replica[holder]
	return !h.up || h.stalled || h.cut
}

// acquire writes a new version of the Lease, and then lists the shard's posts.
func (s *shards) acquire(i, l int) {
	before := s.leases[l]
	if h := before.holder; h != nobody && int(h) != i && s.replica[h].held[l] == before.version {
		s.forced[l] |= 1 << before.version
	}
	s.leases[l] = lease{int8(i), s.newVersion(l)}
	s.replica[i].held[l] = s.leases[l].version
	if !s.x.broken.unlisted {
		s.replica[i].seen = 0
	}
}

// newVersion returns the version for the next holder of a shard.
func (s *shards) newVersion(l int) int8 {
	if s.x.broken.reuses {
		return s.leases[l].version + 1
	}
	s.versions++
	return s.versions
}

// jobSteps adds the steps of a replica's claim and of its call.
func (s *shards) jobSteps(i, p int, name string, add shardAdder) {
	r := &s.replica[i]
	switch j := &r.jobs[p]; j.phase {
	case writing:
		if !r.cut {
			add(name+"its claim is stored", "", false, func(n *shards) { n.land(i, p) })
			add(name+"its claim is stored, answer lost", writeLost, false, func(n *shards) {
				n.land(i, p)
				if j := &n.replica[i].jobs[p]; j.phase == ready {
					n.endJob(i, p, neverClaimed, 0)
				}
			})
		}
	case ready:
		add(name+"sent", "", false, func(n *shards) { n.sendShard(i, p) })
	case ended:
		if !r.cut {
			add(name+"recorded", "", false, func(n *shards) { n.recordShard(i, p) })
		}
	case noJob, calling:
	}
}

// answerSteps adds the ends of a replica's calls.
func (s *shards) answerSteps(i int, name string, add shardAdder) {
	for p := range s.replica[i].jobs {
		j := &s.replica[i].jobs[p]
		if j.phase != calling {
			continue
		}
		name := name + postName(p) + ": "
		if j.by <= s.now {
			add(name+"times out", "", false, func(n *shards) { n.endJob(i, p, lost, 0) })
			continue
		}
		add(name+"published", "", false, func(n *shards) { n.publish(p); n.endJob(i, p, yes, p+1) })
		add(name+"published, answer lost", answerLost, false, func(n *shards) { n.publish(p); n.endJob(i, p, lost, 0) })
		add(name+"connection lost", answerLost, false, func(n *shards) { n.endJob(i, p, lost, 0) })
		if !j.slow {
			add(name+"takes long", slow, false, func(n *shards) { n.replica[i].jobs[p].slow = true })
		}
	}
}

// orphanSteps adds what becomes of the calls of killed replicas.
func (s *shards) orphanSteps(add shardAdder) {
	for c := range s.orphans {
		p := int(s.orphans[c].post)
		drop := func(n *shards) { n.orphans = append(n.orphans[:c], n.orphans[c+1:]...) }
		add("the platform publishes "+postName(p)+" for a killed replica", "", false, func(n *shards) { drop(n); n.publish(p) })
		add("the platform drops "+postName(p)+" of a killed replica", "", false, drop)
	}
}

// shardPasses adds a reconciliation of a post. Only claims are explored with an outdated cache.
func (s *shards) shardPasses(i, p int, name string, add shardAdder) {
	if d := s.decideShard(i, p, &s.posts, s.team); d.kind != waits {
		text := map[decisionKind]string{claims: "about to be claimed", looksUp: "looked up", describes: "described"}[d.kind]
		add(name+text, "", false, func(n *shards) { n.replica[i].seen = 0; n.actShard(i, p, &n.posts, &d) })
	}
	r := &s.replica[i]
	for k := range s.past {
		if behind := int8(k + 1); behind <= r.seen && behind <= r.wrote[p] {
			if d := s.decideShard(i, p, &s.past[k], s.team); d.kind == claims {
				add(fmt.Sprintf("%sabout to be claimed, %d behind", name, behind), stale, false, func(n *shards) {
					n.replica[i].seen = behind
					n.actShard(i, p, &s.past[k], &d)
				})
			}
		}
	}
	if s.team != s.teamBefore {
		if d := s.decideShard(i, p, &s.posts, s.teamBefore); d.kind == claims {
			add(name+"about to be claimed, with an outdated Team", stale, false, func(n *shards) { n.actShard(i, p, &n.posts, &d) })
		}
	}
}

// actShard carries out a decision about a post, up to its first observable step.
func (s *shards) actShard(i, p int, as *accountPosts, d *shardDecision) {
	switch d.kind {
	case claims:
		shard := as[p].shard
		s.replica[i].jobs[p] = shardJob{
			phase: writing, term: term{shard, s.replica[i].held[shard]}, copy: d.next, rv: as[p].rv, passAt: s.now + s.x.clocks[i],
		}
	case looksUp:
		s.checkShardLookup(i, p)
		s.writePost(i, p, s.x.changed(d.next, func(post *v1alpha1.Post) {
			answer := delivery.LookupAnswer{Target: 0, AskedAt: s.local(i)}
			if s.out[p] > 0 {
				answer.Matches, answer.ExternalID = 1, externalID(p+1)
			}
			must(delivery.RecordLookup(post, &answer, s.x.base.timing, &delivery.Deadlines{}, s.local(i)))
			describe(post)
		}))
	case describes:
		s.writePost(i, p, d.next)
	case waits:
	}
}

func (s *shards) writePost(i, p int, v *version) {
	s.store(p, labelledPost{version: v, shard: s.posts[p].shard})
	s.replica[i].wrote[p] = 0
}

// land stores a claim, unless the post has changed. A claim that was on its way when its replica gave up the shard is
// not sent.
func (s *shards) land(i, p int) {
	j := s.replica[i].jobs[p]
	if j.rv != s.posts[p].rv && !s.x.broken.blindClaim {
		s.replica[i].jobs[p] = shardJob{}
		return
	}
	j.number = len(s.named) + 1
	next := s.x.changed(j.copy, func(post *v1alpha1.Post) {
		claim := attempt.Claim{ID: "a" + strconv.Itoa(j.number), AccountID: accounts["account-0"].Spec.AccountID, Window: s.x.base.settings.SendWindow}
		must(delivery.RecordClaims(post, []delivery.TargetClaim{{Claim: claim}}, atMillis(j.passAt)))
	})
	s.writePost(i, p, next)
	names := j.term
	if s.x.broken.omits {
		names = term{}
	}
	s.named = append(s.named, names)
	replaced := s.leases[j.term.shard].version != j.term.version
	j.exempt = replaced && s.forced[j.term.shard]&(1<<j.term.version) != 0 && !s.x.broken.countsForced
	j.phase, j.copy, j.rv = ready, next, 0
	s.replica[i].jobs[p] = j
	if held := &s.replica[i].held[j.term.shard]; replaced && s.x.readsBack && *held == j.term.version {
		*held = 0
	}
	released := s.replica[i].held[j.term.shard] != j.term.version
	if released && !s.x.broken.sendsReleased {
		s.endJob(i, p, withheld, 0)
	}
}

// sendShard starts a call within its window.
func (s *shards) sendShard(i, p int) {
	j := &s.replica[i].jobs[p]
	if !attempt.MaySend(posting.Of(j.copy.post).Target(0).Attempt, s.local(i)) {
		s.endJob(i, p, notSent, 0)
		return
	}
	s.checkShardSent(i, p)
	j.phase, j.copy, j.by = calling, nil, s.now+s.x.base.capabilities.CallTimeout.Milliseconds()
}

// endJob ends a claim's call for the replica that made it.
func (s *shards) endJob(i, p int, a answer, post int) {
	j := &s.replica[i].jobs[p]
	*j = shardJob{phase: ended, term: j.term, number: j.number, answer: a, post: post, exempt: j.exempt}
}

// recordShard records a result in the current version of the post. It has no effect if the attempt is closed or was
// rolled back.
func (s *shards) recordShard(i, p int) {
	j := s.replica[i].jobs[p]
	s.replica[i].jobs[p] = shardJob{}
	result := delivery.Result{Attempt: "a" + strconv.Itoa(j.number), Result: j.answer.result(j.post)}
	next := s.x.changed(s.posts[p].version, func(post *v1alpha1.Post) {
		_ = delivery.RecordResults(post, []delivery.Result{result}, &delivery.Deadlines{}, s.local(i))
	})
	if next != s.posts[p].version {
		s.writePost(i, p, next)
	}
}

// replicaBusy reports whether a replica has work to do now. The takeover of a shard from a process that is down or
// unreachable may take any time.
func (s *shards) replicaBusy(i int) bool {
	r := &s.replica[i]
	if !r.up {
		return false
	}
	late := func(j shardJob) bool { return j.phase == calling && (!j.slow || j.by <= s.now) }
	if slices.ContainsFunc(r.jobs[:], late) {
		return true
	}
	if r.stalled {
		return false
	}
	for p := range s.posts {
		phase := r.jobs[p].phase
		if phase == ready || !r.cut && (phase == writing || phase == ended || s.decideShard(i, p, &s.posts, s.team).kind != waits) {
			return true
		}
	}
	for l := range s.x.shards() {
		free := s.leases[l].holder == nobody && r.held[l] == 0
		if !r.cut && (r.given[l] > 0 || free || r.held[l] > 0 && r.held[l] != s.leases[l].version) {
			return true
		}
	}
	return false
}
