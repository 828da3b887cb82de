// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster installs what Herald needs in the local API server: its CRDs, its roles and a demo team.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/herald-social/herald/api/v1alpha1"
)

// fieldOwner is the field manager of the local run.
const fieldOwner = "herald-local"

// pollEvery is the interval at which Until polls.
const pollEvery = 50 * time.Millisecond

// NewClient returns a client for the kubeconfig that supports all kinds in this package. It does not send a request
// yet.
func NewClient(kubeconfig string) (client.WithWatch, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	// The server has no other users. Its priority and fairness configuration sets any limits that are needed.
	config.QPS = -1
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return client.NewWithWatch(config, client.Options{Scheme: scheme})
}

// Until calls done until it returns true or ctx is done. The error contains what; after a timeout, it wraps the last
// error from done.
func Until(ctx context.Context, what string, done func() (bool, error)) error {
	var latest error
	err := wait.PollUntilContextCancel(ctx, pollEvery, true, func(context.Context) (bool, error) {
		ok, err := done()
		if err != nil {
			latest = err
		}
		return ok, nil
	})
	if errors.Is(err, context.DeadlineExceeded) && latest != nil {
		err = latest
	}
	if err != nil {
		return fmt.Errorf("waiting for %s: %w", what, err)
	}
	return nil
}
