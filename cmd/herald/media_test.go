// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

func TestMediaStore(t *testing.T) {
	const good = `{"accessKey":"a","secretKey":"b"}`
	for name, tc := range map[string]struct {
		reason, endpoint, public, credentials string
		err                                   string
	}{
		"local":                 {"a store on the same machine", "http://127.0.0.1:9000", "", good, ""},
		"public":                {"clients reach it by another name", "http://store:9000", "https://files.example.com/", good, ""},
		"yaml":                  {"a Secret may contain either format", "https://s3.example.com", "", "accessKey: a\nsecretKey: b\n", ""},
		"empty credentials":     {"requests could not be signed", "https://s3.example.com", "", "{}", "must not be empty"},
		"misspelt credentials":  {"misspelt fields are rejected", "https://s3.example.com", "", "access_key: a", "want accessKey and secretKey"},
		"credentials not shown": {"errors do not repeat secrets", "https://s3.example.com", "", "hunter2", "want accessKey and secretKey"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			must.Succeed(t, os.WriteFile(file, []byte(tc.credentials), 0o600))
			c := configv1alpha1.Media{Endpoint: tc.endpoint, PublicEndpoint: tc.public, Bucket: "b", CredentialsFile: file}
			_, err := openStore(&c)
			if tc.err == "" && err == nil {
				return
			}
			if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
		})
	}
}

// TestCredentialsFromEnvironment signs with credentials from the environment, as a pod with its own role does.
func TestCredentialsFromEnvironment(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "from-the-environment")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "b")
	t.Setenv("AWS_SESSION_TOKEN", "session")
	files, err := openStore(&configv1alpha1.Media{Endpoint: "https://s3.example.com", Bucket: "files"})
	must.Succeed(t, err)
	address, _, err := files.PresignPut(t.Context(), "a/b", "image/png", 10)
	if err != nil || !strings.Contains(address, "from-the-environment") || !strings.Contains(address, "X-Amz-Security-Token=session") {
		t.Errorf("got %q, %v", address, err)
	}
}

func TestNoStore(t *testing.T) {
	files, err := openStore(nil)
	must.Succeed(t, err)
	if _, _, err := files.PresignPut(t.Context(), "a/b", "image/png", 10); !errors.Is(err, store.ErrNone) {
		t.Errorf("no address is signed for a store that is not there: %v", err)
	}
	if _, err := files.Stat(t.Context(), "a/b"); !errors.Is(err, store.ErrNone) {
		t.Errorf("reading without a store returned %v", err)
	}
	if err := files.DeleteAll(t.Context(), "a/b"); !errors.Is(err, store.ErrNone) {
		t.Errorf("deleting without a store returned %v", err)
	}
}
