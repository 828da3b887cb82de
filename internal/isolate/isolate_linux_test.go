// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build amd64 || arm64

package isolate_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/herald-social/herald/internal/isolate"
	"github.com/herald-social/herald/test/must"
)

// limits are the limits of processes that try a call.
var limits = isolate.Limits{Data: 512 << 20, CPU: 2 * time.Second, Files: 32}

// becoming are the limits of processes that become another program.
var becoming = isolate.Limits{AddressSpace: 1 << 30, CPU: 5 * time.Second, Files: 64}

// TestMain makes this program the separate process that a test starts: "try" confines itself like an image decoder, and
// tries one call; "become" becomes another program.
func TestMain(m *testing.M) {
	args := os.Args[1:]
	if len(args) > 1 && args[0] == "try" {
		if err := isolate.Enter(limits); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(isolate.ExitNotIsolated)
		}
		if strings.HasPrefix(args[1], "runtime") {
			complain(args[1])
		}
		fmt.Fprint(os.Stdout, find(args[1], attempts[args[1]].do)())
		os.Exit(0)
	}
	if len(args) > 1 && args[0] == "become" {
		limits := becoming
		if len(args) > 3 && strings.HasPrefix(args[3], "output") {
			limits.Output = maxOutput
		}
		code, err := isolate.Exec(limits, args[1], args[2:])
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	}
	if len(args) > 1 && args[0] == "act" {
		tried := acts[args[1]].do
		if output, ok := outputs[args[1]]; ok {
			tried = output.do
		}
		fmt.Fprint(os.Stdout, find(args[1], tried)())
		os.Exit(0)
	}
	if raceEnabled {
		fmt.Println("SKIP: a program that looks for races cannot be confined; run these tests without -race")
		return
	}
	os.Exit(m.Run())
}

// find returns the function with the given name.
func find(name string, tried func() error) func() error {
	if tried != nil {
		return tried
	}
	return others[name]
}

// call makes a system call and returns its error.
func call(number uintptr, arguments ...uintptr) func() error {
	return func() error {
		var all [6]uintptr
		copy(all[:], arguments)
		if _, _, errno := unix.RawSyscall6(number, all[0], all[1], all[2], all[3], all[4], all[5]); errno != 0 {
			return errno
		}
		return nil
	}
}

// attempts are calls that a decoder must not make, with the expected error or exit of the process.
var attempts = map[string]struct {
	do   func() error
	want string
}{
	"a socket of IPv4":                {call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM), killed},
	"a socket of IPv6":                {call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_DGRAM), killed},
	"a socket of the kernel's":        {call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW), killed},
	"a pair of sockets":               {call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM), killed},
	"to connect":                      {call(unix.SYS_CONNECT, 0), killed},
	"to send":                         {call(unix.SYS_SENDTO, 0), killed},
	"to send messages":                {call(unix.SYS_SENDMSG, 0), killed},
	"to listen":                       {call(unix.SYS_LISTEN, 0), killed},
	"to start a program":              {func() error { return syscall.Exec("/bin/true", []string{"true"}, nil) }, killed},
	"to start one by a file":          {call(unix.SYS_EXECVEAT, 0), killed},
	"to trace":                        {call(unix.SYS_PTRACE, unix.PTRACE_TRACEME), killed},
	"other processes' memory":         {call(unix.SYS_PROCESS_VM_READV, 1), killed},
	"other processes' files":          {call(unix.SYS_PIDFD_GETFD, 0), killed},
	"to mount":                        {call(unix.SYS_MOUNT), killed},
	"another root":                    {call(unix.SYS_CHROOT), killed},
	"another namespace":               {call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), killed},
	"a program in the kernel":         {call(unix.SYS_BPF), killed},
	"another way to create processes": {call(unix.SYS_IO_URING_SETUP, 1), killed},
	"keys":                            {call(unix.SYS_KEYCTL), killed},
	"another process":                 {call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)), refused},
	"a process by clone3":             {call(unix.SYS_CLONE3), "function not implemented"},
	"to read a file":                  {func() error { _, err := os.ReadFile("/etc/hostname"); return err }, refused},
	"to write a file":                 {func() error { return os.WriteFile("/tmp/herald-confined", nil, 0o600) }, refused},
	"to remove a file":                {call(unix.SYS_UNLINKAT), refused},
	"to see a folder":                 {func() error { _, err := os.ReadDir("/"); return err }, refused},
	"to see a file":                   {func() error { _, err := os.Stat("/etc/passwd"); return err }, refused},
	"to kill another process":         {func() error { return unix.Kill(os.Getppid(), 0) }, refused},
	"to kill another's thread":        {func() error { return unix.Tgkill(1, 1, 0) }, refused},
	"higher limits": {func() error {
		return unix.Prlimit(0, unix.RLIMIT_CPU, &unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}, nil)
	}, refused},
	"another user": {call(unix.SYS_SETUID, 0), refused},
	"code": {func() error {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	}, refused},
	"code in its memory": {func() error {
		page, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		return errors.Join(err, unix.Mprotect(page, unix.PROT_READ|unix.PROT_EXEC))
	}, refused},
	"a call by arguments of another": {func() error {
		// The number of socket is passed as the argument of the call under test: a filter that compares the wrong word would
		// mistake one for the other.
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE, unix.SYS_READ, 0, 0)
		return errno
	}, refused},
	"more memory": {func() error {
		// An allocation that replaces reserved addresses in one piece may exceed the limit. Later allocations fail.
		all := make([]byte, 600<<20)
		for range 128 {
			all = append(make([]byte, 1<<20), all[:1<<20]...)
		}
		return fmt.Errorf("got %d bytes at %p", len(all), &all[0])
	}, noMemory},
	"more memory in parts": {func() error {
		var all [][]byte
		for range 600 {
			part := make([]byte, 1<<20)
			for i := 0; i < len(part); i += 4096 {
				part[i] = 1
			}
			all = append(all, part)
		}
		return fmt.Errorf("got %d parts", len(all))
	}, noMemory},
	"all the time": {func() error {
		for {
			runtime.Gosched()
		}
	}, string(isolate.OutOfTime)},
	"to panic": {func() error { panic("a decoder gave up") }, string(isolate.Crashed)},
}

