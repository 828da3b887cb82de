// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

const lockName = "lock"

// Holder is who holds a lock, for the message to whoever comes second.
type Holder struct {
	PID   int       `json:"pid"`
	What  string    `json:"what"`
	Since time.Time `json:"since"`
}

// HeldError says that another process holds the lock.
type HeldError struct {
	Holder Holder
}

func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return "another process holds the lock of .local"
	}
	return fmt.Sprintf("%s (process %d, since %s)", e.Holder.What, e.Holder.PID, e.Holder.Since.Format("15:04:05"))
}

// Lock is held until Release or until the process ends, however it ends.
type Lock struct {
	file *os.File
}

// LockPath is the file that a run locks.
func (w Workspace) LockPath() string { return w.State(lockName) }

// Acquire takes the lock at path without waiting. It fails with a *HeldError when another process has it. The file
// stays for good: removing it would let two processes lock two files of one name.
func Acquire(path, what string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		held := &HeldError{Holder: readHolder(path)}
		return nil, errors.Join(held, file.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), file.Close())
	}
	lock := &Lock{file: file}
	if err := lock.describe(what); err != nil {
		return nil, errors.Join(err, lock.Release())
	}
	return lock, nil
}

// describe notes who holds the lock.
func (l *Lock) describe(what string) error {
	data, err := json.Marshal(Holder{PID: os.Getpid(), What: what, Since: time.Now()})
	if err != nil {
		return err
	}
	if err := l.file.Truncate(0); err != nil {
		return err
	}
	_, err = l.file.WriteAt(data, 0)
	return err
}

// Release gives the lock back.
func (l *Lock) Release() error {
	return errors.Join(l.file.Truncate(0), l.file.Close())
}

// readHolder reads who holds the lock; whoever just took it may not have written that yet.
func readHolder(path string) Holder {
	var holder Holder
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &holder) != nil {
		return Holder{}
	}
	return holder
}
