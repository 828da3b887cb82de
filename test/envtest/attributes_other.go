// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package envtest

import "syscall"

// attributes is empty: these systems cannot kill the program when the test ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