const (
	killed  = string(isolate.Forbidden)
	refused = "operation not permitted"
	// noMemory allows for Go's garbage collector, which crashes if it gets no memory for itself.
	noMemory = string(isolate.OutOfMemory) + "|" + string(isolate.Crashed)
)

func TestConfinedProcessIsDenied(t *testing.T) {
	for name, tc := range attempts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := try(t, name)
			if !slices.ContainsFunc(strings.Split(tc.want, "|"), func(one string) bool { return strings.Contains(got, one) }) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// try makes a separate process try something, and returns its error or how it exited.
func try(t *testing.T, name string) string {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out, stderr bytes.Buffer
	cmd := isolate.Self(t.Context(), "try", name)
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	must.Succeed(t, isolate.StartError(cmd.ProcessState, stderr.String()))
	if how := isolate.ClassifyExit(cmd.ProcessState, stderr.String(), limits); how != isolate.Exited {
		t.Logf("%s after %s and %s: %s", cmd.ProcessState, cmd.ProcessState.UserTime(), cmd.ProcessState.SystemTime(), &stderr)
		return string(how)
	}
	return out.String()
}

// A decoder must be able to do all its work: threads, garbage collection and open files.
func TestConfinedProcessIsAllowed(t *testing.T) {
	t.Parallel()
	if got := try(t, "work"); got != "<nil>" {
		t.Errorf("got %s", got)
	}
}

// A resource shortage in the machine or container is not the file's fault.
func TestShortageIsTemporary(t *testing.T) {
	for name, words := range map[string]string{
		"threads": "runtime: failed to create new OS thread (have 5 already; errno=11)", "threads in C": "runtime/cgo: pthread_create failed: Resource temporarily unavailable",
	} {
		t.Run(name, func(t *testing.T) {
			if got := try(t, words); got != string(isolate.Killed) {
				t.Errorf("got %s", got)
			}
		})
	}
}

// complain makes this process exit like a Go program that runs out of a resource.
func complain(words string) {
	fmt.Fprintln(os.Stderr, words)
	os.Exit(2)
}

// others are permitted actions.
var others = map[string]func() error{"work": work, "read": readVideo, "tell": printEnvironment, "wait": wait}

func wait() error {
	fmt.Println("begun")
	select {}
}

func work() error {
	runtime.GOMAXPROCS(4)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			for range 64 {
				_ = bytes.Repeat([]byte("herald"), 1<<18)
				runtime.GC()
			}
		})
	}
	all.Wait()
	_, err := io.ReadAll(os.Stdin)
	return err
}

// become starts this program as a confined program that does the named action.
func become(t *testing.T, ctx context.Context, out io.Writer, name string) (*exec.Cmd, *isolate.Program) {
	t.Helper()
	path, err := os.Executable()
	must.Succeed(t, err)
	cmd := isolate.Self(ctx, "become", path, "act", name)
	cmd.Stdout, cmd.Stderr = out, out
	program, err := isolate.Start(cmd, becoming, nil)
	must.Succeed(t, err)
	return cmd, program
}

// connect requests a connection, which leads to the test.
func connect() (int, error) {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
	return s, errors.Join(err, unix.Connect(s, &unix.SockaddrInet4{Port: 80, Addr: [4]byte{192, 0, 2, 1}}))
}

