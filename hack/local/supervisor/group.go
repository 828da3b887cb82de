// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// leftoverPoll is the pause between two attempts to lock the file while old processes are exiting.
const leftoverPoll = 10 * time.Millisecond

// Group starts processes that do not outlive this one.
//
// They are all in one process group, and all inherit the lock on one file, which contains the group's id. As long as
// the file is locked, one of them is still running, so the system has not reused the id: the file's next owner can kill
// that group without checking who is in it.
type Group struct {
	file *os.File
	// starts receives the calls to make on serve's thread.
	starts chan func()
	// leader is the id of the process group, or zero before the first start.
	leader int
}

// OpenGroup opens the group file at path. It kills any processes left over from an earlier run and waits for them to
// exit or for ctx to be done. The caller must ensure that nothing else uses the file.
func OpenGroup(ctx context.Context, path string) (*Group, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := killLeftovers(ctx, file); err != nil {
		err = fmt.Errorf("end the processes of an earlier run: %w\nend them yourself (`lsof %s` shows them) and try again", err, path)
		return nil, errors.Join(err, file.Close())
	}
	g := &Group{file: file, starts: make(chan func())}
	go g.serve()
	return g, nil
}

func killLeftovers(ctx context.Context, file *os.File) error {
	return wait.PollUntilContextCancel(ctx, leftoverPoll, true, func(context.Context) (bool, error) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return true, file.Truncate(0)
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return false, err
		}
		var leader int
		switch _, err := fmt.Fscan(io.NewSectionReader(file, 0, 32), &leader); {
		case errors.Is(err, io.EOF):
			// If there is no id, the group's first process was started just before its parent was killed, and is now
			// exiting.
			return false, nil
		case err != nil:
			return false, err
		}
		return false, killGroup(leader)
	})
}

// serve starts every process from one thread that never exits. Linux kills the children when their parent dies, and to
// Linux the parent is the thread that forked them.
func (g *Group) serve() {
	runtime.LockOSThread()
	for start := range g.starts {
		start()
	}
}

// Start starts the command in the group. Ctrl-C in the terminal does not reach it.
func (g *Group) Start(command *exec.Cmd) error {
	started := make(chan error, 1)
	g.starts <- func() { started <- g.start(command) }
	return <-started
}

func (g *Group) start(command *exec.Cmd) error {
	command.SysProcAttr = attributes()
	command.ExtraFiles = []*os.File{g.file}
	if g.leader != 0 && syscall.Kill(-g.leader, 0) == nil {
		command.SysProcAttr.Pgid = g.leader
		return command.Start()
	}
	// The group is new, or all its processes have exited.
	if err := g.file.Truncate(0); err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	g.leader = command.Process.Pid
	if _, err := g.file.WriteAt([]byte(strconv.Itoa(g.leader)+"\n"), 0); err != nil {
		return errors.Join(err, command.Process.Kill(), command.Wait())
	}
	return nil
}

// killGroup kills a process group. It is not an error if the group no longer exists.
func killGroup(leader int) error {
	if leader <= 1 {
		return fmt.Errorf("%d is not the id of a process group of ours", leader)
	}
	if err := syscall.Kill(-leader, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
		return err
	}
	return nil
}
