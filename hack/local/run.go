// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/supervisor"
	"github.com/herald-social/herald/hack/local/workspace"
)

const (
	// restartDelay is the pause before a process that ends right after its start is started again. With it, a restart
	// stays well within the promised half second, and a process that cannot start does not eat a core.
	restartDelay = 150 * time.Millisecond
	// leftoverLimit is how long the processes of a killed run may take to go.
	leftoverLimit = 10 * time.Second
	// demoLimit is how long the demo team may take to become ready once manager and apiserver are started.
	demoLimit = 90 * time.Second
)

// run starts everything, waits until somebody wants it to end, and ends everything.
func (a *app) run(ctx context.Context) error {
	begun := time.Now()
	site, err := workspace.SitePort(a.sitePort)
	if err != nil {
		return err
	}
	lock, err := a.takeLock("Herald runs here already at http://" + workspace.Address(site))
	if err != nil {
		return err
	}
	defer lock.Release() //nolint:errcheck // the end of this process releases it too
	if err := a.endLeftovers(ctx); err != nil {
		return err
	}
	if err := workspace.CheckSitePort(site); err != nil {
		return err
	}
	built, err := a.buildServers(ctx)
	if err != nil {
		return err
	}
	s, err := a.configure(built, site)
	if err != nil {
		return err
	}
	return a.supervise(ctx, s, begun)
}

// takeLock makes sure that nobody else uses .local.
func (a *app) takeLock(what string) (*workspace.Lock, error) {
	lock, err := workspace.Acquire(a.workspace.LockPath(), what)
	if held, ok := errors.AsType[*workspace.HeldError](err); ok {
		return nil, fmt.Errorf("%w\nstop it first: press Ctrl-C where it was started, or: kill %d", err, held.Holder.PID)
	}
	return lock, err
}

// endLeftovers removes what a killed run left behind: processes, and the file that says where they answer.
func (a *app) endLeftovers(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, leftoverLimit)
	defer cancel()
	names, err := supervisor.EndLeftovers(ctx, a.workspace.State("pids"), isOurs(a.workspace))
	for _, name := range names {
		a.steps.Sayf("  ended the %s of an earlier run", name)
	}
	return errors.Join(err, a.removeEnv())
}

func (a *app) removeEnv() error {
	err := os.Remove(a.workspace.State("env"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// supervise starts the processes, tells how to use them, and ends them when ctx ends.
func (a *app) supervise(ctx context.Context, s settings, begun time.Time) error {
	processes, err := supervisor.New(supervisor.Options{
		PIDDir:       a.workspace.State("pids"),
		LogDir:       a.workspace.State("log"),
		Spawner:      a.spawner,
		RestartDelay: restartDelay,
		Report:       func(name, message string) { a.steps.Sayf("  %s %s", name, message) },
	})
	if err != nil {
		return err
	}
	token, err := a.startAll(ctx, s, processes)
	if err == nil {
		err = a.announce(s, token, begun)
	}
	if err == nil {
		<-ctx.Done()
	}
	// Whatever ended it, programs that read the file must not find a run that is going away.
	failed := errors.Join(err, a.removeEnv())
	stopErr := a.steps.Do("stop", func() error { processes.Stop(a.force); return nil })
	if err == nil && errors.Is(context.Cause(ctx), errInterrupted) {
		a.steps.Sayf("Everything is stopped; `make run` continues where it was, `make run-reset` forgets it.")
	}
	return errors.Join(failed, stopErr)
}

// startAll starts everything, as much of it side by side as can be, and returns the token of the demo API key once all
// of it is ready. What one process needs of another is waited for; the rest mends itself by starting again.
func (a *app) startAll(ctx context.Context, s settings, processes *supervisor.Supervisor) (token string, err error) {
	etcd := processes.Start(s.etcdSpec())
	kube := processes.Start(s.kubeAPIServerSpec())
	store := processes.Start(s.storeSpec())

	group, ctx := errgroup.WithContext(ctx)
	sandboxReady := make(chan struct{})
	group.Go(func() error {
		if err := a.buildHerald(ctx); err != nil {
			return err
		}
		defer close(sandboxReady)
		sandbox := processes.Start(s.sandboxSpec())
		return a.steps.Do("sandbox", func() error { return waitFor(ctx, sandbox, answers(plainClient(), s.sandboxURL()+"/")) })
	})
	group.Go(func() error {
		return a.steps.Do("store", func() error {
			return waitFor(ctx, store, answers(plainClient(), "http://"+s.address(portStore)+"/health"))
		})
	})
	group.Go(func() error {
		if err := a.startControlPlane(ctx, s, etcd, kube); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-sandboxReady:
		}
		var err error
		token, err = a.startHerald(ctx, s, processes)
		return err
	})
	err = group.Wait()
	return token, err
}

// startControlPlane waits for the API server and gives it Herald's resources and roles.
func (a *app) startControlPlane(ctx context.Context, s settings, etcd, kube *supervisor.Child) error {
	client, err := adminClient(s.kubeconfig(certAdmin))
	if err != nil {
		return err
	}
	err = a.steps.Do("etcd", func() error { return waitFor(ctx, etcd, accepts(s.address(portEtcd))) })
	if err != nil {
		return err
	}
	err = a.steps.Do(kubeAPIServer, func() error { return waitFor(ctx, kube, answers(client, s.serverURL()+"/readyz")) })
	if err != nil {
		return err
	}
	return a.steps.Do("resources and roles", func() error {
		c, err := cluster.NewClient(s.kubeconfig(certAdmin))
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(ctx, startLimit)
		defer cancel()
		if err := cluster.ApplyFolders(ctx, c, a.workspace.Path("config", "crd", "bases"), a.workspace.Path("config", "rbac")); err != nil {
			return err
		}
		return cluster.ApplyWebhook(ctx, c, a.workspace.Path("config", "webhook", "webhook.yaml"), "https://"+s.address(portManagerWebhook))
	})
}

// startHerald starts manager and apiserver and returns the token of the demo API key once both work.
func (a *app) startHerald(ctx context.Context, s settings, processes *supervisor.Supervisor) (token string, err error) {
	manager := processes.Start(s.managerSpec())
	apiserver := processes.Start(s.apiserverSpec())
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return a.steps.Do("apiserver", func() error { return waitFor(ctx, apiserver, answers(plainClient(), s.siteURL()+"/health")) })
	})
	group.Go(func() error {
		err := a.steps.Do("manager", func() error {
			return waitFor(ctx, manager, answers(plainClient(), "http://"+s.address(portManagerHealth)+"/readyz"))
		})
		if err != nil {
			return err
		}
		return a.steps.Do("demo team", func() error {
			c, err := cluster.NewClient(s.kubeconfig(certAdmin))
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(ctx, demoLimit)
			defer cancel()
			token, err = cluster.Demo(ctx, c, demoPlatforms(), granter(s.sandboxURL()))
			if err != nil {
				return fmt.Errorf("%w\n%s may tell more", err, display(manager.LogPath()))
			}
			return nil
		})
	})
	err = group.Wait()
	return token, err
}
