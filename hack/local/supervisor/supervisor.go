// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor keeps a set of processes running. It restarts any that exits, until all of them are stopped in the
// reverse of the start order.
package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// Spec is a process to keep running.
type Spec struct {
	// Name is the name of the process and of its pid file and, with ".log" appended, of its log.
	Name string
	// Path is the path of the program.
	Path string
	// Args are the program's arguments, without its name.
	Args []string
	// Grace is how long the process may take to shut down before it is killed.
	Grace time.Duration
	// Ready checks once whether the process is working. WaitReady calls it.
	Ready func(context.Context) error
}

// Options configure a Supervisor.
type Options struct {
	// PIDDir contains one file per process with the pid of its current incarnation. The files are replaced atomically.
	PIDDir string
	// LogDir contains one log per process. New renames the previous run's logs by appending ".1".
	LogDir string
	// Group starts the processes.
	Group *Group
	// RestartDelay is the pause before restarting a process that exited within a second of starting. Others are
	// restarted immediately.
	RestartDelay time.Duration
	// Once disables restarts.
	Once bool
	// Report receives messages about failures of a process. It must not block.
	Report func(name, message string)
}

// Supervisor keeps processes running. Its methods are safe for concurrent use.
type Supervisor struct {
	options Options

	mu       sync.Mutex
	children []*Child
	stopping bool
}

// New returns a supervisor without processes.
func New(options Options) (*Supervisor, error) {
	for _, dir := range []string{options.PIDDir, options.LogDir} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
	}
	logs, err := filepath.Glob(filepath.Join(options.LogDir, "*.log"))
	for _, log := range logs {
		err = errors.Join(err, os.Rename(log, log+".1"))
	}
	return &Supervisor{options: options}, err
}

// Start starts a process and keeps it running until Stop. After Stop it does nothing and returns nil.
func (s *Supervisor) Start(spec Spec) *Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil
	}
	stopping, killing := make(chan struct{}), make(chan struct{})
	child := &Child{
		Spec: spec, options: s.options, done: make(chan struct{}),
		stop: sync.OnceFunc(func() { close(stopping) }), kill: sync.OnceFunc(func() { close(killing) }),
	}
	s.children = append(s.children, child)
	go child.supervise(stopping, killing)
	return child
}

// Stop stops all processes in the reverse of the start order: each receives SIGTERM and is killed after its grace
// period. When force is closed, the remaining ones are killed immediately. Stop returns when none is left.
func (s *Supervisor) Stop(force <-chan struct{}) {
	s.mu.Lock()
	s.stopping = true
	children := s.children
	s.mu.Unlock()
	for _, child := range slices.Backward(children) {
		child.Stop(force)
	}
}
