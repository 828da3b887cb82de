// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package isolate

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

type action uint32

const (
	allow action = unix.SECCOMP_RET_ALLOW
	// refuse makes the call fail with EPERM, and absent with ENOSYS.
	refuse action = unix.SECCOMP_RET_ERRNO | action(unix.EPERM)
	absent action = unix.SECCOMP_RET_ERRNO | action(unix.ENOSYS)
	// pretend makes the call do nothing and return 0.
	pretend action = unix.SECCOMP_RET_ERRNO
	// notify passes the call to the process with the listener.
	notify action = unix.SECCOMP_RET_USER_NOTIF
	// kill kills the process with SIGSYS, which it cannot catch.
	kill action = unix.SECCOMP_RET_KILL_PROCESS
)

type rule struct {
	call uintptr
	do   action
	// If there are tests, do applies if all of them succeed, and otherwise if any fails.
	tests     []test
	otherwise action
}

// test checks the lower half of a system call argument: the bits in mask must equal value. The kernel ignores the upper
// half of numbers. whole marks an address, whose upper half must be zero as well.
type test struct {
	argument, mask, value uint32
	whole                 bool
}

// none returns a test that an address argument is nil.
func none(argument uint32) test { return test{argument: argument, mask: ^uint32(0), whole: true} }

const upperHalf = 1 << 31

// upper returns a test that the upper half of the same argument is zero.
func (t test) upper() test { return test{argument: t.argument | upperHalf, mask: ^uint32(0)} }

// offset returns the offset of the tested half in seccomp_data. Both architectures store the lower half first.
func (t test) offset() uint32 {
	at := argumentsAt + argumentLength*(t.argument&^upperHalf)
	if t.argument&upperHalf != 0 {
		at += word
	}
	return at
}

// filter lists the actions for system calls. Calls without a rule are refused.
//
// elastic/go-seccomp-bpf (v1.6.0) compiles similar policies but behaves differently: errno 0 becomes EPERM, so no call
// can pretend; calls of x32 and of other architectures fail instead of killing the process; and the upper halves of
// numbers count. Its LoadFilter does not return a listener.
type filter []rule

func all(do action, calls ...uintptr) filter {
	rules := make(filter, 0, len(calls))
	for _, call := range calls {
		rules = append(rules, rule{call: call, do: do})
	}
	return rules
}

func onlyIf(do action, call uintptr, tests ...test) rule {
	return rule{call: call, do: do, tests: tests, otherwise: refuse}
}

// Offsets in struct seccomp_data.
const (
	callAt, archAt, argumentsAt, argumentLength = 0, 4, 16, 8
	word                                        = 4
	// x32 marks the call numbers of amd64's second table, which is not used.
	x32 = 0x40000000
)

// program compiles the filter. Each rule ends with a verdict, so that call numbers are never compared with arguments.
func (f filter) program() ([]unix.SockFilter, error) {
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: archAt, Size: word},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		bpf.RetConstant{Val: uint32(kill)},
		bpf.LoadAbsolute{Off: callAt, Size: word},
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: x32, SkipTrue: 1},
		bpf.RetConstant{Val: uint32(kill)},
	}
	for _, r := range f {
		body := r.body()
		code = append(code, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(r.call), SkipTrue: uint8(len(body))}) //nolint:gosec // a number below 512, and few tests
		code = append(code, body...)
	}
	code = append(code, bpf.RetConstant{Val: uint32(refuse)})
	raw, err := bpf.Assemble(code)
	if err != nil {
		return nil, fmt.Errorf("cannot assemble the filter: %w", err)
	}
	program := make([]unix.SockFilter, 0, len(raw))
	for _, i := range raw {
		program = append(program, unix.SockFilter{Code: i.Op, Jt: i.Jt, Jf: i.Jf, K: i.K})
	}
	return program, nil
}

