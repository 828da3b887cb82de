// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package post

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/platforms"
	"github.com/herald-social/herald/posting"
	"github.com/herald-social/herald/posting/attempt"
)

const (
	// prepareWithin bounds one preparation, and slowest is how many bytes of its
	// files a second are waited for beside that.
	prepareWithin = time.Minute
	slowest       = 128 << 10
	// preparePatience is how long the other targets of a post wait for a
	// preparation, so that all are claimed by one write. One that takes longer
	// goes on alone.
	preparePatience = 3 * time.Second
	// preparedFresh is how long a preparation is taken for good without asking
	// again. Platforms keep what was prepared for a day.
	preparedFresh = 10 * time.Minute
)

// preparation is what is made for one target before its visible call. Nobody
// holds a gate meanwhile: it may take long, and it disturbs no one.
type preparation struct {
	uid     types.UID
	hash    string
	begunAt time.Time
	// done is closed when the other fields are set.
	done       chan struct{}
	checkpoint string
	err        *platforms.Error
	madeAt     time.Time
}

// finished reports whether the preparation has ended.
func (p *preparation) finished() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// preparations remembers what was prepared and is not claimed yet. It is lost
// with the process, which costs an orphan that nobody sees; what was claimed
// is remembered by the claim.
type preparations struct {
	clock clock.PassiveClock

	mu     sync.Mutex
	byPost map[types.NamespacedName]map[int]*preparation
}

func newPreparations(c clock.PassiveClock) *preparations {
	return &preparations{clock: c, byPost: map[types.NamespacedName]map[int]*preparation{}}
}

// work makes what precedes a call. It is told what an earlier preparation had
// made, or "".
type work func(earlier string) (checkpoint string, err *platforms.Error)

// known returns the preparation of a target if it is under way or fresh.
func (p *preparations) known(key types.NamespacedName, i int, uid types.UID, hash string) *preparation {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.byPost[key][i]
	if known == nil || known.uid != uid || known.hash != hash {
		return nil
	}
	if known.finished() && p.clock.Since(known.madeAt) >= preparedFresh {
		return nil
	}
	return known
}

// start begins the preparation of a target that has none under way or fresh, and
// calls wake when it has ended. A pass over the post is the only one to do so.
func (p *preparations) start(key types.NamespacedName, i int, uid types.UID, hash string, do work, wake func()) *preparation {
	p.mu.Lock()
	defer p.mu.Unlock()
	earlier := ""
	if known := p.byPost[key][i]; known != nil && known.uid == uid && known.hash == hash {
		earlier = known.checkpoint
	}
	begun := &preparation{uid: uid, hash: hash, begunAt: p.clock.Now(), done: make(chan struct{})}
	if p.byPost[key] == nil {
		p.byPost[key] = map[int]*preparation{}
	}
	p.byPost[key][i] = begun
	go func() {
		begun.checkpoint, begun.err = do(earlier)
		begun.madeAt = p.clock.Now()
		close(begun.done)
		wake()
	}()
	return begun
}

// drop forgets the preparation of a target: it is claimed, or has failed.
func (p *preparations) drop(key types.NamespacedName, i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byPost[key], i)
	if len(p.byPost[key]) == 0 {
		delete(p.byPost, key)
	}
}

// forget drops what was prepared for a post that is gone.
func (p *preparations) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.byPost, key)
}

// prepare has everything made that precedes the visible calls, side by side,
// and returns the shipments that can go out: none while something that was begun
// a moment ago may end soon. It does not wait; the end of a preparation wakes
// the post. changed tells that the ledger notes what the platform said.
func (s *scope) prepare(ctx context.Context, shipments []*shipment) (ready []*shipment, changed bool) {
	running := map[*shipment]*preparation{}
	for _, sh := range shipments {
		preparer, ok := sh.publisher.(platforms.Preparer)
		if !ok || !preparer.Prepares(s.content(s.post, sh.index)) {
			ready = append(ready, sh)
			continue
		}
		// One that finds no lane free is woken when one is.
		if p := s.startPreparing(ctx, preparer, sh); p != nil {
			running[sh] = p
		}
	}
	if s.endSoon(running) {
		return nil, false
	}
	for _, sh := range shipments {
		p := running[sh]
		switch {
		case p == nil, !p.finished():
		case p.err == nil:
			sh.checkpoint = p.checkpoint
			ready = append(ready, sh)
			s.Points(PointAfterPrepare)
		case p.err.Class == platforms.ClassDuplicate && p.checkpoint != "":
			// The claim is made for the look that follows; see send.
			sh.checkpoint, sh.doubt = p.checkpoint, p.err
			ready = append(ready, sh)
		default:
			s.notPrepared(ctx, sh, p.err)
			changed = true
		}
	}
	return ready, changed
}

