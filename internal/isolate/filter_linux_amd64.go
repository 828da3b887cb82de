// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package isolate

import "golang.org/x/sys/unix"

const auditArch = unix.AUDIT_ARCH_X86_64

// older are calls that newer architectures lack because other calls replace them. olderOpen are those that open files.
var (
	older = []uintptr{
		unix.SYS_NEWFSTATAT, unix.SYS_STAT, unix.SYS_LSTAT, unix.SYS_ACCESS, unix.SYS_READLINK, unix.SYS_DUP2, unix.SYS_PIPE,
		unix.SYS_POLL, unix.SYS_SELECT, unix.SYS_EPOLL_WAIT, unix.SYS_EPOLL_CREATE, unix.SYS_TIME, unix.SYS_GETPGRP, unix.SYS_GETRLIMIT, unix.SYS_ARCH_PRCTL,
	}
	olderOpen = []uintptr{unix.SYS_OPEN}
)
