// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package sandboxtest

import (
	"net/http/httptest"

	"github.com/herald-social/herald/sandbox"
)

// TB contains the methods of a test that Start uses. Both *testing.T and Ginkgo's GinkgoT() implement it.
type TB interface {
	Helper()
	Cleanup(f func())
	Errorf(format string, args ...any)
	Fatalf(format string, args ...any)
}

// Start serves a new sandbox until the test ends.
func Start(t TB) Client {
	t.Helper()
	server, err := sandbox.New(sandbox.Options{})
	if err != nil {
		t.Fatalf("cannot start a sandbox: %v", err)
	}
	site := httptest.NewServer(server)
	t.Cleanup(func() {
		site.Close()
		if err := server.Close(); err != nil {
			t.Errorf("cannot stop the sandbox: %v", err)
		}
	})
	return Client{URL: site.URL}
}
