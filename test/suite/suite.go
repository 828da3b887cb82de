// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package suite contains the setup that the Ginkgo suites share. It is for tests only.
package suite

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/herald-social/herald/test/envtest"
)

// Must returns a value, and fails the spec if there is an error.
func Must[T any](value T, err error) T {
	ginkgo.GinkgoHelper()
	gomega.Expect(err).NotTo(gomega.HaveOccurred())
	return value
}

// Start starts an API server that is stopped after the suite, and sets Eventually's timeout to a minute, for busy
// machines.
func Start(options ...envtest.Option) *envtest.Environment {
	ginkgo.GinkgoHelper()
	ctrl.SetLogger(ginkgo.GinkgoLogr)
	gomega.SetDefaultEventuallyTimeout(time.Minute)
	gomega.SetDefaultEventuallyPollingInterval(50 * time.Millisecond)
	env := Must(envtest.Start(options...))
	ginkgo.DeferCleanup(env.Stop)
	return env
}

// Manager returns a manager without a metrics server, which watches the namespaces, or all.
func Manager(env *envtest.Environment, config *rest.Config, namespaces ...string) ctrl.Manager {
	ginkgo.GinkgoHelper()
	var watched map[string]cache.Config
	for _, namespace := range namespaces {
		if watched == nil {
			watched = map[string]cache.Config{}
		}
		watched[namespace] = cache.Config{}
	}
	return Must(ctrl.NewManager(config, ctrl.Options{
		Scheme: env.Scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Cache: cache.Options{DefaultNamespaces: watched},
	}))
}

// Run runs a manager until the end of the suite, or of the spec that calls it.
func Run(mgr ctrl.Manager) {
	ctx, cancel := context.WithCancel(context.Background())
	stopped := make(chan error, 1)
	go func() { stopped <- mgr.Start(ctx) }()
	ginkgo.DeferCleanup(func() {
		cancel()
		gomega.Eventually(stopped).Should(gomega.Receive(gomega.Succeed()))
	})
}
