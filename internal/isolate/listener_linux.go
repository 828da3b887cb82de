// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package isolate

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// controlFile is the number of the socket for sending the listener: the first after the standard files.
const controlFile = 3

// Program is a process that calls Exec. Its connections are sockets whose other ends Accept returns. It never has a
// network socket and never starts another program. After its first connection request, it opens no file except its
// output.
type Program struct {
	cmd        *exec.Cmd
	output     *os.File
	limits     Limits
	control    *os.File
	calls      *os.File
	supervisor sync.WaitGroup

	conns  chan net.Conn
	closed chan struct{}
	close  func()
}

var _ net.Listener = (*Program)(nil)

// Start starts a command from Self whose process calls Exec with the same limits. It sets the memory limits once the
// process becomes the program: before that, a Go program has already reserved more than any other program needs.
//
// After its first connection, the program gets output in place of any file that it opens, and may read and write it.
// Without an output, it cannot open files.
func Start(cmd *exec.Cmd, limits Limits, output *os.File) (*Program, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot make a socket: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(pair[0]), "control"), os.NewFile(uintptr(pair[1]), "control")
	cmd.ExtraFiles = []*os.File{theirs}
	err = cmd.Start()
	_ = theirs.Close() // The process has its own copy.
	if err != nil {
		return nil, errors.Join(err, ours.Close())
	}
	p := &Program{cmd: cmd, output: output, limits: limits, control: ours, conns: make(chan net.Conn), closed: make(chan struct{})}
	p.close = sync.OnceFunc(func() { close(p.closed) })
	p.supervisor.Go(p.supervise)
	return p, nil
}

// Wait waits for the process to exit. From then on, Accept fails.
func (p *Program) Wait() error {
	err := p.cmd.Wait()
	_ = p.Close()
	p.supervisor.Wait()
	return err
}

