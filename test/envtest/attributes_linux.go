// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import "syscall"

// attributes kill the program with the test.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
