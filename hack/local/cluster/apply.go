// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"
	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// atOnce is the number of objects applied concurrently.
const atOnce = 8

// first are the kinds that others depend on.
var first = []string{"CustomResourceDefinition", "Namespace"}

// Install applies Herald's CRDs, roles and webhook from a checkout's config folder. webhook is the address where the
// manager serves it.
func Install(ctx context.Context, c client.Client, config, webhook string) error {
	if err := ApplyFolders(ctx, c, filepath.Join(config, "crd", "bases"), filepath.Join(config, "rbac")); err != nil {
		return err
	}
	return ApplyWebhook(ctx, c, filepath.Join(config, "webhook", "webhook.yaml"), "https://"+webhook)
}

// ApplyFolders applies every object in the folders' YAML files by server-side apply, and waits until the API server
// serves the custom resources. It is idempotent.
func ApplyFolders(ctx context.Context, c client.Client, folders ...string) error {
	var objects []*unstructured.Unstructured
	for _, folder := range folders {
		found, err := readFolder(folder)
		if err != nil {
			return err
		}
		objects = append(objects, found...)
	}
	if err := applyAll(ctx, c, objects, true); err != nil {
		return err
	}
	if err := applyAll(ctx, c, objects, false); err != nil {
		return err
	}
	return waitEstablished(ctx, c, objects)
}

// applyAll applies either the objects whose kind is in first, or all others.
func applyAll(ctx context.Context, c client.Client, objects []*unstructured.Unstructured, isFirst bool) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for _, object := range objects {
		if slices.Contains(first, object.GetKind()) != isFirst {
			continue
		}
		group.Go(func() error {
			err := c.Apply(ctx, client.ApplyConfigurationFromUnstructured(object), client.FieldOwner(fieldOwner), client.ForceOwnership)
			if err != nil {
				return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
			}
			return nil
		})
	}
	return group.Wait()
}

func waitEstablished(ctx context.Context, c client.Client, objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		name := object.GetName()
		err := Until(ctx, name+" to be served", func() (bool, error) {
			var crd apiextensionsv1.CustomResourceDefinition
			if err := c.Get(ctx, client.ObjectKey{Name: name}, &crd); err != nil {
				return false, err
			}
			return apihelpers.IsCRDConditionTrue(&crd, apiextensionsv1.Established), nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// readFolder reads all objects in the YAML files of dir, except kustomize's own files.
func readFolder(dir string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" || entry.Name() == "kustomization.yaml" {
			return err
		}
		found, err := readObjects(path)
		objects = append(objects, found...)
		return err
	})
	return objects, err
}

func readObjects(path string) ([]*unstructured.Unstructured, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	objects, err := ParseObjects(data)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return objects, nil
}

// ParseObjects parses the objects of a YAML text that may contain any number of documents.
func ParseObjects(text []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(text), 4096)
	for {
		object := &unstructured.Unstructured{}
		err := documents.Decode(object)
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, err
		}
		if len(object.Object) > 0 {
			objects = append(objects, object)
		}
	}
}
