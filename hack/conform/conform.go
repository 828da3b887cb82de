// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/yannh/kubeconform/pkg/validator"
)

// conforms returns an error for objects that a Kubernetes version would reject, and the number of accepted objects.
func conforms(folder, version string, renderings []rendering) (objects int, err error) {
	v, err := validator.New([]string{filepath.Join(folder, location)}, validator.Opts{KubernetesVersion: version, Strict: true})
	if err != nil {
		return 0, err
	}
	var problems []error
	for _, r := range renderings {
		for _, result := range v.Validate(r.name, io.NopCloser(bytes.NewReader(r.text))) {
			switch result.Status {
			case validator.Empty:
			case validator.Valid:
				objects++
			case validator.Invalid, validator.Error, validator.Skipped:
				problems = append(problems, fmt.Errorf("kubeconform, %s, %s: %w", version, name(r, &result), result.Err))
			default:
				problems = append(problems, fmt.Errorf("kubeconform, %s, %s: kubeconform says %d", version, name(r, &result), result.Status))
			}
		}
	}
	if objects == 0 && len(problems) == 0 {
		return 0, errors.New("the rendered manifests do not contain objects")
	}
	return objects, errors.Join(problems...)
}

func name(r rendering, result *validator.Result) string {
	if signature, err := result.Resource.Signature(); err == nil {
		return r.name + ": " + signature.Kind + " " + signature.Name
	}
	return r.name
}
