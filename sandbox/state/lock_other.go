// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package state

// dirLock does nothing where flock does not exist: there, starting two sandboxes on one folder is the user's to avoid.
type dirLock struct{}

func lockDir(string) (*dirLock, error) { return &dirLock{}, nil }

func (l *dirLock) release() error { return nil }
