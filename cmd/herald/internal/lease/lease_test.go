// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package lease

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/test/must"
)

// memoryLock is a lock that only the test holds.
type memoryLock struct {
	resourcelock.Interface

	mu     sync.Mutex
	record resourcelock.LeaderElectionRecord
	writes int
	err    error
	// conflicts is the number of writes that fail.
	conflicts int
	// slow is how long a write takes.
	slow time.Duration
}

func (*memoryLock) Identity() string   { return "us" }
func (*memoryLock) Describe() string   { return "herald/herald-manager" }
func (*memoryLock) RecordEvent(string) {}

func (l *memoryLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.record
	raw, err := json.Marshal(found)
	return &found, raw, cmp.Or(l.err, err)
}

func (l *memoryLock) Update(_ context.Context, record resourcelock.LeaderElectionRecord) error {
	time.Sleep(l.slow) //nolint:forbidigo // in a bubble of synctest
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conflicts > 0 {
		l.conflicts--
		return errors.New("conflict")
	}
	if l.err == nil {
		l.record = record
		l.writes++
	}
	return l.err
}

// put simulates another client writing the lease.
func (l *memoryLock) put(by string, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.record, l.err = holderRecord(by), err
}

// renew simulates a renewal by another process, and returns its time.
func (l *memoryLock) renew(by string) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.record.HolderIdentity == by {
		l.record.RenewTime = metav1.Now()
	}
	return l.record.RenewTime.Time
}

// lease returns the lease as a watch delivers it.
func (l *memoryLock) lease() *coordinationv1.Lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	record := l.record // the spec has pointers into it
	return &coordinationv1.Lease{Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&record)}
}

func holderRecord(by string) resourcelock.LeaderElectionRecord {
	return resourcelock.LeaderElectionRecord{HolderIdentity: by, LeaseDurationSeconds: 60}
}

const lasts = time.Minute

