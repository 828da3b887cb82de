// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package supervisor

import "syscall"

// attributes cannot ask these systems to kill the children with their parent; the next OpenGroup does.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
