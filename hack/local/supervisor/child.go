// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/herald-social/herald/hack/local/workspace"
)

const (
	// steady is the time that a process must have run to be restarted without a pause.
	steady = time.Second
	// startLimit is how long a process may take to become ready. It is generous, for busy machines.
	startLimit = 2 * time.Minute
	// readyPoll and readyLimit are the interval and the timeout of readiness checks.
	readyPoll  = 50 * time.Millisecond
	readyLimit = 5 * time.Second
	// tooManyExits is the number of exits before a process is first ready at which waiting fails. One or two exits can
	// be harmless, if a dependency starts a moment later.
	tooManyExits = 5
	// shownLog is the number of bytes shown from the end of a process's log if it does not start.
	shownLog = 2000
)

// Child is one process that is kept running.
type Child struct {
	Spec

	options    Options
	pid, exits atomic.Int64
	// stop sends SIGTERM to the process and prevents restarts; kill sends SIGKILL.
	stop, kill func()
	// done is closed when the last incarnation has exited.
	done chan struct{}
}

// LogPath returns the path of the process's log.
func (c *Child) LogPath() string { return filepath.Join(c.options.LogDir, c.Name+".log") }

// PID returns the process id of the current or last incarnation, or zero if there has been none.
func (c *Child) PID() int { return int(c.pid.Load()) }

// Exits returns the number of unexpected exits and failed starts.
func (c *Child) Exits() int { return int(c.exits.Load()) }

// Stop stops the process and waits for it to exit: see Supervisor.Stop.
func (c *Child) Stop(force <-chan struct{}) {
	c.stop()
	select {
	case <-c.done:
		return
	case <-force:
	case <-time.After(c.Grace):
		c.options.Report(c.Name, fmt.Sprintf("did not end within %s; killing it", c.Grace))
	}
	c.kill()
	<-c.done
}

// WaitReady waits until the process is ready. It fails after two minutes, or if the process keeps exiting. The error
// contains the end of the process's log.
func (c *Child) WaitReady(ctx context.Context) error {
	var last error
	err := wait.PollUntilContextTimeout(ctx, readyPoll, startLimit, true, func(ctx context.Context) (bool, error) {
		if last = c.probeReady(ctx); last == nil {
			return true, nil
		}
		if exits := c.Exits(); exits >= tooManyExits || exits > 0 && c.options.Once {
			return false, fmt.Errorf("%s does not start; the end of %s:\n%s", c.Name, c.LogPath(), c.logTail())
		}
		return false, nil
	})
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%s is not ready after %s: %w; the end of %s:\n%s", c.Name, startLimit, last, c.LogPath(), c.logTail())
	}
	return err
}

func (c *Child) probeReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyLimit)
	defer cancel()
	return c.Ready(ctx)
}

// logTail returns the last lines of the log, indented.
func (c *Child) logTail() string {
	data, err := os.ReadFile(c.LogPath())
	if err != nil {
		return "  " + err.Error()
	}
	text := strings.TrimSpace(string(data[max(len(data)-shownLog, 0):]))
	if text == "" {
		return "  (it is empty)"
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

func (c *Child) supervise(stopping, killing <-chan struct{}) {
	defer close(c.done)
	defer os.Remove(c.pidPath()) //nolint:errcheck // the file then contains the id of a process that has exited
	for {
		started := time.Now()
		reason := c.runOnce(stopping, killing)
		select {
		case <-stopping:
			return
		default:
		}
		c.exits.Add(1)
		if c.options.Once {
			c.options.Report(c.Name, reason)
			return
		}
		var pause time.Duration
		if time.Since(started) < steady {
			pause = c.options.RestartDelay
		}
		c.options.Report(c.Name, reason+"; starting it again")
		select {
		case <-stopping:
			return
		case <-time.After(pause):
		}
	}
}

// runOnce runs one incarnation until it exits, and returns the reason.
func (c *Child) runOnce(stopping, killing <-chan struct{}) string {
	log, err := os.OpenFile(c.LogPath(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Sprintf("could not be started: %v", err)
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	command := exec.Command(c.Path, c.Args...)
	command.Stdout, command.Stderr = log, log
	if err := c.options.Group.Start(command); err != nil {
		return fmt.Sprintf("could not be started: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		// The process state contains the same information as the error of Wait.
		_ = command.Wait()
		close(ended)
	}()
	c.pid.Store(int64(command.Process.Pid))
	if err := workspace.WriteFile(c.pidPath(), []byte(strconv.Itoa(command.Process.Pid)+"\n"), 0o644); err != nil {
		c.options.Report(c.Name, err.Error())
	}
	// Signalling fails only if the process has exited.
	select {
	case <-ended:
	case <-stopping:
		_ = command.Process.Signal(syscall.SIGTERM)
	}
	select {
	case <-ended:
	case <-killing:
		_ = command.Process.Kill()
		<-ended
	}
	return fmt.Sprintf("ended (%s)", command.ProcessState)
}

func (c *Child) pidPath() string { return filepath.Join(c.options.PIDDir, c.Name) }
