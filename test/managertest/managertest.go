// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package managertest runs `herald manager` for suites, as a separate process with the permissions in config/rbac. It
// is for tests only.
package managertest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sigs.k8s.io/yaml"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/envtest"
	"github.com/herald-social/herald/test/logtest"
)

// TB contains the methods that the package uses of *testing.T and of Ginkgo's GinkgoT().
type TB interface {
	Helper()
	TempDir() string
	Cleanup(f func())
	Fatalf(format string, args ...any)
	Failed() bool
	Logf(format string, args ...any)
}

// The installation's namespace, and the two processes' service accounts.
const (
	Namespace        = "herald-system"
	ManagerAccount   = "system:serviceaccount:" + Namespace + ":herald-manager"
	APIServerAccount = "system:serviceaccount:" + Namespace + ":herald-apiserver"
	// ReleaseAccount has only the permissions that the chart's hook grants.
	ReleaseAccount = "system:serviceaccount:" + Namespace + ":herald-release"
)

// Installation contains the dependencies of the processes: the API server, the program, and the external services.
type Installation struct {
	Env *envtest.Environment
	// Program is the path of the herald binary.
	Program string
	// SandboxURL is the address of the simulated platforms.
	SandboxURL string
	// Store is the media store.
	Store store.Config
}

// Build builds herald into a test directory and returns the binary's path.
func Build(t TB) string {
	t.Helper()
	program := filepath.Join(t.TempDir(), "herald")
	build := exec.Command("go", "build", "-buildvcs=false", "-o", program, "./cmd/herald")
	build.Dir = envtest.Root()
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("cannot build herald: %v\n%s", err, out)
	}
	return program
}

// Config returns a manager configuration with free loopback ports. The lease is short, so the next manager does not
// wait long after a kill.
func (i *Installation) Config(t TB) *configv1alpha1.ManagerConfiguration {
	t.Helper()
	c := configv1alpha1.DefaultManager()
	c.Common = i.common(t)
	c.LeaderElection.LeaseDuration.Duration, c.LeaderElection.RenewDeadline.Duration = 15*time.Second, 10*time.Second
	c.LeaderElection.RetryPeriod.Duration = time.Second
	c.Webhook.BindAddress, c.Webhook.Hosts = ports.ForTest(t), []string{"127.0.0.1"}
	return c
}

// common returns the configuration shared by both processes.
func (i *Installation) common(t TB) configv1alpha1.Common {
	t.Helper()
	folder := t.TempDir()
	key, secret := filepath.Join(folder, "store-key.json"), filepath.Join(folder, "client-secret")
	writeFile(t, key, fmt.Appendf(nil, `{"accessKey":%q,"secretKey":%q}`, i.Store.AccessKey, i.Store.SecretKey))
	writeFile(t, secret, []byte("a sandbox takes any\n"))
	c := configv1alpha1.Common{
		Health:  configv1alpha1.Endpoint{BindAddress: ports.ForTest(t)},
		Metrics: configv1alpha1.Metrics{Endpoint: configv1alpha1.Endpoint{BindAddress: ports.ForTest(t)}, Plain: true},
	}
	if i.Store.Endpoint != "" {
		c.Media = &configv1alpha1.Media{
			Endpoint: "http://" + i.Store.Endpoint, Region: i.Store.Region, Bucket: i.Store.Bucket, PathStyle: true, CredentialsFile: key,
		}
	}
	c.Platforms.Sandbox.URL = i.SandboxURL
	for _, section := range c.Platforms.Sections() {
		*section = &configv1alpha1.Platform{ClientID: "test", ClientSecretFile: secret}
		(*section).ListingLag.Duration = time.Second
	}
	return c
}

// Process is a running Herald process.
type Process struct {
	command *exec.Cmd
	done    chan struct{}
	err     error
	log     *logtest.Log
}

// Manager starts a manager with a configuration. It is stopped when the test ends; if the test has failed, its log is
// printed.
func (i *Installation) Manager(t TB, c *configv1alpha1.ManagerConfiguration) *Process {
	t.Helper()
	return i.start(t, ManagerAccount, c, "manager", "--leader-identity", "test")
}

// APIServerConfig returns an apiserver's configuration with free loopback ports.
func (i *Installation) APIServerConfig(t TB) *configv1alpha1.APIServerConfiguration {
	t.Helper()
	c := configv1alpha1.DefaultAPIServer()
	c.Common, c.BindAddress = i.common(t), ports.ForTest(t)
	return c
}

// APIServer starts an apiserver with a configuration, as Manager does.
func (i *Installation) APIServer(t TB, c *configv1alpha1.APIServerConfiguration) *Process {
	t.Helper()
	return i.start(t, APIServerAccount, c, "apiserver")
}

// Release starts `herald release` with additional arguments. It exits when it is done.
func (i *Installation) Release(t TB, args ...string) *Process {
	t.Helper()
	return i.launch(t, ReleaseAccount, append([]string{"release"}, args...)...)
}

func (i *Installation) start(t TB, account string, config any, args ...string) *Process {
	t.Helper()
	text, err := yaml.Marshal(config)
	if err != nil {
		t.Fatalf("%v", err)
	}
	configFile := filepath.Join(t.TempDir(), "config.yaml")
	writeFile(t, configFile, text)
	return i.launch(t, account, append(args, "--config", configFile)...)
}

func (i *Installation) launch(t TB, account string, args ...string) *Process {
	t.Helper()
	kubeconfig, err := i.Env.Kubeconfig(account, Namespace)
	if err != nil {
		t.Fatalf("%v", err)
	}
	kubeconfigFile := filepath.Join(t.TempDir(), "kubeconfig")
	writeFile(t, kubeconfigFile, kubeconfig)
	p := &Process{done: make(chan struct{}), log: &logtest.Log{}}
	p.command = exec.Command(i.Program, append(args, "--kubeconfig", kubeconfigFile)...)
	p.command.Stdout, p.command.Stderr = p.log, p.log
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		t.Fatalf("cannot start herald: %v", err)
	}
	go func() {
		defer close(p.done)
		p.err = p.command.Wait()
	}()
	t.Cleanup(func() {
		p.Stop()
		if t.Failed() {
			t.Logf("herald %s:\n%s", args[0], p.Log())
		}
	})
	return p
}

// Stop sends SIGTERM and waits until the process has exited.
func (p *Process) Stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM) // it may already have ended
	<-p.done
}

// Kill kills the process and waits until it has exited.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it may already have ended
	<-p.done
}

// Done is closed when the process has exited.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode waits until the process has exited and returns its exit code, which is 0 after Stop.
func (p *Process) ExitCode() int {
	<-p.done
	if exit, ok := errors.AsType[*exec.ExitError](p.err); ok {
		return exit.ExitCode()
	}
	return 0
}

// Log returns the process's log so far.
func (p *Process) Log() string { return p.log.String() }

func writeFile(t TB, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatalf("%v", err)
	}
}
