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

// process is a child of the test.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	// flags are what a manager was started with beside what all are, of is the
	// version that it runs.
	flags []string
	of    *version
}

// version is one of Herald.
type version struct {
	name string
	// program and configuration are the manager's, in the test's folder unless
	// they are absolute.
	program, configuration string
	// next is what is started in the place of a manager of this version.
	next *version
	// starts counts its managers.
	starts int
}

// present is the version in this checkout. Another one takes turns with it in an
// upgrade alone.
var present = func() *version {
	v := &version{name: "this version", program: "herald", configuration: "manager.yaml"}
	v.next = v
	return v
}()

// inFolder is the path of what is in the test's folder, or an absolute path.
func inFolder(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(folder, path)
}

// start runs a program that the suite has built, with its log in the test's folder.
func start(program, name string, environment []string, args ...string) *process {
	log, err := os.OpenFile(filepath.Join(folder, name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	Expect(err).NotTo(HaveOccurred())
	cmd := exec.Command(inFolder(program), args...)
	cmd.Env = append(os.Environ(), environment...)
	return launch(cmd, log)
}

// launch starts a program that dies with the test.
func launch(cmd *exec.Cmd, log *os.File) *process {
	p := &process{cmd: cmd, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	Expect(p.cmd.Start()).To(Succeed())
	go func() {
		defer close(p.done)
		_ = p.cmd.Wait()
		_ = log.Close()
	}()
	return p
}

// alone lets a manager work without asking who leads: two of them work at once.
const alone = "--leader-elect=false"

// startManager starts a manager. The leader's name is stable, so that the next
// one works at once; what keeps them apart is the claim.
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

// again starts a manager in the place of one that was killed.
func (p *process) again() *process { return p.of.next.start(p.flags...) }

// beside starts a manager that works at the same time and asks nobody who leads.
func (p *process) beside() *process { return p.of.next.start(alone) }

// kill ends a process as kill -9 does and waits until it is gone.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// hold stops a process, and release lets it go on as if no time had passed.
func (p *process) hold()    { _ = p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *process) release() { _ = p.cmd.Process.Signal(syscall.SIGCONT) }

// revive starts another manager if this one has ended itself, as it does when
// it cannot renew its lease.
func revive(m *process) *process {
	select {
	case <-m.done:
		return m.again()
	default:
		return m
	}
}

// hook is told by a manager that it has reached a point of the protocol, and
// makes it wait while the test acts.
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

// once arranges that act runs when a manager reaches the point for the first
// time from now; done is closed after it.
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

// cancel takes back what once arranged. It reports false if that has begun.
func (h *hook) cancel() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	waiting := h.act != nil
	h.act = nil
	return waiting
}
