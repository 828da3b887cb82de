// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"

	. "github.com/onsi/gomega"
)

// process is a child process of the test.
type process struct {
	command func() *exec.Cmd
	log     *os.File
	// began is the size of the log when the program started.
	began int64

	mu  sync.Mutex
	cmd *exec.Cmd
	// stopped means that the test stopped the process, so that it is not restarted. restarts counts its restarts.
	stopped  bool
	restarts int
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

// start runs one of the suite's programs, with its log in the test's directory.
func start(program, name string, environment []string, args ...string) *process {
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	Expect(err).NotTo(HaveOccurred())
	return launch(log, func() *exec.Cmd {
		cmd := exec.Command(inFolder(program), args...)
		cmd.Env = append(os.Environ(), environment...)
		return cmd
	})
}

// launch starts a program that ends with the test. A manager that exits because it could not renew its lease is
// restarted, as in Kubernetes. Any other exit that the test did not cause fails the suite at its end.
func launch(log *os.File, command func() *exec.Cmd) *process {
	p := &process{command: command, log: log, done: make(chan struct{})}
	Expect(p.run()).To(Succeed())
	go func() {
		defer close(p.done)
		for p.continues(p.wait()) {
			continue
		}
		_ = log.Close()
	}()
	return p
}

// run starts the program.
func (p *process) run() error {
	cmd := p.command()
	cmd.Stdout, cmd.Stderr = p.log, p.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	end, err := p.log.Seek(0, io.SeekEnd)
	if err == nil {
		err = cmd.Start()
	}
	if err == nil {
		p.cmd, p.began = cmd, end
	}
	return err
}

// wait waits until the program has exited, and returns what it has logged since its start.
func (p *process) wait() string {
	_ = p.cmd.Wait()
	text, _ := io.ReadAll(io.NewSectionReader(p.log, p.began, math.MaxInt64-p.began))
	return string(text)
}

// leaseLost matches the error with which a manager of this or an earlier version exits if it cannot renew its lease.
var leaseLost = regexp.MustCompile(`the lease could not be renewed in time|leader election lost`)

// continues restarts the program if it lost its lease. logged is its log.
func (p *process) continues(logged string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return false
	}
	err := errors.New("it exited")
	if leaseLost.MatchString(logged) {
		p.restarts++
		err = p.run()
	}
	if err != nil {
		unexpected.add(fmt.Sprintf("%s: %v: %s", p.cmd.Path, err, logged[max(0, len(logged)-maxPrintedLog):]))
	}
	return err == nil
}

// exits collects the programs that exited although no test stopped them.
type exits struct {
	mu  sync.Mutex
	all []string
}

var unexpected exits

func (e *exits) add(exit string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, exit)
}

func (e *exits) list() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
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

// timesRestarted returns how often the process was restarted.
func (p *process) timesRestarted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

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
