// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package envtest

import (
	"fmt"
	"os"
	"testing"
)

// Main runs a package's tests with a shared Environment and returns the exit code. It is for tests that do not use
// Ginkgo's suite hooks.
func Main(m *testing.M, env **Environment, options ...Option) int {
	var err error
	if *env, err = Start(options...); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := (*env).Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}
