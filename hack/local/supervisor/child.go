// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/herald-social/herald/hack/local/process"
	"github.com/herald-social/herald/hack/local/workspace"
)

// steady is how long a process must have run to be started again without a pause.
const steady = time.Second

// Child is one process that is kept running.
type Child struct {
	spec    Spec
	options Options
	logPath string

	exits atomic.Int64
	stop  chan struct{}
	done  chan struct{}
	// force is set before stop is closed.
	force <-chan struct{}
}

// Name is the name of the process.
func (c *Child) Name() string { return c.spec.Name }

// LogPath is the file that the process prints to.
func (c *Child) LogPath() string { return c.logPath }

// Exits counts how often the process ended without being asked to, or could not be started.
func (c *Child) Exits() int { return int(c.exits.Load()) }

// end asks the process to end and returns when it has.
func (c *Child) end(force <-chan struct{}) {
	c.force = force
	close(c.stop)
	<-c.done
}

func (c *Child) supervise() {
	defer close(c.done)
	defer os.Remove(c.pidPath()) //nolint:errcheck // a file that is left names a process that is gone
	for {
		begun := time.Now()
		reason, asked := c.runOnce()
		if asked {
			return
		}
		c.exits.Add(1)
		var pause time.Duration
		if time.Since(begun) < steady {
			pause = c.options.RestartDelay
		}
		c.options.Report(c.spec.Name, reason+"; starting it again")
		select {
		case <-c.stop:
			return
		case <-time.After(pause):
		}
	}
}

// runOnce runs one incarnation to its end. It returns how it ended and whether it was asked to.
func (c *Child) runOnce() (reason string, asked bool) {
	command, err := c.start()
	if err != nil {
		return fmt.Sprintf("could not be started: %v", err), false
	}
	ended := make(chan struct{})
	go func() {
		// The state tells how it ended; Wait's error says the same.
		_ = command.Wait()
		close(ended)
	}()
	if err := workspace.WriteFile(c.pidPath(), []byte(strconv.Itoa(command.Process.Pid)+"\n"), 0o644); err != nil {
		c.options.Report(c.spec.Name, err.Error())
	}
	select {
	case <-ended:
		return fmt.Sprintf("ended (%s)", command.ProcessState), false
	case <-c.stop:
	}
	c.terminate(command.Process.Pid, ended)
	return "", true
}

func (c *Child) start() (*exec.Cmd, error) {
	log, err := os.OpenFile(c.logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	command := exec.Command(c.spec.Path, c.spec.Args...)
	command.Stdout, command.Stderr = log, log
	return command, c.options.Spawner.Start(command)
}

// terminate ends the process group: politely, then after the grace or on force by killing it.
func (c *Child) terminate(pid int, ended <-chan struct{}) {
	c.signal(pid, syscall.SIGTERM)
	select {
	case <-ended:
		return
	case <-c.force:
	case <-time.After(c.spec.Grace):
		c.options.Report(c.spec.Name, fmt.Sprintf("did not end within %s; killing it", c.spec.Grace))
	}
	c.signal(pid, syscall.SIGKILL)
	<-ended
}

func (c *Child) signal(pid int, signal syscall.Signal) {
	if err := process.SignalGroup(pid, signal); err != nil {
		c.options.Report(c.spec.Name, fmt.Sprintf("%s: %v", signal, err))
	}
}

func (c *Child) pidPath() string { return filepath.Join(c.options.PIDDir, c.spec.Name) }

func (c *Child) rotateLog() {
	err := os.Rename(c.logPath, c.logPath+".1")
	if err != nil && !os.IsNotExist(err) {
		c.options.Report(c.spec.Name, err.Error())
	}
}
