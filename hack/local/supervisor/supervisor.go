// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package supervisor keeps a set of processes running: each is started again whenever it ends, until all are stopped in
// the reverse order of their start.
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
	// Name of the process, of its pid file and, with ".log", of its log.
	Name string
	// Path of the program.
	Path string
	// Args of the program, without its name.
	Args []string
	// Grace is how long the process may take to end once it was asked to; then it is killed.
	Grace time.Duration
	// Ready asks once whether the process does its work. WaitReady calls it.
	Ready func(context.Context) error
}

// Options are what a Supervisor needs.
type Options struct {
	// PIDDir holds one file per process with the pid of its present incarnation, replaced at once.
	PIDDir string
	// LogDir holds one file per process with what it prints. New keeps the logs of the run before with ".1" appended.
	LogDir string
	// Group starts the processes.
	Group *Group
	// RestartDelay is the pause before a process is started again that ended within a second of its start. Others are
	// started again at once.
	RestartDelay time.Duration
	// Once leaves a process that ended as it is.
	Once bool
	// Report is told, in words, what goes wrong with a process. It must not block.
	Report func(name, message string)
}

// Supervisor keeps processes running. Its methods may be called at the same time.
type Supervisor struct {
	options Options

	mu       sync.Mutex
	children []*Child
	stopping bool
}

// New returns a supervisor that runs nothing yet.
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

// Start starts a process and keeps it running until Stop. After Stop it starts nothing and returns nil.
func (s *Supervisor) Start(spec Spec) *Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil
	}
	child := &Child{Spec: spec, options: s.options, stop: make(chan struct{}), done: make(chan struct{})}
	s.children = append(s.children, child)
	go child.supervise()
	return child
}

// Stop ends all processes, the last started first: each is asked to end and, after its grace, killed. Once force is
// closed, what still runs is killed at once. Stop returns when none is left.
func (s *Supervisor) Stop(force <-chan struct{}) {
	s.mu.Lock()
	s.stopping = true
	children := s.children
	s.mu.Unlock()
	for _, child := range slices.Backward(children) {
		child.Stop(force)
	}
}