func (r rule) body() []bpf.Instruction {
	const each = 3
	var tests []test
	for _, t := range r.tests {
		tests = append(tests, t)
		if t.whole {
			tests = append(tests, t.upper())
		}
	}
	code := make([]bpf.Instruction, 0, each*len(tests)+2)
	for i, t := range tests {
		// The otherwise verdict comes after the remaining tests and the first verdict.
		failed := uint8(each*(len(tests)-i-1) + 1) //nolint:gosec // few tests
		code = append(code,
			bpf.LoadAbsolute{Off: t.offset(), Size: word},
			bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: t.mask},
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: t.value, SkipTrue: failed},
		)
	}
	code = append(code, bpf.RetConstant{Val: uint32(r.do)})
	if len(r.tests) > 0 {
		code = append(code, bpf.RetConstant{Val: uint32(r.otherwise)})
	}
	return code
}

// install installs a filter on this thread or, with SECCOMP_FILTER_FLAG_TSYNC, on all threads of the process. It sets
// no_new_privs, so that a program started from here gains no privileges; only then does the kernel let an unprivileged
// process install a filter. It returns the listener if flags request one.
func install(program []unix.SockFilter, flags uintptr) (listener int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("cannot set no_new_privs: %w", err)
	}
	head := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}                                                       //nolint:gosec // a few hundred instructions
	result, _, failure := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&head))) //nolint:gosec // as seccomp(2) requires
	switch {
	case failure != 0:
		return 0, fmt.Errorf("cannot set a filter for system calls: %w", failure)
	case flags&unix.SECCOMP_FILTER_FLAG_TSYNC != 0 && result != 0:
		return 0, fmt.Errorf("thread %d cannot have the filter for system calls", result)
	}
	return int(result), nil
}

// hostile are calls that these programs never make by mistake. They kill the process.
var hostile = slices.Concat([]uintptr{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PIDFD_GETFD, unix.SYS_KCMP,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_UNSHARE, unix.SYS_SETNS,
	unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD, unix.SYS_REBOOT,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_PERSONALITY,
	unix.SYS_BIND, unix.SYS_LISTEN, unix.SYS_ACCEPT, unix.SYS_ACCEPT4, unix.SYS_SENDMMSG,
})

// threadRule applies an action to a call that starts a thread, and refuses new processes and namespaces.
func threadRule(do action) rule {
	return onlyIf(do, unix.SYS_CLONE, test{
		mask: unix.CLONE_THREAD | unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
			unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		value: unix.CLONE_THREAD,
	})
}

// common are the calls that every program needs: for memory, threads, signals to itself, and its open files.
func common(pid int) filter {
	return slices.Concat(
		all(allow,
			unix.SYS_READ, unix.SYS_WRITE, unix.SYS_CLOSE, unix.SYS_FSTAT,
			unix.SYS_MUNMAP, unix.SYS_MADVISE, unix.SYS_FUTEX, unix.SYS_EXIT, unix.SYS_EXIT_GROUP, unix.SYS_RESTART_SYSCALL,
			unix.SYS_RT_SIGACTION, unix.SYS_RT_SIGPROCMASK, unix.SYS_RT_SIGRETURN, unix.SYS_SIGALTSTACK,
			unix.SYS_GETPID, unix.SYS_GETTID, unix.SYS_SCHED_YIELD, unix.SYS_SCHED_GETAFFINITY,
			unix.SYS_NANOSLEEP, unix.SYS_CLOCK_NANOSLEEP, unix.SYS_CLOCK_GETTIME, unix.SYS_GETTIMEOFDAY, unix.SYS_GETRANDOM,
			// C libraries abort if they cannot register a thread.
			unix.SYS_SET_ROBUST_LIST, unix.SYS_RSEQ, unix.SYS_BRK, unix.SYS_WRITEV,
			unix.SYS_EPOLL_CREATE1, unix.SYS_EPOLL_CTL, unix.SYS_EPOLL_PWAIT, unix.SYS_EVENTFD2,
		),
		filter{onlyIf(allow, unix.SYS_TGKILL, test{argument: 0, mask: ^uint32(0), value: uint32(pid)})}, //nolint:gosec // a process id
		// clone3 takes its arguments from memory, which a filter cannot read. C libraries fall back to clone.
		all(absent, unix.SYS_CLONE3),
		all(kill, hostile...),
	)
}

