// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package shardmanager

import (
	"context"
	"errors"
	"testing"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/herald-social/herald/test/must"
)

// adding is a process's manager that records what was added.
type adding struct {
	ctrl.Manager

	added []manager.Runnable
}

func (a *adding) Add(runnable manager.Runnable) error {
	a.added = append(a.added, runnable)
	return nil
}

func (*adding) GetLogger() logr.Logger { return logr.Discard() }

type onReplicas struct{ manager.Runnable }

func (onReplicas) NeedLeaderElection() bool { return false }

type onLeader struct{ manager.Runnable }

func (onLeader) NeedLeaderElection() bool { return true }

type warmed struct{ onLeader }

func (warmed) Warmup(context.Context) error { return errWarm }

type cluster struct{ manager.Runnable }

func (cluster) GetCache() ctrlcache.Cache { return nil }

var errWarm = errors.New("warm")

func untilDone(end error) manager.Runnable {
	return manager.RunnableFunc(func(ctx context.Context) error {
		<-ctx.Done()
		return end
	})
}

func TestAddToLeading(t *testing.T) {
	for _, tt := range []struct {
		name, reason   string
		runnable       manager.Runnable
		leads, warm    bool
		endsWithLeader bool
	}{
		{"a function", "the manager runs it on the leader", untilDone(nil), true, false, true},
		{"on the leader", "another leader could run it now", onLeader{untilDone(nil)}, true, false, true},
		{"a controller", "it prepares to lead, too", warmed{onLeader{untilDone(nil)}}, true, true, true},
		{"on every replica", "it ends when the manager stops it", onReplicas{untilDone(nil)}, false, false, false},
		{"a cache", "the running calls read from it", cluster{untilDone(nil)}, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent := &adding{}
			stopping, stop := context.WithCancel(t.Context())
			defer stop()
			l := &Leading{Manager: parent, stopping: stopping}
			must.Succeed(t, l.Add(tt.runnable))
			added := parent.added[0]
			where, ok := added.(manager.LeaderElectionRunnable)
			if leads := ok && where.NeedLeaderElection(); leads != tt.leads {
				t.Errorf("it needs to lead: got %t, want %t", leads, tt.leads)
			}
			warm, ok := added.(warmer)
			if ok != tt.warm || ok && !errors.Is(warm.Warmup(t.Context()), errWarm) {
				t.Errorf("it prepares to lead: got %t, want %t", ok, tt.warm)
			}
			if _, isCache := tt.runnable.(cluster); isCache {
				if _, ok := added.(cluster); !ok {
					t.Error("the manager no longer starts it before the controllers")
				}
			}
			running, end := context.WithCancel(context.WithoutCancel(t.Context()))
			defer end()
			ended := make(chan error, 1)
			go func() { ended <- added.Start(running) }()
			stop()
			if tt.endsWithLeader {
				must.Succeed(t, <-ended)
				return
			}
			select {
			case err := <-ended:
				t.Errorf("it has ended with the leader's controllers, with %v: %s", err, tt.reason)
			default:
			}
			end()
			must.Succeed(t, <-ended)
		})
	}
}

func TestErrorOfLed(t *testing.T) {
	failure := errors.New("failure")
	for _, tt := range []struct {
		name, reason string
		stops        bool
		end, want    error
	}{
		{"while it leads", "the process cannot go on without a controller", false, failure, failure},
		{"while the process stops", "the process reports why it stops, such as the loss of the Lease", true, failure, nil},
		{"canceled", "that is how many runnables end", true, context.Canceled, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			parent := &adding{}
			stopping, stop := context.WithCancel(t.Context())
			defer stop()
			l := &Leading{Manager: parent, stopping: stopping}
			must.Succeed(t, l.Add(untilDone(tt.end)))
			running, end := context.WithCancel(context.WithoutCancel(t.Context()))
			defer end()
			end()
			if tt.stops {
				stop()
			}
			if err := parent.added[0].Start(running); !errors.Is(err, tt.want) {
				t.Errorf("%s: got %v, want %v", tt.reason, err, tt.want)
			}
		})
	}
}