// Accept implements net.Listener.
func (p *Program) Accept() (net.Conn, error) {
	select {
	case end := <-p.conns:
		return end, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener. The process does not receive any more connections.
func (p *Program) Close() error {
	p.close()
	return nil
}

// Addr implements net.Listener.
func (*Program) Addr() net.Addr { return &net.UnixAddr{Net: "unix"} }

// The messages between the kernel and a listener; see seccomp_unotify(2).
type (
	notification struct {
		id         uint64
		pid, flags uint32
		call       int32
		arch       uint32
		at         uint64
		arguments  [6]uint64
	}
	verdict struct {
		id    uint64
		value int64
		errno int32
		flags uint32
	}
	addition struct {
		id                          uint64
		flags, from, to, descriptor uint32
	}
)

// addFile is SECCOMP_IOCTL_NOTIF_ADDFD (Linux 5.9): it adds a file to the process.
const addFile = 0x40182103

func (p *Program) supervise() {
	calls, err := p.receive()
	if err != nil {
		return // The process reports why, or has exited.
	}
	p.calls = calls
	defer func() { _ = calls.Close() }()
	raw, err := calls.SyscallConn()
	if err != nil {
		return
	}
	started, fed, threads := false, false, 0
	for {
		var call notification
		if err := next(raw, &call); err != nil {
			return
		}
		number := uintptr(call.call) //nolint:gosec // a number below 512
		if number == unix.SYS_EXECVE && !started {
			// The process is still this program. A Go program repeats the call after a signal.
			p.respond(verdict{id: call.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
			continue
		}
		if number == unix.SYS_CLONE {
			threads++
			p.respond(threadVerdict(call.id, threads))
			continue
		}
		if !started {
			// The process has become the other program and opens its first file. A Go program reserves more address
			// space than the limit allows, and could not start a thread under it.
			started = p.limit() == nil
		}
		switch {
		case !started:
			p.respond(verdict{id: call.id, errno: -int32(unix.EPERM)})
		case number == unix.SYS_SOCKET:
			fed = true
			p.connect(&call)
		case opens(number) && !fed:
			// The program is still being linked, and has not read anything untrusted yet.
			p.respond(verdict{id: call.id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE})
		case opens(number) && p.output != nil:
			p.supplyOutput(&call)
		default:
			p.respond(verdict{id: call.id, errno: -int32(unix.EPERM)})
		}
	}
}

// maxThreads limits the threads that a program may start. A program that is configured to use one thread still has
// about ten.
const maxThreads = 64

func threadVerdict(id uint64, n int) verdict {
	if n > maxThreads {
		return verdict{id: id, errno: -int32(unix.EAGAIN)}
	}
	return verdict{id: id, flags: unix.SECCOMP_USER_NOTIF_FLAG_CONTINUE}
}

func (p *Program) limit() error {
	for resource, most := range map[int]uint64{unix.RLIMIT_AS: p.limits.AddressSpace, unix.RLIMIT_DATA: p.limits.Data} {
		if most == 0 {
			continue
		}
		if err := unix.Prlimit(p.cmd.Process.Pid, resource, &unix.Rlimit{Cur: most, Max: most}, nil); err != nil {
			return err
		}
	}
	return nil
}

func opens(call uintptr) bool {
	return call == unix.SYS_OPENAT || call == unix.SYS_OPENAT2 || slices.Contains(olderOpen, call)
}

func (p *Program) receive() (*os.File, error) {
	defer func() { _ = p.control.Close() }()
	rights := make([]byte, unix.CmsgSpace(word))
	n, size, _, _, err := unix.Recvmsg(int(p.control.Fd()), make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	if err != nil || n == 0 {
		return nil, errors.Join(err, errors.New("the process has ended"))
	}
	messages, err := unix.ParseSocketControlMessage(rights[:size])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, errors.New("the process sent no listener"))
	}
	files, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(files) != 1 {
		return nil, errors.Join(err, errors.New("the process sent no listener"))
	}
	// The runtime waits for a non-blocking file without occupying a thread, until it is closed.
	if err := unix.SetNonblock(files[0], true); err != nil {
		return nil, errors.Join(err, unix.Close(files[0]))
	}
	return os.NewFile(uintptr(files[0]), "calls"), nil
}

func next(raw syscall.RawConn, call *notification) error {
	var failure error
	err := raw.Read(func(descriptor uintptr) (done bool) {
		for {
			ready := []unix.PollFd{{Fd: int32(descriptor), Events: unix.POLLIN}} //nolint:gosec // the number of a file
			switch n, err := unix.Poll(ready, 0); {
			case errors.Is(err, unix.EINTR):
				continue
			case err != nil:
				failure = err
				return true
			case ready[0].Revents&unix.POLLIN == 0 && ready[0].Revents != 0:
				failure = net.ErrClosed
				return true
			case n == 0:
				return false
			}
			*call = notification{}
			_, _, errno := unix.Syscall(unix.SYS_IOCTL, descriptor, unix.SECCOMP_IOCTL_NOTIF_RECV, uintptr(unsafe.Pointer(call))) //nolint:gosec // as ioctl(2) requires
			switch errno {
			case 0:
				return true
			case unix.EINTR, unix.ENOENT:
				// The calling thread has exited.
			default:
				failure = errno
				return true
			}
		}
	})
	return errors.Join(err, failure)
}

// respond responds to a call. It is not an error if the call was abandoned in the meantime.
func (p *Program) respond(v verdict) {
	_, _ = p.ioctl(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&v)) //nolint:gosec // as ioctl(2) requires
}

func (p *Program) ioctl(request uintptr, message unsafe.Pointer) (result uintptr, err error) {
	raw, err := p.calls.SyscallConn()
	if err != nil {
		return 0, err
	}
	var errno unix.Errno
	err = raw.Control(func(descriptor uintptr) {
		result, _, errno = unix.Syscall(unix.SYS_IOCTL, descriptor, request, uintptr(message))
	})
	if err == nil && errno != 0 {
		err = errno
	}
	return result, err
}

// supplyOutput gives the process its output in place of the requested file. It reopens the output each time, so a
// program that reads its own output has two offsets.
func (p *Program) supplyOutput(call *notification) {
	refused := verdict{id: call.id, errno: -int32(unix.EACCES)}
	again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", p.output.Fd()), os.O_RDWR, 0)
	if err != nil {
		p.respond(refused)
		return
	}
	defer func() { _ = again.Close() }()
	added := addition{id: call.id, from: uint32(again.Fd()), descriptor: unix.O_CLOEXEC} //nolint:gosec // the number of a file
	number, err := p.ioctl(addFile, unsafe.Pointer(&added))                              //nolint:gosec // as ioctl(2) requires
	if err != nil {
		p.respond(refused)
		return
	}
	p.respond(verdict{id: call.id, value: int64(number)}) //nolint:gosec // the number of a file
}

// connect gives the process one end of a socket pair in place of the requested socket, and passes the other to Accept.
func (p *Program) connect(call *notification) {
	refused := verdict{id: call.id, errno: -int32(unix.EACCES)}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		p.respond(refused)
		return
	}
	defer func() { _ = unix.Close(pair[1]) }()
	ours := os.NewFile(uintptr(pair[0]), "connection")
	end, err := net.FileConn(ours)
	_ = ours.Close() // FileConn has duplicated it.
	if err != nil {
		p.respond(refused)
		return
	}
	kind := call.arguments[1]
	if kind&unix.SOCK_NONBLOCK != 0 {
		err = unix.SetNonblock(pair[1], true)
	}
	added := addition{id: call.id, from: uint32(pair[1]), descriptor: uint32(kind & unix.SOCK_CLOEXEC)} //nolint:gosec // the number of a file, and a flag
	number, failure := p.ioctl(addFile, unsafe.Pointer(&added))                                         //nolint:gosec // as ioctl(2) requires
	if err = errors.Join(err, failure); err != nil {
		_ = end.Close()
		p.respond(refused)
		return
	}
	p.respond(verdict{id: call.id, value: int64(number)}) //nolint:gosec // the number of a file
	select {
	case p.conns <- end:
	case <-p.closed:
		_ = end.Close()
	}
}
