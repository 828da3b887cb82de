// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	. "github.com/onsi/gomega"
)

// process is a child process of the test.
type process struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	// stopped means that the test stopped the process, so that it is not restarted.
	stopped bool
	// done is closed when the process has exited and is not restarted.
	done chan struct{}
	// flags are the manager's additional flags; of is its version.
	flags []string
	of    *version
}

// version is a version of Herald.
type version struct {
	name string
	// program and configuration are the manager's files, relative to the test's directory or absolute.
	program, configuration string
	// next is the version that replaces a killed manager of this one.
	next *version
	// starts counts the managers of this version.
	starts int
}

// present is this checkout's version. In an upgrade, it alternates with another version.
var present = configured("this version", "manager.yaml")

// configured returns this checkout's version with a configuration file.
func configured(name, file string) *version {
	v := &version{name: name, program: "herald", configuration: file}
	v.next = v
	return v
}

// inFolder resolves a path relative to the test's directory. Absolute paths are unchanged.
func inFolder(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// start runs one of the suite's programs, with its log in the test's directory. A program that exits before the test
// stops it is restarted, as in Kubernetes: on a busy machine, a manager cannot always renew its lease.
func start(program, name string, environment []string, args ...string) *process {
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	return launch(log, true, func() *exec.Cmd {
		cmd := exec.Command(inFolder(program), args...)
		cmd.Env = append(os.Environ(), environment...)
		return cmd
	})
}

// launch starts a program that ends with the test.
func launch(log *os.File, restarts bool, command func() *exec.Cmd) *process {
	run := func() (*exec.Cmd, error) {
		cmd := command()
		cmd.Stdout, cmd.Stderr = log, log
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		return cmd, cmd.Start()
	}
	cmd, err := run()
	Expect(err).NotTo(HaveOccurred())
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer log.Close()
		for {
			_ = cmd.Wait()
			if !restarts || !p.restart(func() (*exec.Cmd, error) { cmd, err = run(); return cmd, err }) {
				return
			}
		}
	}()
	return p
}

// restart runs the program again, unless the test stopped it.
func (p *process) restart(run func() (*exec.Cmd, error)) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	var err error
	p.cmd, err = run()
	return err == nil
}

// alone disables leader election, which lets two managers work concurrently.
const alone = "--leader-elect=false"

// startManager starts a manager. The leader's identity never changes, so the next manager can work immediately; claims
// prevent conflicts between the two.
func startManager(flags ...string) *process { return present.start(flags...) }

func (v *version) start(flags ...string) *process {
	args := append([]string{
		"manager", "--kubeconfig", inFolder("kubeconfig"), "--config", inFolder(v.configuration), "--leader-identity", "crash",
	}, flags...)
	p := start(v.program, "manager", []string{"HERALD_CRASH_HOOK=" + points.url()}, args...)
	p.flags, p.of = flags, v
	v.starts++
	return p
}

// again starts a manager in place of a killed one.
func (p *process) again() *process { return p.of.next.start(p.flags...) }

// beside starts a concurrent manager without leader election.
func (p *process) beside() *process { return p.of.next.start(alone) }

// kill kills a process as kill -9 does, and waits for it to exit.
func (p *process) kill() {
	p.stop(syscall.SIGKILL)
	<-p.done
}

// terminate asks a process to stop, as a rollout does.
func (p *process) terminate() { p.stop(syscall.SIGTERM) }

func (p *process) stop(with syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stopped = true
	_ = p.cmd.Process.Signal(with)
}

// pause pauses a process; release resumes it as if no time had passed.
func (p *process) pause()   { p.signal(syscall.SIGSTOP) }
func (p *process) release() { p.signal(syscall.SIGCONT) }

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.cmd.Process.Signal(s)
}

// hook receives a request when a manager reaches a point of the protocol, and holds it while the test acts.
type hook struct {
	server *httptest.Server
	mu     sync.Mutex
	point  string
	act    func()
}

func newHook() *hook {
	h := &hook{}
	h.server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		act := h.act
		if act == nil || r.URL.Path != "/"+h.point {
			act = func() {}
		} else {
			h.act = nil
		}
		h.mu.Unlock()
		act()
	}))
	return h
}

func (h *hook) url() string { return h.server.URL }
func (h *hook) close()      { h.server.Close() }

// once runs act when a manager next reaches the point, and closes done afterwards.
func (h *hook) once(point string, act func()) (done chan struct{}) {
	done = make(chan struct{})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.point, h.act = point, func() {
		defer close(done)
		act()
	}
	return done
}

// cancel undoes once. It returns false if act has started.
func (h *hook) cancel() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := h.act != nil
	h.act = nil
	return waiting
}
