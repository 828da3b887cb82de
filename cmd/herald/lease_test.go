// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
	clocktesting "k8s.io/utils/clock/testing"
)

// memoryLock is a lock that nothing but the test holds.
type memoryLock struct {
	resourcelock.Interface

	record resourcelock.LeaderElectionRecord
	err    error
}

func (*memoryLock) Identity() string { return "us" }

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	return &l.record, nil, l.err
}

func (l *memoryLock) Update(context.Context, resourcelock.LeaderElectionRecord) error { return l.err }

func TestLeaseOutlived(t *testing.T) {
	const lasts = time.Minute
	held := func(by string) resourcelock.LeaderElectionRecord {
		return resourcelock.LeaderElectionRecord{HolderIdentity: by}
	}
	for name, tc := range map[string]struct {
		reason string
		then   func(t *testing.T, l *watchedLock, m *memoryLock)
		wait   time.Duration
		fails  bool
	}{
		"Renewed":  {"it leads", nil, lasts, false},
		"Late":     {"the election may still be ending the process", nil, lasts + lateLease, false},
		"Outlived": {"the election hangs, and another manager leads", nil, lasts + lateLease + time.Second, true},
		"Released": {"a process that stops gives its lease back", func(t *testing.T, l *watchedLock, _ *memoryLock) {
			if err := l.Update(t.Context(), held("")); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, false},
		"TakenOver": {"it knows that another one leads", func(t *testing.T, l *watchedLock, m *memoryLock) {
			m.record = held("them")
			if _, _, err := l.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, false},
		"NotRenewed": {"a write that failed renews nothing", func(t *testing.T, l *watchedLock, m *memoryLock) {
			l.clock.(*clocktesting.FakePassiveClock).SetTime(l.clock.Now().Add(lasts))
			m.err = errors.New("away")
			if err := l.Update(t.Context(), held("us")); err == nil {
				t.Fatal("the lock hides that its write failed")
			}
		}, lateLease + time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			clock, memory := clocktesting.NewFakePassiveClock(time.Now()), &memoryLock{record: held("us")}
			lock := &watchedLock{Interface: memory, lasts: lasts, clock: clock}
			if err := lock.Check(nil); err != nil {
				t.Fatalf("a process that waits for the lease is well: %v", err)
			}
			if err := lock.Update(t.Context(), held("us")); err != nil {
				t.Fatal(err)
			}
			if tc.then != nil {
				tc.then(t, lock, memory)
			}
			clock.SetTime(clock.Now().Add(tc.wait))
			if err := lock.Check(nil); (err != nil) != tc.fails {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}