// connected does something after a connection was requested.
func connected(do func() error) func() error {
	return func() error {
		if _, err := connect(); err != nil {
			return fmt.Errorf("no connection: %w", err)
		}
		return do()
	}
}

func start(path string) func() error {
	return func() error { return syscall.Exec(path, []string{path}, nil) }
}

func readFile() error { _, err := os.ReadFile("/etc/passwd"); return err }

// acts are actions that another program attempts.
var acts = map[string]struct {
	do   func() error
	want string
}{
	"no stream":                     {call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_DGRAM), refused},
	"IPv6":                          {call(unix.SYS_SOCKET, unix.AF_INET6, unix.SOCK_STREAM), refused},
	"a path":                        {call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM), refused},
	"a pair":                        {call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM), killed},
	"to listen":                     {call(unix.SYS_LISTEN, 0), killed},
	"another process":               {call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)), refused},
	"another program":               {start("/bin/true"), refused},
	"a program after it":            {connected(start("/bin/true")), refused},
	"a file to write":               {func() error { return write("/dev/shm") }, "file too large"},
	"a file after it":               {connected(readFile), refused},
	"to kill":                       {func() error { return unix.Kill(os.Getppid(), 0) }, refused},
	"higher limits":                 {attempts["higher limits"].do, refused},
	"messages with files":           {connected(call(unix.SYS_SENDMSG, 1)), refused},
	"mount, trace or similar calls": {call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER), killed},
	"limits of another, half":       {limitAnother, refused},
	"too many threads":              {manyThreads, "resource temporarily unavailable"},
	"signals of a file":             {func() error { return signalBy(unix.F_SETOWN, os.Getppid()) }, refused},
	"signals of its choice":         {func() error { return signalBy(fSetSig, int(unix.SIGKILL)) }, refused},
	"signals to a group":            {func() error { return signalBy(unix.F_SETOWN, -os.Getppid()) }, refused},
	"too much memory": {func() error {
		_, err := unix.Mmap(-1, 0, 8<<30, unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANON)
		return err
	}, "cannot allocate memory"},
	"required files": {readFile, "<nil>"},
}

// limitAnother sets a limit of the parent process. The limit is at an address whose lower half is zero, as if none were
// set.
func limitAnother() error {
	const address, size = 1 << 32, 4096
	at, _, errno := unix.RawSyscall6(unix.SYS_MMAP, address, size, unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_FIXED, ^uintptr(0), 0)
	if errno != 0 || at != address {
		return fmt.Errorf("no memory at %x: %w", address, errno)
	}
	if _, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, uintptr(os.Getppid()), unix.RLIMIT_CORE, at, 0, 0, 0); errno != 0 {
		return errno
	}
	return nil
}

// manyThreads requests a hundred threads, in a way that the kernel rejects but the listener decides about.
func manyThreads() (err error) {
	for range 100 {
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE, unix.CLONE_THREAD, 0, 0)
		err = errno
	}
	return err
}

// fSetSig is F_SETSIG: the signal that the owner gets when a file is ready.
const fSetSig = 10

// signalBy changes which process the kernel notifies that a file is ready, or how.
func signalBy(command, argument int) error {
	_, err := unix.FcntlInt(1, command, argument)
	return err
}

