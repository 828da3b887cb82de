// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package envtest

import "syscall"

// attributes cannot ask these systems to kill the program with the test.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
