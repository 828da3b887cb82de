// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build crashpoints

package process

import (
	"net/http"
	"os"
	"time"
)

// CrashPoint returns a function that calls the test at HERALD_CRASH_HOOK at each failpoint and waits for its response.
// In the meantime, the test may kill this process or cut a connection. Only the build for the crash matrix has it.
func CrashPoint() func(string) {
	hook := os.Getenv("HERALD_CRASH_HOOK")
	if hook == "" {
		return nil
	}
	client := &http.Client{Timeout: time.Minute}
	return func(point string) {
		//nolint:noctx,gosec // the address is the test's own, and the client bounds the call
		if resp, err := client.Post(hook+"/"+point, "text/plain", nil); err == nil {
			_ = resp.Body.Close()
		}
	}
}
