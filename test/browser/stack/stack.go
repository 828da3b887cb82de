// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stack gives tests a Herald as `make run` has it: the same program starts the same processes, in a folder of
// their own.
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
	"github.com/herald-social/herald/apiserver/web/session"
	"github.com/herald-social/herald/apiserver/web/signin"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/hack/local/processes"
)

const (
	// startLimit and stopLimit are how long the run may take; generous, for a busy machine.
	startLimit = 5 * time.Minute
	stopLimit  = time.Minute
	pollEvery  = 100 * time.Millisecond
	// linkLife is how long a one-time address is good: longer than any spec takes.
	linkLife = time.Hour
)

// Options are where things are.
type Options struct {
	// Checkout is the folder of the repository, whose bin/ holds the programs.
	Checkout string
	// Assets is the folder of etcd and kube-apiserver.
	Assets string
	// Dir takes the state of the run. Its path must be short: sockets lie in it.
	Dir string
	// Out gets what the run prints.
	Out io.Writer
}

// Stack is a Herald that runs. Its variables are those of .local/env.
type Stack struct {
	variables map[string]string
	options   Options
	command   *exec.Cmd
	ended     chan struct{}
	replicas  []*Replica
}

// Start starts everything, and returns when it is ready. After an error nothing is left running.
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

// Attach uses a run that somebody has started, whose variables are in the file: .local/env of a checkout.
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

// line is one of .local/env.
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

// Variable returns what the run tells of itself, such as HERALD_SITE_URL; "" if it does not.
func (s *Stack) Variable(name string) string { return s.variables[name] }

// Site is the address of Herald, and Sandbox that of the simulated platforms, without a slash at the end.
func (s *Stack) Site() string { return s.variables["HERALD_SITE_URL"] }

// Sandbox is the address of the simulated platforms.
func (s *Stack) Sandbox() string { return s.variables["HERALD_SANDBOX_URL"] }

// SignInLink makes one more one-time address, as `herald signin-link` does. That of HERALD_SIGNIN_URL is good once.
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

// Stop ends everything that Start and Replica have started.
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

// awaitEnd closes the channel when a process has ended, however it has: its exit code tells nothing that its output does not.
func awaitEnd(command *exec.Cmd, ended chan<- struct{}) {
	_ = command.Wait()
	close(ended)
}

// end asks a process to end, and kills it if it does not.
func end(command *exec.Cmd, ended <-chan struct{}) error {
	// It may have ended already.
	_ = command.Process.Signal(syscall.SIGTERM)
	select {
	case <-ended:
		return nil
	case <-time.After(stopLimit):
		return errors.Join(fmt.Errorf("%s does not end, and is killed", command.Path), command.Process.Kill())
	}
}
