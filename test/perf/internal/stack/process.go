// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/herald-social/herald/hack/local/process"
	"github.com/herald-social/herald/test/perf/internal/measure"
)

const (
	// startLimit is how long a process may take to answer after its start; generous, for a loaded machine.
	startLimit = 2 * time.Minute
	// pollEvery paces every question whether something has happened yet that is not part of a measure.
	pollEvery = 50 * time.Millisecond
	// grace is how long a process may take to end by itself before it is killed.
	grace = 20 * time.Second
	// shownLog is how much of the end of a log is shown when its process fails, in bytes.
	shownLog = 2000
)

// Process is a child of the benchmark. It dies with it, however that ends (where the system can promise it).
type Process struct {
	// Name of the process, and of its log.
	Name string

	command *exec.Cmd
	logPath string
	done    chan struct{}
}

// start starts a program with its output in a log of its own, to which it appends.
func (s *Stack) start(name, path string, args ...string) (*Process, error) {
	return s.startOn(0, name, path, args...)
}

// startOn starts a program on one processor: see measure.OnProcessor.
func (s *Stack) startOn(processor int, name, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, logPath: filepath.Join(s.options.Dir, name+".log"), done: make(chan struct{})}
	log, err := os.OpenFile(p.logPath, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the child has its own descriptor
	p.command = exec.Command(path, args...)
	measure.OnProcessor(p.command, processor)
	p.command.Stdout, p.command.Stderr = log, log
	if err := s.options.Spawner.Start(p.command); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		defer close(p.done)
		// How it ended stands in the process's state.
		_ = p.command.Wait()
	}()
	return p, nil
}

// PID is the process's id.
func (p *Process) PID() int { return p.command.Process.Pid }

// CPU is the processor time that the process has used so far, user's and system's; zero when it cannot be told.
func (p *Process) CPU() time.Duration { return CPUOf(p.PID()) }

// waitFor waits until ask succeeds. It fails, with the end of the log, when the process ends or takes too long.
func (p *Process) waitFor(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	ticker := time.NewTicker(pollEvery)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended (%s)\n%s", p.Name, p.command.ProcessState, p.LogTail())
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w\n%s", p.Name, errors.Join(context.Cause(ctx), err), p.LogTail())
		case <-ticker.C:
		}
	}
}

// Stop ends the process, politely at first, and returns when it is gone.
func (p *Process) Stop() error {
	select {
	case <-p.done:
		return nil
	default:
	}
	if err := process.SignalGroup(p.PID(), syscall.SIGTERM); err != nil {
		return fmt.Errorf("end %s: %w", p.Name, err)
	}
	select {
	case <-p.done:
		return nil
	case <-time.After(grace):
	}
	if err := process.SignalGroup(p.PID(), syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill %s: %w", p.Name, err)
	}
	<-p.done
	return nil
}

// LogTail is the end of what the process printed.
func (p *Process) LogTail() string {
	data, err := os.ReadFile(p.logPath)
	if err != nil {
		return err.Error()
	}
	if len(data) > shownLog {
		data = data[len(data)-shownLog:]
	}
	return string(data)
}