// lanesPerAccount is how many posts are prepared for one account at once. The calls go
// out one after another, so that more would only run ahead of them.
const lanesPerAccount = 4

// uploads is how many posts with files are prepared at once. Each holds some
// kilobytes of a file at a time.
const uploads = 32

// startPreparing begins the preparation of a shipment, or finds the one that
// was begun before; nil if the account has as many under way as it may.
func (s *scope) startPreparing(ctx context.Context, preparer platforms.Preparer, sh *shipment) *preparation {
	hash := s.contentHash(sh.index, sh.conn)
	if known := s.preparations.known(s.key, sh.index, s.post.UID, hash); known != nil {
		return known
	}
	j := s.job(s.post, sh.index, sh.conn, sh.token)
	lane := s.freeLane(sh, len(j.Content.Media) > 0)
	if lane == "" {
		return nil
	}
	j.Checkpoint = attempt.Checkpoint(posting.Target(s.post, sh.index).Attempt, hash)
	return s.preparations.start(s.key, sh.index, s.post.UID, hash, func(earlier string) (string, *platforms.Error) {
		defer s.lanes.Release(lane)
		// It outlives the pass, and nothing is lost if it ends with the process.
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience(&j.Content))
		defer cancel()
		if earlier != "" {
			j.Checkpoint = earlier
		}
		return preparer.Prepare(within, j)
	}, func() { s.enqueue(s.key) })
}

// patience is how long a preparation may take.
func patience(c *platforms.Content) time.Duration {
	var bytes int64
	for i := range c.Media {
		bytes += c.Media[i].Size
	}
	return prepareWithin + time.Duration(bytes/slowest)*time.Second
}

// freeLane takes a lane for a preparation, or none: of its account's for a text,
// of those that all uploads share for files, which take longer and more of the
// network.
func (s *scope) freeLane(sh *shipment, files bool) string {
	of, lanes := string(sh.conn.UID)+"/prepare", lanesPerAccount
	if files {
		of, lanes = "upload", uploads
	}
	first := int(s.spread(time.Duration(lanes)))
	for i := range lanes {
		lane := fmt.Sprintf("%s/%d", of, (first+i)%lanes)
		if s.lanes.TryAcquire(lane, s.waiter()) {
			return lane
		}
	}
	return ""
}

// endSoon reports whether a preparation is under way for which the post is
// patient, and has the post come back when it is no longer.
func (s *scope) endSoon(running map[*shipment]*preparation) (patient bool) {
	now := s.Clock.Now()
	for _, p := range running {
		if end := p.begunAt.Add(preparePatience); !p.finished() && end.After(now) {
			patient = true
			if s.patientUntil.IsZero() || end.Before(s.patientUntil) {
				s.patientUntil = end
			}
		}
	}
	return patient
}

// notPrepared notes that a target cannot be sent yet, or at all, and lets those
// know who can do something about it.
func (s *scope) notPrepared(ctx context.Context, sh *shipment, err *platforms.Error) {
	s.preparations.drop(s.key, sh.index)
	t := posting.Target(s.post, sh.index)
	now := s.Clock.Now()
	since := now
	if t.TryUntil != nil {
		since = t.TryUntil.Add(-s.StartingDeadline)
	}
	if e := attempt.NotPrepared(t, err, since, now); e != nil {
		s.log.Error(e, "cannot note that a target was not prepared", "target", sh.index)
		return
	}
	if t.Phase != v1alpha1.PhaseFailed {
		t.Phase = posting.TargetPhaseOf(s.post, sh.index)
	}
	s.log.Info("not prepared", "uid", s.post.UID, "target", sh.index, "platform", sh.conn.Spec.Platform, "class", err.Class, "problem", err.Message, "cause", err.Err)
	sh.attempt = s.NewID()
	sh.result = platforms.Result{Verdict: platforms.NotSent, Err: err}
	s.tell(ctx, sh)
}
