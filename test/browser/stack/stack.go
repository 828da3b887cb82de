// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stack runs Herald for tests like `make run`: the same program starts the same processes, in a separate directory.
package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/clock"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/apiserver/kube"
	"github.com/herald-social/herald/apiserver/session"
	"github.com/herald-social/herald/apiserver/signin"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/processes"
)

const (
	// startLimit and stopLimit are the timeouts for starting and stopping the run. They allow for a busy machine.
	startLimit = 5 * time.Minute
	stopLimit  = time.Minute
	pollEvery  = 100 * time.Millisecond
	// linkLife is how long a one-time link is valid: longer than any spec takes.
	linkLife = time.Hour
)

// Options are the locations of a run's files and output.
type Options struct {
	// Checkout is the repository's folder, whose bin/ contains the programs.
	Checkout string
	// Assets is the folder with etcd and kube-apiserver.
	Assets string
	// Dir is the folder for the run's state. Its path must be short, because it contains sockets.
	Dir string
	// Out receives the run's output.
	Out io.Writer
}

// Stack is a running Herald. Its variables come from .local/env.
type Stack struct {
	variables map[string]string
	options   Options
	command   *exec.Cmd
	ended     chan struct{}
	replicas  []*Replica
}

// Start starts all processes and returns when they are ready. After an error, no process is left running.
func Start(ctx context.Context, options Options) (*Stack, error) {
	program := filepath.Join(options.Checkout, "bin", "local")
	if _, err := os.Stat(program); err != nil {
		return nil, fmt.Errorf("%w\nrun `make test-browser`, which builds it", err)
	}
	for _, name := range []string{"bin", "config"} {
		if err := os.Symlink(filepath.Join(options.Checkout, name), filepath.Join(options.Dir, name)); err != nil {
			return nil, err
		}
	}
	address, err := ports.Free()
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	s := &Stack{options: options, ended: make(chan struct{})}
	s.command = exec.Command(program, "run")
	s.command.Dir, s.command.Stdout, s.command.Stderr = options.Dir, options.Out, options.Out
	s.command.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+options.Assets, "HERALD_PORT="+port)
	if err := s.command.Start(); err != nil {
		return nil, err
	}
	go awaitEnd(s.command, s.ended)
	if err := s.waitReady(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Attach uses a run that was started elsewhere; file is .local/env of its checkout.
func Attach(file string) (*Stack, error) {
	variables, err := readEnv(file)
	return &Stack{variables: variables}, err
}

func (s *Stack) waitReady(ctx context.Context) error {
	file := filepath.Join(s.options.Dir, ".local", "env")
	err := wait.PollUntilContextTimeout(ctx, pollEvery, startLimit, true, func(context.Context) (bool, error) {
		select {
		case <-s.ended:
			return false, errors.New("the run has ended by itself; see what it printed")
		default:
		}
		variables, err := readEnv(file)
		s.variables = variables
		return err == nil, nil
	})
	if err != nil {
		return fmt.Errorf("wait for Herald to be ready: %w", err)
	}
	return nil
}

// line matches a line of .local/env.
var line = regexp.MustCompile(`(?m)^export (\w+)='((?:[^']|'\\'')*)'$`)

func readEnv(file string) (map[string]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	variables := map[string]string{}
	for _, found := range line.FindAllStringSubmatch(string(data), -1) {
		variables[found[1]] = strings.ReplaceAll(found[2], `'\''`, "'")
	}
	return variables, nil
}

// Variable returns a variable of the run, such as HERALD_SITE_URL, or "" if there is none.
func (s *Stack) Variable(name string) string { return s.variables[name] }

// Site returns Herald's address without a trailing slash.
func (s *Stack) Site() string { return s.variables["HERALD_SITE_URL"] }

// Sandbox returns the address of the simulated platforms.
func (s *Stack) Sandbox() string { return s.variables["HERALD_SANDBOX_URL"] }

// SignInLink creates a new one-time link, as `herald signin-link` does. The link in HERALD_SIGNIN_URL works only once.
func (s *Stack) SignInLink(ctx context.Context) (string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.Variable("KUBECONFIG"))
	if err != nil {
		return "", err
	}
	secrets, err := kube.NewSecrets(config, "herald-browser-test", processes.SystemNamespace)
	if err != nil {
		return "", err
	}
	token, err := session.AddLink(ctx, secrets, configv1alpha1.DefaultSignInSecret, clock.RealClock{}, linkLife)
	return s.Site() + signin.LinkPath + token, err
}

// Stop stops the processes started by Start and Replica.
func (s *Stack) Stop() error {
	var err error
	for _, replica := range s.replicas {
		err = errors.Join(err, replica.stop())
	}
	if s.command == nil {
		return err
	}
	return errors.Join(err, end(s.command, s.ended))
}

// awaitEnd closes the channel when a process has exited. The output already shows its exit code.
func awaitEnd(command *exec.Cmd, ended chan<- struct{}) {
	_ = command.Wait()
	close(ended)
}

// end sends SIGTERM to a process, and kills it after a timeout.
func end(command *exec.Cmd, ended <-chan struct{}) error {
	// The process may already have exited.
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return nil
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("%s does not end, and is killed", command.Path), command.Process.Kill())
	}
}
