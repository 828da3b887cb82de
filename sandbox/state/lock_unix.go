// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package state

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dirLock keeps a second process from appending to the same journal. The kernel lets go of it when the process ends,
// however it ends.
type dirLock struct{ file *os.File }

func lockDir(dir string) (*dirLock, error) {
	file, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another sandbox is using this folder; stop it, or give this one another --state-dir")
		}
		return nil, errors.Join(fmt.Errorf("lock the folder: %w", err), file.Close())
	}
	return &dirLock{file: file}, nil
}

func (l *dirLock) release() error {
	if l == nil || l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}
