// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix && !linux

package supervisor

import "syscall"

// attributes is empty: these systems cannot kill children together with their parent, so the next OpenGroup kills them.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