func decoder(pid int) filter {
	unexecutable := func(call uintptr) rule { return onlyIf(allow, call, test{argument: 2, mask: unix.PROT_EXEC}) }
	return slices.Concat(
		common(pid),
		filter{threadRule(allow), unexecutable(unix.SYS_MMAP), unexecutable(unix.SYS_MPROTECT)},
		all(kill, unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_SOCKET, unix.SYS_SOCKETPAIR, unix.SYS_CONNECT, unix.SYS_SENDTO, unix.SYS_SENDMSG),
	)
}

// program is the filter for a dynamically linked program that reads from the sockets it receives. The listener decides
// about execve, opening files and creating sockets. The only sockets are IPv4 stream sockets.
func program(pid, control int) filter {
	return slices.Concat(
		common(pid),
		all(allow,
			unix.SYS_MMAP, unix.SYS_MPROTECT, unix.SYS_MREMAP, unix.SYS_MEMBARRIER,
			unix.SYS_LSEEK, unix.SYS_PREAD64, unix.SYS_READV, unix.SYS_DUP, unix.SYS_DUP3, unix.SYS_PIPE2,
			unix.SYS_STATX, unix.SYS_FACCESSAT, unix.SYS_FACCESSAT2, unix.SYS_READLINKAT, unix.SYS_GETCWD,
			unix.SYS_STATFS, unix.SYS_FSTATFS, unix.SYS_GETDENTS64, unix.SYS_FADVISE64,
			unix.SYS_PPOLL, unix.SYS_PSELECT6, unix.SYS_CLOCK_GETRES, unix.SYS_TIMES, unix.SYS_GETRUSAGE, unix.SYS_SYSINFO, unix.SYS_UNAME,
			unix.SYS_GETUID, unix.SYS_GETEUID, unix.SYS_GETGID, unix.SYS_GETEGID, unix.SYS_GETPPID, unix.SYS_GETPGID,
			unix.SYS_SET_TID_ADDRESS, unix.SYS_GET_ROBUST_LIST, unix.SYS_GETCPU,
			unix.SYS_SCHED_GETPARAM, unix.SYS_SCHED_GETSCHEDULER, unix.SYS_RT_SIGTIMEDWAIT, unix.SYS_RT_SIGSUSPEND,
			unix.SYS_RECVFROM, unix.SYS_SENDTO, unix.SYS_GETSOCKOPT, unix.SYS_SETSOCKOPT, unix.SYS_SHUTDOWN, unix.SYS_GETSOCKNAME, unix.SYS_GETPEERNAME,
		),
		all(allow, older...),
		filter{
			// The listener counts threads: each takes kernel memory and one of the container's processes.
			threadRule(notify),
			// The program may read its own limits but not set them.
			onlyIf(allow, unix.SYS_PRLIMIT64, test{argument: 0, mask: ^uint32(0)}, none(2)),
			// Commands for file numbers and flags, without those that make the kernel send signals to arbitrary processes.
			onlyIf(allow, unix.SYS_FCNTL, test{argument: 1, mask: ^uint32(flagsOfFiles)}),
			onlyIf(allow, unix.SYS_PRCTL, test{argument: 0, mask: ^uint32(0), value: unix.PR_SET_NAME}),
			// The program receives the listener's socket before it starts; the socket is closed by then.
			onlyIf(allow, unix.SYS_SENDMSG, test{argument: 0, mask: ^uint32(0), value: uint32(control)}), //nolint:gosec // the number of a file
			onlyIf(notify, unix.SYS_SOCKET, test{argument: 0, mask: ^uint32(0), value: unix.AF_INET}, test{argument: 1, mask: socketKind, value: unix.SOCK_STREAM}),
		},
		// The sockets from the listener are already connected.
		all(pretend, unix.SYS_CONNECT),
		all(notify, notified...),
		all(kill, unix.SYS_SOCKETPAIR),
	)
}

// flagsOfFiles covers the fcntl commands up to F_SETLKW: duplicating files, flags and locks.
const flagsOfFiles = unix.F_SETLKW

const socketKind = 0xf

// notified are the calls, other than socket, that the listener decides about.
var notified = slices.Concat([]uintptr{unix.SYS_EXECVE, unix.SYS_EXECVEAT, unix.SYS_OPENAT, unix.SYS_OPENAT2}, olderOpen)
