// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/hack/local/cluster"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/processes"
	"github.com/herald-social/herald/hack/local/supervisor"
)

const (
	defaultSitePort = 8080
	// restartDelay is the pause before restarting a process that exited right after it started. It keeps a restart well
	// within the documented half second, and keeps a process that cannot start from using up the CPU.
	restartDelay = 150 * time.Millisecond
	// leftoverLimit is how long to wait for the processes of a killed run to exit.
	leftoverLimit = 10 * time.Second
	// installLimit is the timeout for installing the resources in the API server; demoLimit is the timeout for the demo
	// team to become ready once the manager and the apiserver are.
	installLimit = 2 * time.Minute
	demoLimit    = 90 * time.Second
)

// run starts everything, waits for a request to stop, and stops everything.
func (a *app) run(ctx context.Context) error {
	started := time.Now()
	port, err := sitePort(os.Getenv("HERALD_PORT"))
	if err != nil {
		return err
	}
	group, err := a.acquireState(ctx)
	if err != nil {
		return err
	}
	if err := checkSitePort(port); err != nil {
		return err
	}
	setup := &processes.Setup{
		Assets: os.Getenv("KUBEBUILDER_ASSETS"), Bin: filepath.Join(a.root, "bin"), Dir: a.state(""),
		SitePort: port, Platforms: demoPlatforms(), Bluesky: processes.FindBluesky(a.root), Namespace: cluster.DemoNamespace,
	}
	if setup.Assets == "" {
		setup.Assets = setup.Bin
	}
	if err := setup.Prepare(); err != nil {
		return err
	}
	return a.supervise(ctx, setup, group, started)
}

// reset removes all state of earlier runs. The lock files are kept: a run that starts at the same time must use the
// same files.
func (a *app) reset(ctx context.Context) error {
	if _, err := a.acquireState(ctx); err != nil {
		return err
	}
	entries, err := os.ReadDir(a.state(""))
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == lockName || entry.Name() == groupName {
			continue
		}
		if err := os.RemoveAll(a.state(entry.Name())); err != nil {
			return fmt.Errorf("forget the local state: %w", err)
		}
	}
	fmt.Println("The local state is deleted; `make run` starts from scratch.")
	return nil
}

const (
	lockName  = "lock"
	groupName = "group"
)

// acquireState makes this process the only user of .local until it exits, and removes the remains of a killed run: its
// processes, and the file with its addresses.
func (a *app) acquireState(ctx context.Context) (*supervisor.Group, error) {
	if err := os.MkdirAll(a.state(""), 0o700); err != nil {
		return nil, err
	}
	if err := a.acquireLock(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, leftoverLimit)
	defer cancel()
	group, err := supervisor.OpenGroup(ctx, a.state(groupName))
	return group, errors.Join(err, a.removeEnv())
}

// acquireLock locks .local. The system releases the lock when this process exits for any reason.
func (a *app) acquireLock() (err error) {
	path := a.state(lockName)
	if a.lock, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(a.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		holder, _ := os.ReadFile(path)
		return fmt.Errorf("already running: process %[1]s holds %[2]s (%[3]w)\n"+
			"stop it first: press Ctrl-C where it was started, or: kill %[1]s", holder, path, err)
	}
	if err := a.lock.Truncate(0); err != nil {
		return err
	}
	_, err = a.lock.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return err
}

func (a *app) removeEnv() error {
	if err := os.Remove(a.state("env")); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// sitePort parses the value of HERALD_PORT.
func sitePort(value string) (int, error) {
	if value == "" {
		return defaultSitePort, nil
	}
	port, err := strconv.Atoi(value)
	if err != nil || port < 1 || port > 65535 {
		return 0, fmt.Errorf("HERALD_PORT=%s: want a port number between 1 and 65535", value)
	}
	return port, nil
}

// checkSitePort returns an error if the site cannot listen on the port.
func checkSitePort(port int) error {
	listener, err := net.Listen("tcp", ports.Address(port))
	if err == nil {
		return listener.Close()
	}
	other := defaultSitePort
	for other == port || !ports.IsFree(other) {
		other++
	}
	return fmt.Errorf("the site cannot have port %[1]d: %[2]w\nstop what listens there (`lsof -i :%[1]d` shows it), or choose another port: HERALD_PORT=%[3]d make run",
		port, err, other)
}

// supervise starts the processes, prints how to use them, and stops them when ctx is done.
func (a *app) supervise(ctx context.Context, setup *processes.Setup, group *supervisor.Group, started time.Time) error {
	children, err := supervisor.New(supervisor.Options{
		PIDDir: a.state("pids"), LogDir: a.state("log"), Group: group, RestartDelay: restartDelay,
		Report: func(name, message string) { fmt.Printf("  %s %s\n", name, message) },
	})
	if err != nil {
		return err
	}
	token, err := a.startAll(ctx, setup, children)
	signIn := ""
	if err == nil {
		signIn, err = signInURL(ctx, setup)
	}
	if err == nil {
		err = a.announce(setup, token, signIn, started)
	}
	if err == nil {
		<-ctx.Done()
	}
	// Remove the file first: programs that read it must not find a run that is shutting down.
	err = errors.Join(err, a.removeEnv())
	fmt.Println("stopping everything")
	children.Stop(a.force)
	if err == nil {
		fmt.Println("Everything is stopped; `make run` continues where it was, `make run-reset` forgets it.")
	}
	return err
}

// startAll starts all processes, as concurrently as possible, waits until they are ready, and returns the token of the
// demo API key. A process that starts before its dependencies exits and is restarted.
func (a *app) startAll(ctx context.Context, setup *processes.Setup, children *supervisor.Supervisor) (token string, err error) {
	servers := []*supervisor.Child{
		children.Start(setup.Etcd()),
		children.Start(setup.KubeAPIServer()),
		children.Start(setup.Store()),
		children.Start(setup.Sandbox("--state-dir", a.state("sandbox"))),
	}
	if setup.Bluesky != "" {
		servers = append(servers, children.Start(setup.BlueskyServer()))
	}
	if err := waitReady(ctx, servers...); err != nil {
		return "", err
	}
	client, err := cluster.NewClient(setup.Kubeconfig(processes.Admin))
	if err != nil {
		return "", err
	}
	err = step("resources and roles", func() error {
		ctx, cancel := context.WithTimeout(ctx, installLimit)
		defer cancel()
		return cluster.Install(ctx, client, filepath.Join(a.root, "config"), setup.Address(processes.ManagerWebhook))
	})
	if err != nil {
		return "", err
	}
	manager, apiserver := children.Start(setup.Manager()), children.Start(setup.APIServer())
	if err := waitReady(ctx, manager, apiserver, children.Start(setup.KubeControllerManager())); err != nil {
		return "", err
	}
	err = step("demo team", func() error {
		ctx, cancel := context.WithTimeout(ctx, demoLimit)
		defer cancel()
		token, err = cluster.Demo(ctx, client, demoPlatforms(), granter(setup))
		if err != nil {
			return fmt.Errorf("%w\n%s may have details", err, manager.LogPath())
		}
		return nil
	})
	return token, err
}

// waitReady waits until all children are ready.
func waitReady(ctx context.Context, children ...*supervisor.Child) error {
	group, ctx := errgroup.WithContext(ctx)
	for _, child := range children {
		group.Go(func() error {
			return step(child.Name, func() error { return child.WaitReady(ctx) })
		})
	}
	return group.Wait()
}
