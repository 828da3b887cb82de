// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package crash_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
)

// server is a control plane process that is killed and restarted with the same port and data.
type server struct {
	name string
	argv []string
	now  *process
	// pid is the process started by envtest.
	pid int
}

// adopt finds a process started by envtest.
func adopt(name string) *server {
	entries, err := filepath.Glob("/proc/[0-9]*/stat")
	Expect(err).NotTo(HaveOccurred())
	for _, entry := range entries {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(entry)))
		Expect(err).NotTo(HaveOccurred())
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		argv := strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00")
		if err != nil || filepath.Base(argv[0]) != name {
			continue
		}
		stat, err := os.ReadFile(entry)
		// The name may contain spaces; the state and the parent follow it.
		if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); err == nil && fields[1] == strconv.Itoa(os.Getpid()) {
			return &server{name: name, argv: argv, pid: pid}
		}
	}
	Fail("no process has the id " + name + " of this test")
	return nil
}

// restart kills the program and starts it again.
func (s *server) restart(ctx context.Context) {
	s.kill()
	s.again(ctx)
}

// again restarts the killed program and waits for the API.
func (s *server) again(ctx context.Context) {
	s.launch()
	Eventually(func() error { return k8s.List(ctx, &corev1.NamespaceList{}) }).Should(Succeed(), "the API answers again")
}

// launch starts the killed program.
func (s *server) launch() {
	log, err := os.OpenFile(filepath.Join(folder, s.name+".log"), os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	Expect(err).NotTo(HaveOccurred())
	s.now = launch(log, func() *exec.Cmd { return exec.Command(s.argv[0], s.argv[1:]...) })
}

// kill ends the program like kill -9.
func (s *server) kill() {
	if s.now != nil {
		s.now.kill()
		return
	}
	Expect(syscall.Kill(s.pid, syscall.SIGKILL)).To(Succeed())
	Eventually(func() error { return syscall.Kill(s.pid, 0) }).ShouldNot(Succeed(), "%s is gone", s.name)
}

// end kills the program unless it has exited. If etcd exits first, kube-apiserver does not stop within envtest's
// timeout.
func (s *server) end() {
	if s.now == nil && syscall.Kill(s.pid, 0) != nil {
		return
	}
	s.kill()
}
