// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package storetest starts the S3-compatible store of the local run for tests.
package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/herald-social/herald/hack/local/ports"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/checkout"
)

// TB contains the methods that the package uses of *testing.T and of Ginkgo's GinkgoT().
type TB interface {
	Helper()
	TempDir() string
	Cleanup(f func())
	Fatalf(format string, args ...any)
}

const (
	accessKey = "herald-test"
	secretKey = "herald-test-secret"
	bucket    = "herald-media"
)

// binary builds the program once per process; Go's cache makes repeated builds fast.
var binary = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(checkout.Root(), "hack", "store")
	target := filepath.Join(os.TempDir(), fmt.Sprintf("herald-test-store-%d", os.Getuid()), "herald-store")
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return "", err
	}
	// Another package's test may be running the file that it has just built.
	fresh := fmt.Sprintf("%s.%d", target, os.Getpid())
	build := exec.Command("go", "build", "-buildvcs=false", "-o", fresh, ".")
	build.Dir = folder
	if output, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("cannot build the store: %w\n%s", err, output)
	}
	if err := os.Rename(fresh, target); err != nil {
		return "", err
	}
	return target, nil
})

// Start starts a store with an empty bucket on a free port, and stops it when the test ends.
func Start(t TB) store.Config {
	t.Helper()
	program, err := binary()
	if err != nil {
		t.Fatalf("%v", err)
	}
	folder := t.TempDir()
	keys := filepath.Join(folder, "key.json")
	data, err := json.Marshal(map[string]string{"accessKey": accessKey, "secretKey": secretKey})
	if err == nil {
		err = os.WriteFile(keys, data, 0o600)
	}
	if err != nil {
		t.Fatalf("cannot write the store's key: %v", err)
	}
	address, err := ports.Free()
	if err != nil {
		t.Fatalf("cannot find a port for the store: %v", err)
	}
	server := exec.Command(program, "--listen="+address, "--data-dir="+filepath.Join(folder, "data"), "--credentials="+keys, "--bucket="+bucket)
	server.Stderr = os.Stderr
	if err := server.Start(); err != nil {
		t.Fatalf("cannot start the store: %v", err)
	}
	t.Cleanup(func() {
		_ = server.Process.Kill() // it may have ended already
		_ = server.Wait()
	})
	if err := ready("http://" + address + "/health"); err != nil {
		t.Fatalf("%v", err)
	}
	return store.Config{
		Endpoint: address, Region: "us-east-1", Bucket: bucket, AccessKey: accessKey, SecretKey: secretKey, PathStyle: true, Insecure: true,
	}
}

// ready waits until the store answers.
func ready(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
		if err != nil {
			return err
		}
		if response, err := new(http.Client).Do(req); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the store does not answer at %s", address)
		case <-ticker.C:
		}
	}
}
