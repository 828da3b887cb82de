// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/herald-social/herald/hack/local/builder"
)

// programs are the paths of what a run starts.
type programs struct {
	etcd, kubeAPIServer, store, sandbox, herald string
}

// build builds everything that a run needs.
func (a *app) build(ctx context.Context) error {
	if _, err := a.buildServers(ctx); err != nil {
		return err
	}
	return a.buildHerald(ctx)
}

// buildServers builds those of etcd, kube-apiserver and the store that are missing or not up to date.
func (a *app) buildServers(ctx context.Context) (programs, error) {
	p := programs{
		etcd:          a.workspace.Bin("etcd"),
		kubeAPIServer: a.workspace.Bin(kubeAPIServer),
		store:         a.workspace.Bin("herald-store"),
		sandbox:       a.workspace.Bin("herald-sandbox"),
		herald:        a.workspace.Bin("herald"),
	}
	wanted := []builder.Program{a.storeProgram()}
	if a.assets != "" {
		var err error
		if p.etcd, p.kubeAPIServer, err = fromAssets(a.assets); err != nil {
			return p, err
		}
	} else {
		controlPlane, err := a.controlPlane()
		if err != nil {
			return p, err
		}
		wanted = append(controlPlane, wanted...)
	}
	return p, a.buildMissing(ctx, wanted)
}

func (a *app) buildMissing(ctx context.Context, wanted []builder.Program) error {
	if err := builder.Missing("go", "to build Herald", "https://go.dev/dl/"); err != nil {
		return err
	}
	b := builder.New(a.workspace.Path("bin"), a.spawner, a.steps.Sayf)
	lock, err := b.Lock(ctx)
	if err != nil {
		return err
	}
	for _, program := range wanted {
		if err = a.buildUnlessCurrent(ctx, b, program); err != nil {
			break
		}
	}
	return errors.Join(err, lock.Release())
}

func (a *app) buildUnlessCurrent(ctx context.Context, b *builder.Builder, program builder.Program) error {
	current, err := b.Current(ctx, program)
	if err != nil || current {
		return err
	}
	if err := builder.Missing("git", "to fetch Go modules that the module proxy does not have", "https://git-scm.com/downloads"); err != nil {
		return err
	}
	if program.Name == kubeAPIServer {
		a.steps.Sayf("  building kube-apiserver takes about five minutes on two cores, and is done once")
	}
	return a.steps.Do("build "+program.Name, func() error { return b.Build(ctx, program) })
}

// fromAssets takes the control plane from a folder, as the test suites do.
func fromAssets(dir string) (etcd, kube string, err error) {
	etcd, kube = filepath.Join(dir, "etcd"), filepath.Join(dir, kubeAPIServer)
	for _, path := range []string{etcd, kube} {
		info, err := os.Stat(path)
		if err == nil && (info.IsDir() || info.Mode()&0o111 == 0) {
			err = errors.New("it is not a program")
		}
		if err != nil {
			return "", "", fmt.Errorf("KUBEBUILDER_ASSETS=%s has no usable %s: %w\nput it there, or unset KUBEBUILDER_ASSETS to have it built",
				dir, filepath.Base(path), err)
		}
	}
	return etcd, kube, nil
}

// controlPlane is built from the modules that hack/controlplane pins. A kube-apiserver without a version in it calls
// itself v0.0.0, which kubectl and Helm refuse.
func (a *app) controlPlane() ([]builder.Program, error) {
	dir := a.workspace.Path("hack", "controlplane")
	version, err := pinnedVersion(filepath.Join(dir, "go.mod"), "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(strings.TrimPrefix(version, "v"), ".", 3)
	if len(parts) != 3 {
		return nil, fmt.Errorf("hack/controlplane/go.mod: %s is not a version of Kubernetes", version)
	}
	const variable = "-X k8s.io/component-base/version."
	flags := fmt.Sprintf("%[1]sgitVersion=%[2]s %[1]sgitMajor=%[3]s %[1]sgitMinor=%[4]s", variable, version, parts[0], parts[1])
	return []builder.Program{
		{Name: "etcd", Dir: dir, Package: "go.etcd.io/etcd/server/v3"},
		{Name: kubeAPIServer, Dir: dir, Package: "k8s.io/kubernetes/cmd/kube-apiserver", LDFlags: flags},
	}, nil
}

func (a *app) storeProgram() builder.Program {
	return builder.Program{Name: "herald-store", Dir: a.workspace.Path("hack", "store"), Package: ".", Inputs: []string{"main.go"}}
}

// buildHerald builds bin/herald and bin/herald-sandbox as `make build` does, so that neither undoes the work of the other.
func (a *app) buildHerald(ctx context.Context) error {
	b := builder.New(a.workspace.Path("bin"), a.spawner, a.steps.Sayf)
	flags := "-X main.version=" + a.version(ctx)
	for _, name := range []string{"herald-sandbox", "herald"} {
		program := builder.Program{Name: name, Dir: a.workspace.Root, Package: "./cmd/" + name, LDFlags: flags}
		if err := a.steps.Do("build "+name, func() error { return b.BuildFresh(ctx, program) }); err != nil {
			return err
		}
	}
	return nil
}

// version names the commit that is built: its tag, or what can be said without one.
func (a *app) version(ctx context.Context) string {
	describe := func(args ...string) string {
		command := exec.CommandContext(ctx, "git", append([]string{"-C", a.workspace.Root, "describe", "--dirty"}, args...)...)
		out, err := command.Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	if tag := describe("--tags", "--match", "v*"); tag != "" {
		return tag
	}
	if commit := describe("--always"); commit != "" {
		return "v0.0.0-" + commit
	}
	return "v0.0.0-unknown"
}

// pinnedVersion reads the version of a module from a go.mod file.
func pinnedVersion(goMod, module string) (string, error) {
	file, err := os.Open(goMod)
	if err != nil {
		return "", err
	}
	defer file.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "require "))
		if len(fields) >= 2 && fields[0] == module {
			return fields[1], nil
		}
	}
	return "", errors.Join(fmt.Errorf("%s does not require %s", goMod, module), lines.Err())
}
