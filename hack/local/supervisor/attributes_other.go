// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package supervisor

import "syscall"

// attributes cannot make these systems kill the children with their parent; the next OpenGroup kills them.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