// write writes a byte to a new file.
func write(folder string) error {
	f, err := os.CreateTemp(folder, "herald-")
	if err != nil {
		return err
	}
	_, err = f.WriteString("x")
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// A program can open files before its first connection, as dynamic linking requires, but none after it.
func TestExecIsDenied(t *testing.T) {
	for name, tc := range acts {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var out bytes.Buffer
			cmd, program := become(t, t.Context(), &out, name)
			ends := accept(program, func(net.Conn) {})
			_ = program.Wait()
			ends.Wait()
			got := out.String()
			must.Succeed(t, isolate.StartError(cmd.ProcessState, got))
			if isolate.ClassifyExit(cmd.ProcessState, got, isolate.Limits{}) == isolate.Forbidden {
				got = killed
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// accept serves a program's connections until it has exited.
func accept(from *isolate.Program, serve func(net.Conn)) *sync.WaitGroup {
	var all sync.WaitGroup
	all.Go(func() {
		for {
			end, err := from.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer func() { _ = end.Close() }()
				serve(end)
			})
		}
	})
	return &all
}

// A program reads this process's data from any address that it connects to, any number of times.
func TestConnectionsAreInherited(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	_, program := become(t, t.Context(), &out, "read")
	ends := accept(program, func(end net.Conn) {
		question := make([]byte, 1)
		if _, err := io.ReadFull(end, question); err == nil {
			_, _ = fmt.Fprintf(end, "film %s", question)
		}
	})
	err := program.Wait()
	ends.Wait()
	if want := "film 0\nfilm 1\nfilm 2\n<nil>"; err != nil || out.String() != want {
		t.Errorf("got %q, %v", &out, err)
	}
	if _, err := program.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("after its end: %v", err)
	}
}

func readVideo() error {
	for i := range 3 {
		s, err := connect()
		if err != nil {
			return err
		}
		answer := make([]byte, 100)
		if _, err := unix.Write(s, []byte{byte('0' + i)}); err != nil {
			return err
		}
		n, err := unix.Read(s, answer)
		if err != nil {
			return err
		}
		fmt.Println(string(answer[:n]))
	}
	return nil
}

// maxOutput is the maximum size of an output here, in bytes.
const maxOutput = 64

// outputs are the actions of a program that may write one file.
var outputs = map[string]struct {
	do func() error
	// want is the program's final message, and kept the content of the output.
	want, kept string
}{
	"output": {connected(func() error {
		if err := os.WriteFile("/anywhere/film.mp4", []byte("made"), 0o600); err != nil {
			return err
		}
		return nil
	}), "<nil>", "made"},
	"output read back": {connected(func() error {
		out, err := os.OpenFile("/film.mp4", os.O_RDWR, 0)
		if err != nil {
			return err
		}
		if _, err := out.WriteString("made"); err != nil {
			return err
		}
		again, err := os.ReadFile("/film.mp4")
		return errors.Join(err, fmt.Errorf("read %s", again))
	}), "read made", "made"},
	"only output": {connected(func() error {
		data, err := os.ReadFile("/etc/passwd")
		return errors.Join(err, fmt.Errorf("read %q", data))
	}), `read ""`, ""},
	"output that is too long": {connected(func() error {
		return os.WriteFile("/film.mp4", make([]byte, maxOutput+1), 0o600)
	}), "file too large", strings.Repeat("\x00", maxOutput)},
}

// A program with an output gets that output in place of any file that it opens, and no other file.
func TestOutputIsInherited(t *testing.T) {
	for name, tc := range outputs {
		t.Run(name, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			path, err := os.Executable()
			must.Succeed(t, err)
			output, err := os.CreateTemp(t.TempDir(), "output")
			must.Succeed(t, err)
			defer func() { _ = output.Close() }()
			var out bytes.Buffer
			cmd := isolate.Self(t.Context(), "become", path, "act", name)
			cmd.Stdout, cmd.Stderr = &out, &out
			program, err := isolate.Start(cmd, becoming, output)
			must.Succeed(t, err)
			ends := accept(program, func(net.Conn) {})
			_ = program.Wait()
			ends.Wait()
			kept, err := io.ReadAll(output)
			if err != nil || !strings.Contains(out.String(), tc.want) || string(kept) != tc.kept {
				t.Errorf("got %q and %q, %v; want %q and %q", &out, kept, err, tc.want, tc.kept)
			}
		})
	}
}

func TestMissingProgram(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	cmd := isolate.Self(t.Context(), "become", filepath.Join(t.TempDir(), "none"))
	cmd.Stderr = &out
	program, err := isolate.Start(cmd, becoming, nil)
	must.Succeed(t, err)
	_ = program.Wait()
	if err := isolate.StartError(cmd.ProcessState, out.String()); err == nil || errors.Is(err, isolate.ErrNotIsolated) || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("got %v", err)
	}
}

// A process has no environment, and none of its parent's files.
func TestEnvironmentIsEmpty(t *testing.T) {
	t.Setenv("HERALD_TEST_SECRET", "hunter2")
	secret, err := os.Open("/etc/passwd")
	must.Succeed(t, err)
	defer func() { _ = secret.Close() }()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var out bytes.Buffer
	_, program := become(t, t.Context(), &out, "tell")
	err = program.Wait()
	if want := "environment [], files , group true, folder /<nil>"; err != nil || out.String() != want {
		t.Errorf("got %q, %v", &out, err)
	}
}

func printEnvironment() error {
	files := ""
	for f := range 64 {
		// The kernel's own files, which a Go program opens itself, have such names.
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f))
		if err == nil && f > 2 && !strings.HasPrefix(link, "anon_inode:") && !strings.HasPrefix(link, "/sys/") {
			files += fmt.Sprintf("%d %s ", f, link)
		}
	}
	folder, err := os.Getwd()
	group, failure := unix.Getpgid(0)
	fmt.Printf("environment %v, files %s, group %t, folder %s", os.Environ(), files, group == os.Getpid(), folder)
	return errors.Join(err, failure)
}

// When the context is done, the process is killed.
func TestContextKillsTheProcess(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, cancel := context.WithCancel(t.Context())
	started := writer(cancel)
	cmd, program := become(t, ctx, started, "wait")
	_ = program.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("got %s", cmd.ProcessState)
	}
}

// writer is a function that is called on each write.
type writer func()

func (w writer) Write(p []byte) (int, error) { w(); return len(p), nil }
