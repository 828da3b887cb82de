// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/test/sandboxtest"
)

// The soak uses an installation for hours while platforms fail, processes are restarted and a hostile team attacks.
// Afterwards, it expects that every post was published once and that no process has grown. Unlike a benchmark, it fails
// if a goal is missed.

const (
	soakLength = 2 * time.Hour
	// soakFifths divides the run. Processes are restarted in the first and the third fifth, at the same times. The
	// second and the last fifth, which are compared, then have processes of similar ages.
	soakFifths = 5
	// faultsUntil is the share of the run, in percent, after which the platforms work again, so the outcomes of lost
	// calls are known soon after the end.
	faultsUntil = 80
	// soakSettles is the maximum time until posts are settled after the end. Before a post is sent again, it must be
	// missing from X's listing twice, 27 s after the call.
	soakSettles = 5 * time.Minute
)

// soakRestarts lists the restarts in a fifth of the run, each with its time as a percentage of the fifth.
var soakRestarts = []struct {
	process string
	at      int
	kill    bool
}{
	{processes.Manager, 10, true},
	{processes.Store, 30, true},
	{processes.Etcd, 50, true},
	{processes.APIServer, 75, false},
}

// soakFaults are the platforms' failures during a soak, for all accounts.
func soakFaults() []sandboxtest.Fault {
	faults := func(platform v1alpha1.Platform) []sandboxtest.Fault {
		return []sandboxtest.Fault{
			{Platform: string(platform), Operation: "publish", Kind: "drop_after", Percent: 5, Seed: 1, Times: endless},
			{Platform: string(platform), Operation: "publish", Kind: "status", Status: http.StatusInternalServerError, Percent: 3, Seed: 2, Times: endless},
			{Platform: string(platform), Operation: "publish", Kind: "slow_answer", DelayMS: 1500, Percent: 10, Seed: 3, Times: endless},
		}
	}
	return append(faults(v1alpha1.PlatformX), faults(v1alpha1.PlatformThreads)...)
}

// soak runs a soak in a new installation and returns its findings as an error.
func soak(ctx context.Context, text string) (err error) {
	length := soakLength
	if text != "" {
		if length, err = time.ParseDuration(text); err != nil || length < time.Minute {
			return fmt.Errorf("SOAK=%s: want a duration of at least a minute, such as 3m", text)
		}
	}
	set, err := readSettings(func(name string) string {
		if name == "BENCH" {
			return hostileID // for the request limits of an installation
		}
		return os.Getenv(name)
	})
	if err != nil {
		return err
	}
	set.connections = soakAccounts
	return inSession(ctx, set, func(s *session) error {
		if err := s.stack.StartHerald(ctx); err != nil {
			return err
		}
		return errors.Join(s.soak(ctx, length), s.stack.StopHerald())
	})
}

// soakAccounts is the number of accounts on X. Half as many are on Threads.
const soakAccounts = 40

func (s *session) soak(ctx context.Context, length time.Duration) error {
	content, err := s.pictures(ctx)
	if err != nil {
		return err
	}
	enemy, err := s.newEnemy(ctx)
	if err != nil {
		return err
	}
	people, err := s.newPeople(ctx, content)
	if err != nil {
		return err
	}
	for _, fault := range soakFaults() {
		if err := s.stack.Sandbox.Fault(ctx, fault); err != nil {
			return err
		}
	}
	begin := time.Now()
	s.logf("soak: %s of mixed load, faults, restarts and a hostile team", length)
	using, stop := context.WithDeadline(ctx, begin.Add(length))
	defer stop()
	var all sync.WaitGroup
	enemy.attack(using, &all)
	people.use(using, &all)
	measured := &readings{stack: s.stack, begin: begin, length: length}
	all.Go(func() { measured.sample(using) })
	failed := s.restart(using, begin, length, enemy)
	all.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return errors.Join(failed, people.verify(ctx), measured.flat(s.logf), s.unexpected())
}

// restart restarts the processes and ends the faults at their times.
func (s *session) restart(ctx context.Context, begin time.Time, length time.Duration, enemy *enemy) error {
	fifth := length / soakFifths
	for _, nth := range []int{0, 2} {
		for _, r := range soakRestarts {
			if err := waitUntil(ctx, begin.Add(time.Duration(nth)*fifth+fifth*time.Duration(r.at)/100)); err != nil {
				return err
			}
			s.logf("  after %s: restarting %s", time.Since(begin).Round(time.Second), r.process)
			if err := s.stack.Restart(ctx, r.process, r.kill); err != nil {
				return err
			}
		}
	}
	if err := waitUntil(ctx, begin.Add(length*faultsUntil/100)); err != nil {
		return err
	}
	if err := s.stack.Sandbox.ClearFaults(ctx); err != nil {
		return err
	}
	return enemy.breakAccounts(ctx)
}

// unexpected returns an error if a process has exited unexpectedly.
func (s *session) unexpected() (err error) {
	for _, p := range s.stack.Processes() {
		if p.Exits() > 0 {
			err = errors.Join(err, fmt.Errorf("%s ended unexpectedly; see %s, which BENCH_LOGS keeps", p.Name, p.LogPath()))
		}
	}
	return err
}
