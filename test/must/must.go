// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package must ends a test whose preparation fails. It is for tests only.
package must

// TB contains the methods that the package uses of *testing.T, *testing.B, *testing.F and *rapid.T.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// Succeed ends the test if err is not nil.
func Succeed(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
