// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command flux applies a folder as Flux's kustomize-controller does, using Flux's library: first the cluster's CRDs and
// namespaces, then a dry run of the rest, then the rest, by server-side apply. It waits until each object is ready, as
// a Kustomization with `wait: true` does. It is for tests, and is a separate module to keep its dependencies out of the
// product.
package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/polling"
	"github.com/fluxcd/pkg/ssa"
	"github.com/fluxcd/pkg/ssa/utils"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const usage = `Usage:
  flux KUBECONFIG FOLDER TIMEOUT   apply a folder as a Kustomization with wait: true; print what was done with each object`

// pollEvery is the interval at which an object's readiness is checked. Flux checks every five seconds.
const pollEvery = 200 * time.Millisecond

// The field manager of kustomize-controller, and the group of its labels and annotations.
const (
	manager = "kustomize-controller"
	group   = "kustomize.toolkit.fluxcd.io"
)

func main() {
	ctx := ctrl.SetupSignalHandler()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "flux:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) != 3 {
		return errors.New("three arguments are needed\n" + usage)
	}
	timeout, err := time.ParseDuration(args[2])
	if err != nil {
		return fmt.Errorf("the timeout is not a duration: %w", err)
	}
	objects, err := read(args[1])
	if err != nil {
		return err
	}
	engine, err := connect(args[0])
	if err != nil {
		return err
	}
	engine.SetOwnerLabels(objects, "set", "flux-system")
	options := ssa.DefaultApplyOptions()
	options.ExclusionSelector = map[string]string{group + "/reconcile": "disabled"}
	options.IfNotPresentSelector = map[string]string{group + "/ssa": "IfNotPresent"}
	options.ForceSelector = map[string]string{group + "/force": "enabled"}
	changes, err := engine.ApplyAllStaged(ctx, objects, options)
	if err != nil {
		return fmt.Errorf("cannot apply: %w", err)
	}
	for _, entry := range changes.Entries {
		if _, err := fmt.Fprintln(out, entry.Action, entry.Subject); err != nil {
			return err
		}
	}
	wait := ssa.WaitOptions{Interval: pollEvery, Timeout: timeout, FailFast: true}
	if err := engine.WaitForSetWithContext(ctx, changes.ToObjMetadataSet(), wait); err != nil {
		return fmt.Errorf("applied, but not ready: %w", err)
	}
	return nil
}

// connect returns Flux's resource manager for the kubeconfig's cluster.
func connect(kubeconfig string) (*ssa.ResourceManager, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("cannot read the kubeconfig: %w", err)
	}
	config.QPS = -1
	c, err := client.New(config, client.Options{})
	if err != nil {
		return nil, fmt.Errorf("cannot reach the cluster: %w", err)
	}
	poller := polling.NewStatusPoller(c, c.RESTMapper(), polling.Options{})
	return ssa.NewResourceManager(c, poller, ssa.Owner{Field: manager, Group: group}), nil
}

// read returns the objects of all YAML files in a folder: if there is no kustomization.yaml, kustomize-controller
// applies all files.
func read(folder string) (objects []*unstructured.Unstructured, err error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close() //nolint:errcheck // nothing was written
	err = fs.WalkDir(root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
			return err
		}
		text, err := root.ReadFile(path)
		if err != nil {
			return err
		}
		found, err := utils.ReadObjects(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("cannot read %s: %w", path, err)
		}
		objects = append(objects, found...)
		return nil
	})
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("%s holds no objects", folder)
	}
	return objects, err
}
