// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMediaStore(t *testing.T) {
	const good = `{"accessKey":"a","secretKey":"b"}`
	for name, tc := range map[string]struct {
		reason, endpoint, public, credentials string
		usage                                 bool
		err                                   string
	}{
		"local":                 {"a store on the same machine", "http://127.0.0.1:9000", "", good, false, ""},
		"public":                {"clients reach it by another name", "http://store:9000", "https://files.example.com/", good, false, ""},
		"yaml":                  {"a Secret may hold either", "https://s3.example.com", "", "accessKey: a\nsecretKey: b\n", false, ""},
		"none":                  {"posts with media need one", "", "", good, true, "--media-endpoint"},
		"no scheme":             {"with or without TLS must be said", "s3.example.com", "", good, true, "--media-endpoint"},
		"a path":                {"the bucket has a flag of its own", "https://s3.example.com/bucket", "", good, true, "--media-endpoint"},
		"another scheme":        {"S3 speaks HTTP", "s3://bucket", "", good, true, "--media-endpoint"},
		"bad public":            {"it is checked as well", "https://s3.example.com", "files", good, true, "--media-public-endpoint"},
		"empty credentials":     {"nothing could be signed", "https://s3.example.com", "", "{}", false, "must not be empty"},
		"misspelt credentials":  {"a misspelt name is no name", "https://s3.example.com", "", "access_key: a", false, "want accessKey and secretKey"},
		"credentials not shown": {"what is wrong in a secret is not repeated", "https://s3.example.com", "", "hunter2", false, "want accessKey and secretKey"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "key")
			if err := os.WriteFile(file, []byte(tc.credentials), 0o600); err != nil {
				t.Fatal(err)
			}
			f := mediaFlags{endpoint: tc.endpoint, publicEndpoint: tc.public, bucket: "b", credentials: file}
			_, err := f.store()
			if tc.err == "" && err == nil {
				return
			}
			if err == nil || tc.err == "" || !strings.Contains(err.Error(), tc.err) || strings.Contains(err.Error(), "hunter2") {
				t.Fatalf("%s: got %v", tc.reason, err)
			}
			if errors.As(err, &usageError{}) != tc.usage {
				t.Errorf("%s: a wrong command line is told apart: %v", tc.reason, err)
			}
		})
	}
}
