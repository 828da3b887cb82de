// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package process starts child processes that never outlive this one, as far as the system can promise it.
package process

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
)

// Spawner starts every child from one thread that never ends. Linux kills the children when their parent dies, and
// takes the thread that forked them for the parent.
type Spawner struct {
	requests chan request
}

type request struct {
	command *exec.Cmd
	started chan<- error
}

// NewSpawner returns a spawner whose thread lives as long as this process.
func NewSpawner() *Spawner {
	s := &Spawner{requests: make(chan request)}
	go func() {
		runtime.LockOSThread()
		for r := range s.requests {
			r.started <- r.command.Start()
		}
	}()
	return s
}

// Start starts the command as the leader of a process group of its own, so that a Ctrl-C in the terminal reaches only
// this process and the children are ended in order.
func (s *Spawner) Start(command *exec.Cmd) error {
	command.SysProcAttr = attributes()
	started := make(chan error, 1)
	s.requests <- request{command: command, started: started}
	return <-started
}

// SignalGroup sends a signal to the whole process group that the process leads. A group that is gone is no error.
func SignalGroup(leader int, signal syscall.Signal) error {
	if leader <= 1 {
		return errors.New("refusing to signal a process group that is not a child's")
	}
	err := syscall.Kill(-leader, signal)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
