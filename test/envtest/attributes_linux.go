// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import "syscall"

// attributes makes the system kill the program when the test ends.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
