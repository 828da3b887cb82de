// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package envtest starts an API server with Herald's CRDs for suites. It is for tests only.
package envtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	kruntime "k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/test/checkout"
)

// Environment is a running API server.
type Environment struct {
	// Config is the client configuration of an administrator, without client-side rate limits.
	Config *rest.Config
	// Client is an uncached client with Config.
	Client client.Client
	// Scheme contains the kinds of Kubernetes and Herald.
	Scheme *kruntime.Scheme

	env         *envtest.Environment
	controllers *controllerManager
	isEmpty     bool
	temp        string
}

// startLimit is the timeout for starting etcd, and for starting kube-apiserver.
const startLimit = 3 * time.Minute

// Option configures an Environment.
type Option func(*Environment)

// Empty starts a cluster without Herald's CRDs. InstallKinds installs them, as resources that are new to every
// component.
func Empty() Option { return func(e *Environment) { e.isEmpty = true } }

// Start starts etcd and kube-apiserver from KUBEBUILDER_ASSETS, and installs the CRDs in config/crd/bases unless Empty
// is set. It also accepts an etcd program named "server", after its module.
func Start(options ...Option) (*Environment, error) {
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		return nil, errors.New("KUBEBUILDER_ASSETS is not set: it must name the folder with etcd and kube-apiserver; `make test` builds them and sets it")
	}
	e := &Environment{Scheme: kruntime.NewScheme()}
	for _, option := range options {
		option(e)
	}
	if err := e.start(assets); err != nil {
		return nil, errors.Join(err, e.Stop())
	}
	return e, nil
}

func (e *Environment) start(assets string) error {
	if err := errors.Join(clientgoscheme.AddToScheme(e.Scheme), v1alpha1.AddToScheme(e.Scheme)); err != nil {
		return err
	}
	folder, err := e.binaries(assets)
	if err != nil {
		return err
	}
	e.env = &envtest.Environment{
		Scheme:                e.Scheme,
		BinaryAssetsDirectory: folder,
		// A busy machine takes a minute instead of a second.
		ControlPlaneStartTimeout: startLimit,
	}
	if !e.isEmpty {
		e.env.CRDDirectoryPaths, e.env.ErrorIfCRDPathMissing = kinds(), true
	}
	if e.Config, err = e.env.Start(); err != nil {
		return fmt.Errorf("cannot start the API server from %s: %w", assets, err)
	}
	e.Config.QPS = -1
	if e.Client, err = client.New(e.Config, client.Options{Scheme: e.Scheme}); err != nil || e.controllers == nil {
		return err
	}
	// The controller manager discovers existing resources when it starts, and later ones only after 30 seconds.
	return e.controllers.start(e, assets)
}

// kinds returns the directories with Herald's CRDs.
func kinds() []string { return []string{filepath.Join(Root(), "config", "crd", "bases")} }

// InstallKinds installs Herald's CRDs in an Empty cluster, and waits until the API server serves them.
func (e *Environment) InstallKinds() error {
	if _, err := envtest.InstallCRDs(e.Config, envtest.CRDInstallOptions{Paths: kinds(), ErrorIfPathMissing: true}); err != nil {
		return fmt.Errorf("cannot install the CRDs of config/crd/bases: %w", err)
	}
	return nil
}

// Kubeconfig returns a kubeconfig for a user with the permissions that RBAC grants to the name and the groups.
// namespace is the default namespace.
func (e *Environment) Kubeconfig(user, namespace string, groups ...string) ([]byte, error) {
	added, err := e.env.AddUser(envtest.User{Name: user, Groups: groups}, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot add the user %s: %w", user, err)
	}
	data, err := added.KubeConfig()
	if err != nil {
		return nil, err
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, err
	}
	config.Contexts[config.CurrentContext].Namespace = namespace
	return clientcmd.Write(*config)
}

// Stop stops the processes that Start started.
func (e *Environment) Stop() error {
	var err error
	if e.controllers != nil {
		err = e.controllers.stop()
	}
	if e.env != nil {
		err = errors.Join(err, e.env.Stop())
	}
	if e.temp != "" {
		err = errors.Join(err, os.RemoveAll(e.temp))
	}
	return err
}

// binaries returns a directory that contains both programs under the names that envtest expects.
func (e *Environment) binaries(assets string) (string, error) {
	if _, err := os.Stat(filepath.Join(assets, "kube-apiserver")); err != nil {
		return "", fmt.Errorf("KUBEBUILDER_ASSETS=%s has no kube-apiserver: %w", assets, err)
	}
	if _, err := os.Stat(filepath.Join(assets, "etcd")); err == nil {
		return assets, nil
	}
	if _, err := os.Stat(filepath.Join(assets, "server")); err != nil {
		return "", fmt.Errorf("KUBEBUILDER_ASSETS=%s has no etcd: %w", assets, err)
	}
	temp, err := os.MkdirTemp("", "herald-envtest-")
	if err != nil {
		return "", err
	}
	e.temp = temp
	for name, source := range map[string]string{"etcd": "server", "kube-apiserver": "kube-apiserver"} {
		absolute, err := filepath.Abs(filepath.Join(assets, source))
		if err != nil {
			return "", err
		}
		if err := os.Symlink(absolute, filepath.Join(temp, name)); err != nil {
			return "", err
		}
	}
	return temp, nil
}

// Root returns the checkout's root.
func Root() string { return checkout.Root() }
