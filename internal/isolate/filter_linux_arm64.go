// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_AARCH64

// older are calls whose numbers differ from other systems. olderOpen are those that open files.
var (
	older     = []uintptr{unix.SYS_FSTATAT, unix.SYS_GETRLIMIT}
	olderOpen []uintptr
)