func TestLeaseOutlived(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		then   func(t *testing.T, l *Lock, m *memoryLock)
		wait   time.Duration
		fails  bool
	}{
		"Renewed":  {"the leader renews its lease", nil, lasts, false},
		"Late":     {"the election may still be ending the process", nil, lasts + overdue, false},
		"Outlived": {"the election hangs, and another manager leads", nil, lasts + overdue + time.Second, true},
		"Ended": {"the election released the lease", func(t *testing.T, l *Lock, _ *memoryLock) {
			must.Succeed(t, l.Update(t.Context(), holderRecord("")))
		}, time.Hour, false},
		"Released": {"a stopping process released the lease", func(t *testing.T, l *Lock, _ *memoryLock) {
			must.Succeed(t, l.Release(t.Context()))
		}, time.Hour, false},
		"TakenOver": {"another process is the leader", func(t *testing.T, l *Lock, m *memoryLock) {
			m.put("them", nil)
			if _, _, err := l.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, time.Hour, false},
		"NotRenewed": {"a failed write does not renew", func(t *testing.T, l *Lock, m *memoryLock) {
			l.clock.(*clocktesting.FakeClock).Step(lasts)
			m.err = errors.New("away")
			if err := l.Update(t.Context(), holderRecord("us")); err == nil {
				t.Fatal("the lock hides that its write failed")
			}
		}, overdue + time.Second, true},
	} {
		t.Run(name, func(t *testing.T) {
			fake, memory := clocktesting.NewFakeClock(time.Now()), &memoryLock{record: holderRecord("us")}
			lock := &Lock{Interface: memory, duration: lasts, renewDeadline: time.Hour, stop: func() {}, clock: fake, watch: func(context.Context) (watch.Interface, error) {
				return nil, errors.New("cannot be watched")
			}}
			if err := lock.Check(nil); err != nil {
				t.Fatalf("a process that waits for the lease is well: %v", err)
			}
			must.Succeed(t, lock.Update(t.Context(), holderRecord("us")))
			if tc.then != nil {
				tc.then(t, lock, memory)
			}
			fake.Step(tc.wait)
			if err := lock.Check(nil); (err != nil) != tc.fails {
				t.Errorf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// A process that waits for the lease acquires it as soon as it is free.
func TestWaiting(t *testing.T) {
	const release = 7 * time.Second
	for name, tc := range map[string]struct {
		reason string
		// holder simulates the events while the lock waits.
		holder func(m *memoryLock, changes *watch.FakeWatcher)
		refuse error
		waits  time.Duration
		found  string
	}{
		"GivenBack": {"the pause of the election would be lost", func(m *memoryLock, changes *watch.FakeWatcher) {
			changes.Modify(m.lease())
			time.Sleep(release) //nolint:forbidigo // in a bubble of synctest
			m.put("", nil)
			changes.Modify(m.lease())
		}, nil, release, ""},
		"Deleted": {"a deleted lease has no holder", func(m *memoryLock, changes *watch.FakeWatcher) {
			time.Sleep(release) //nolint:forbidigo // in a bubble of synctest
			m.put("", nil)
			changes.Delete(&coordinationv1.Lease{})
		}, nil, release, ""},
		"Recreated": {"a lease that was restored still has its holder", func(m *memoryLock, changes *watch.FakeWatcher) {
			time.Sleep(release) //nolint:forbidigo // in a bubble of synctest
			changes.Delete(m.lease())
		}, nil, release, "them"},
		"Renewed": {"a renewed lease remains; one without renewals expires", func(m *memoryLock, changes *watch.FakeWatcher) {
			for range 3 {
				time.Sleep(lasts - time.Second) //nolint:forbidigo // in a bubble of synctest
				m.renew("them")
				changes.Modify(m.lease())
			}
		}, nil, 3*(lasts-time.Second) + lasts, ""},
		"WatchEnds": {"watches end regularly, so the election reads the lease again", func(_ *memoryLock, changes *watch.FakeWatcher) {
			time.Sleep(release) //nolint:forbidigo // in a bubble of synctest
			changes.Stop()
		}, nil, release, "them"},
		"NotWatched": {"the account may lack the permission; the election reads the lease again", nil, errors.New("forbidden"), 0, "them"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, changes := &memoryLock{record: holderRecord("them")}, watch.NewFake()
				lock := &Lock{Interface: memory, duration: lasts, renewDeadline: time.Hour, stop: func() {}, clock: clock.RealClock{}, watch: func(context.Context) (watch.Interface, error) {
					return changes, tc.refuse
				}}
				if tc.holder != nil {
					go tc.holder(memory, changes)
				}
				started := time.Now()
				record, _, err := lock.Get(t.Context())
				must.Succeed(t, err)
				if waited := time.Since(started); waited != tc.waits || record.HolderIdentity != tc.found {
					t.Errorf("%s: it waited %s and found %q, want %s and %q", tc.reason, waited, record.HolderIdentity, tc.waits, tc.found)
				}
			})
		})
	}
}

// The election of a waiting process acquires the lease of a killed leader as soon as it expires.
func TestTakesOver(t *testing.T) {
	const retry, life = 2 * time.Second, 10 * time.Minute
	renewals := func(m *memoryLock, send func(*coordinationv1.Lease)) (last time.Time) {
		for range life / lasts * 2 {
			time.Sleep(lasts / 2) //nolint:forbidigo // in a bubble of synctest
			last = m.renew("them")
			send(m.lease())
		}
		return last
	}
	killed := func(*memoryLock, *watch.FakeWatcher) time.Time { return time.Now() }
	healthy := func(m *memoryLock, changes *watch.FakeWatcher) time.Time {
		return renewals(m, func(l *coordinationv1.Lease) { changes.Modify(l) })
	}
	for name, tc := range map[string]struct {
		reason string
		// holder renews the lease until it is killed, and returns the time of the last renewal.
		holder func(m *memoryLock, changes *watch.FakeWatcher) (last time.Time)
		// duration is the holder's lease duration.
		duration         time.Duration
		earliest, latest time.Duration
		// conflicts is the number of failing writes, and watchLasts is the time after which a watch ends.
		conflicts  int
		watchLasts time.Duration
	}{
		"KilledBefore": {"the holder was killed before this process started", killed, lasts, lasts, lasts, 0, 0},
		"Killed":       {"the process has waited beside a healthy leader", healthy, lasts, lasts, lasts, 0, 0},
		"Patient":      {"the holder is configured with a longer duration", healthy, 3 * lasts, 3 * lasts, 3 * lasts, 0, 0},
		"SilentWatch": {"a watch that delivers nothing must not depose a healthy leader", func(m *memoryLock, _ *watch.FakeWatcher) time.Time {
			return renewals(m, func(*coordinationv1.Lease) {})
		}, lasts, lasts, 3*lasts + 3*retry, 0, 0},
		"WatchEnds": {"a record that was seen before does not last longer", killed, lasts, lasts, lasts, 0, lasts * 2 / 5},
		"Conflict":  {"the election retries after its pause", killed, lasts, lasts + retry, lasts + 3*retry, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, changes := &memoryLock{record: holderRecord("them")}, watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 100})
				memory.record.LeaseDurationSeconds = int(tc.duration.Seconds())
				memory.conflicts = tc.conflicts
				lock := &Lock{Interface: memory, duration: lasts, renewDeadline: time.Hour, stop: func() {}, clock: clock.RealClock{}, watch: func(context.Context) (watch.Interface, error) {
					if tc.watchLasts > 0 {
						ends := watch.NewFake()
						time.AfterFunc(tc.watchLasts, ends.Stop)
						return ends, nil
					}
					return unstopped{changes}, nil
				}}
				ctx, cancel := context.WithCancel(t.Context())
				acquired := make(chan time.Time, 1)
				elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
					Lock: lock, LeaseDuration: lasts, RenewDeadline: lasts / 2, RetryPeriod: retry,
					Callbacks: leaderelection.LeaderCallbacks{
						OnStartedLeading: func(context.Context) { acquired <- time.Now() },
						OnStoppedLeading: func() {},
					},
				})
				must.Succeed(t, err)
				done := make(chan struct{})
				go func() { elector.Run(ctx); close(done) }()
				last := tc.holder(memory, changes)
				if after := (<-acquired).Sub(last); after < tc.earliest || after > tc.latest {
					t.Errorf("%s: acquired %s after the last renewal, want %s to %s", tc.reason, after, tc.earliest, tc.latest)
				}
				cancel()
				<-done
			})
		})
	}
}

