// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/processes"
)

// ControllerManager also starts a kube-controller-manager: it empties deleted namespaces, garbage-collects the
// dependents of deleted objects, and counts quotas. The program comes from KUBEBUILDER_ASSETS or, failing that, from
// the checkout's bin/. The arguments are appended to processes.ControllerManagerArgs and may select other controllers.
func ControllerManager(more ...string) Option {
	return func(e *Environment) { e.controllers = &controllerManager{more: more} }
}

// The startup timeout, which allows for a busy machine, and the interval of the checks.
const (
	controllersStart = 2 * time.Minute
	controllersPoll  = 50 * time.Millisecond
	controllersStop  = 10 * time.Second
)

// controllerManager is a running kube-controller-manager.
type controllerManager struct {
	more    []string
	folder  string
	command *exec.Cmd
	ended   chan struct{}
}

// start starts the program as an administrator of the API server, and waits until the controllers are running.
func (c *controllerManager) start(e *Environment, assets string) (err error) {
	program := filepath.Join(assets, processes.KubeControllerManager)
	if _, err := os.Stat(program); err != nil {
		program = filepath.Join(Root(), "bin", processes.KubeControllerManager)
	}
	if _, err := os.Stat(program); err != nil {
		return fmt.Errorf("neither %s nor bin/ has a kube-controller-manager; `make controlplane` builds it: %w", assets, err)
	}
	if c.folder, err = os.MkdirTemp("", "herald-controllers-"); err != nil {
		return err
	}
	user, err := e.env.AddUser(envtest.User{Name: "system:kube-controller-manager", Groups: []string{"system:masters"}}, nil)
	if err != nil {
		return fmt.Errorf("cannot add the user of kube-controller-manager: %w", err)
	}
	kubeconfig, err := user.KubeConfig()
	if err != nil {
		return err
	}
	file := filepath.Join(c.folder, "kubeconfig")
	if err := os.WriteFile(file, kubeconfig, 0o600); err != nil {
		return err
	}
	address, err := ports.Free()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return err
	}
	log, err := os.Create(c.log())
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // the program has its own descriptor
	c.command = exec.Command(program, processes.ControllerManagerArgs(file, number, append([]string{"--cert-dir=" + c.folder}, c.more...)...)...)
	c.command.Stdout, c.command.Stderr = log, log
	c.command.SysProcAttr = attributes()
	if err := c.command.Start(); err != nil {
		return fmt.Errorf("cannot start kube-controller-manager: %w", err)
	}
	c.ended = make(chan struct{})
	go func() {
		defer close(c.ended)
		_ = c.command.Wait() // its log explains its exit
	}()
	return c.waitReady("https://" + address + "/healthz")
}

func (c *controllerManager) log() string { return filepath.Join(c.folder, "log") }

// waitReady polls until the program responds. Its certificate is self-signed.
func (c *controllerManager) waitReady(address string) error {
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS12},
	}}
	err := wait.PollUntilContextTimeout(context.Background(), controllersPoll, controllersStart, true, func(ctx context.Context) (bool, error) {
		select {
		case <-c.ended:
			return false, errors.New("it ended by itself")
		default:
		}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return false, err
		}
		answer, err := client.Do(request)
		if err != nil {
			return false, nil //nolint:nilerr // not listening yet
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	if err != nil {
		text, _ := os.ReadFile(c.log())
		return fmt.Errorf("kube-controller-manager does not start: %w; the end of what it wrote:\n%s", err, text[max(len(text)-2000, 0):])
	}
	return nil
}

// stop stops the program and removes its files.
func (c *controllerManager) stop() error {
	if c.ended != nil {
		_ = c.command.Process.Signal(syscall.SIGTERM) // it may already have ended
		select {
		case <-c.ended:
		case <-time.After(controllersStop):
			_ = c.command.Process.Kill()
			<-c.ended
		}
	}
	if c.folder == "" {
		return nil
	}
	return os.RemoveAll(c.folder)
}