// unstopped is a watch that several waits use one after the other.
type unstopped struct{ watch.Interface }

func (unstopped) Stop() {}

// A leader that cannot renew the lease shuts down gracefully, so that running calls finish and are recorded before the
// election would exit the process.
func TestLost(t *testing.T) {
	const deadline = 8 * time.Second
	for name, tc := range map[string]struct {
		reason string
		// then simulates the events after the last renewal.
		then    func(t *testing.T, l *Lock, m *memoryLock)
		stopped bool
	}{
		"Away": {"the API server has not responded for too long", func(_ *testing.T, _ *Lock, m *memoryLock) {
			m.err = errors.New("away")
			time.Sleep(deadline) //nolint:forbidigo // in a bubble of synctest
		}, true},
		"BackInTime": {"the API server responds again", func(t *testing.T, l *Lock, _ *memoryLock) {
			time.Sleep(deadline - time.Second) //nolint:forbidigo // in a bubble of synctest
			_ = l.Update(t.Context(), holderRecord("us"))
			time.Sleep(deadline - time.Second) //nolint:forbidigo // in a bubble of synctest
		}, false},
		"TakenOver": {"another process leads after the lease was deleted", func(t *testing.T, l *Lock, m *memoryLock) {
			m.put("them", nil)
			_, _, _ = l.Get(t.Context())
			time.Sleep(time.Hour) //nolint:forbidigo // in a bubble of synctest
		}, true},
		"Late": {"a renewal in progress is stored after the lease was released", func(t *testing.T, l *Lock, m *memoryLock) {
			m.slow = deadline + time.Second
			_ = l.Update(t.Context(), holderRecord("us"))
			m.slow = 0
			if err := l.Check(nil); err != nil {
				t.Errorf("a process that ends is not killed: %v", err)
			}
			if err := l.Release(t.Context()); err != nil || m.record.HolderIdentity != "" {
				t.Errorf("the lease still has the holder that released it: %v, %v", m.record, err)
			}
		}, true},
		"Released": {"the process stops anyway", func(t *testing.T, l *Lock, _ *memoryLock) {
			_ = l.Release(t.Context())
			time.Sleep(time.Hour) //nolint:forbidigo // in a bubble of synctest
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				memory, stops := &memoryLock{record: holderRecord("")}, 0
				lock := &Lock{
					Interface: memory, duration: lasts, renewDeadline: deadline, clock: clock.RealClock{}, stop: func() { stops++ },
					watch: func(context.Context) (watch.Interface, error) { return nil, errors.New("cannot be watched") },
				}
				must.Succeed(t, lock.Update(t.Context(), holderRecord("us")))
				tc.then(t, lock, memory)
				synctest.Wait()
				if (stops == 1) != tc.stopped || lock.hasEnded() != (tc.stopped || name == "Released") {
					t.Fatalf("%s: stopped %d times, ended %t", tc.reason, stops, lock.hasEnded())
				}
				if !tc.stopped {
					return
				}
				// As far as the election can see, the lease stays renewed until the process has exited, and is never acquired from
				// another process.
				writes := memory.writes
				memory.put("them", nil)
				if err := lock.Update(t.Context(), holderRecord("us")); err != nil || memory.writes != writes {
					t.Errorf("after the loss: %v, %d writes more", err, memory.writes-writes)
				}
				memory.err = errors.New("away")
				if record, _, err := lock.Get(t.Context()); err != nil || record.HolderIdentity != "us" {
					t.Errorf("after the loss: %v, %v", record, err)
				}
				if err := lock.Check(nil); err != nil {
					t.Errorf("a process that ends is not killed: %v", err)
				}
			})
		})
	}
}

// A write contains its own time; the election sets its time before the request.
func TestTimesOfWrites(t *testing.T) {
	fake, memory := clocktesting.NewFakeClock(time.Now()), &memoryLock{record: holderRecord("")}
	lock := &Lock{Interface: memory, duration: lasts, renewDeadline: time.Hour, stop: func() {}, clock: fake}
	for _, reason := range []string{"it is acquired", "it is renewed"} {
		fake.Step(lasts)
		acquired := memory.record.AcquireTime
		if reason == "it is acquired" {
			acquired.Time = fake.Now()
		}
		record := memory.record
		record.HolderIdentity = "us"
		must.Succeed(t, lock.Update(t.Context(), record))
		if got := memory.record; !got.RenewTime.Time.Equal(fake.Now()) || !got.AcquireTime.Equal(&acquired) {
			t.Errorf("%s: renewed %s, acquired %s; want %s and %s", reason, got.RenewTime, got.AcquireTime, fake.Now(), acquired)
		}
	}
}

func TestRelease(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		leads  bool
		stored resourcelock.LeaderElectionRecord
		err    error
		// holder and writes are the expected results after a release and a subsequent renewal.
		holder string
		writes int
	}{
		"Leader":   {"another process acquires it immediately, and this one no longer writes", true, holderRecord("us"), nil, "", 1},
		"Standby":  {"a standby has no lease to release", false, holderRecord("them"), nil, "us", 1},
		"Lost":     {"the lease is another's", true, holderRecord("them"), nil, "us", 1},
		"APIAway":  {"a lease that was not released is still held", true, holderRecord("us"), errors.New("away"), "us", 1},
		"GaveBack": {"a user released it manually", true, holderRecord(""), nil, "us", 1},
	} {
		t.Run(name, func(t *testing.T) {
			memory := &memoryLock{record: tc.stored}
			lock := &Lock{Interface: memory, duration: lasts, renewDeadline: time.Hour, stop: func() {}, clock: clock.RealClock{}}
			if tc.leads {
				lock.set(time.Now(), true)
			}
			memory.err = tc.err
			if err := lock.Release(t.Context()); (err != nil) != (tc.err != nil) {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			memory.err = nil
			// The election renews until the process has exited.
			must.Succeed(t, lock.Update(t.Context(), holderRecord("us")))
			if memory.record.HolderIdentity != tc.holder || memory.writes != tc.writes {
				t.Errorf("%s: the holder is %q after %d writes, want %q after %d", tc.reason, memory.record.HolderIdentity, memory.writes, tc.holder, tc.writes)
			}
		})
	}
}
