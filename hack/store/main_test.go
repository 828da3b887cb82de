// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// instance is a store under test.
type instance struct {
	t    *testing.T
	url  string
	stop func()
}

// startStore starts a store on a data folder and waits until it responds. The store runs until stop is called or the
// test is over.
func startStore(t *testing.T, dir string) *instance {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(key, []byte(`{"accessKey":"herald-local","secretKey":"secret"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	opts, err := parse([]string{"--listen", address, "--data-dir", dir, "--credentials", key})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, opts) }()
	s := &instance{t: t, url: "http://" + address}
	s.stop = func() {
		cancel()
		if err, ok := <-ended; ok && err != nil {
			t.Errorf("the store exited with %v", err)
		}
		close(ended)
		s.stop = func() {}
	}
	t.Cleanup(func() { s.stop() })
	s.waitHealthy(ended)
	return s
}

func (s *instance) waitHealthy(ended chan error) {
	s.t.Helper()
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		response, err := http.Get(s.url + "/health")
		if err == nil {
			if err := response.Body.Close(); err != nil {
				s.t.Fatal(err)
			}
			if response.StatusCode == http.StatusOK {
				return
			}
		}
		select {
		case err := <-ended:
			ended <- nil
			s.t.Fatalf("the store does not start: %v", err)
		case <-deadline:
			s.t.Fatalf("the store is not healthy: %v", err)
		case <-tick.C:
		}
	}
}

// client returns a client that signs requests with the secret key.
func (s *instance) client(secret string) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: &s.url, UsePathStyle: true, Region: "us-east-1", RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "herald-local", SecretAccessKey: secret}, nil
		}),
	})
}

func put(t *testing.T, c *s3.Client, key, text string) error {
	t.Helper()
	_, err := c.PutObject(t.Context(), &s3.PutObjectInput{
		Bucket: aws.String("herald-media"), Key: &key, Body: strings.NewReader(text), ContentType: aws.String("image/png"),
	})
	return err
}

func get(t *testing.T, c *s3.Client, key string) (text, mimeType string, err error) {
	t.Helper()
	out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("herald-media"), Key: &key})
	if err != nil {
		return "", "", err
	}
	data, err := io.ReadAll(out.Body)
	return string(data), aws.ToString(out.ContentType), err
}

func TestObjectsSurviveARestart(t *testing.T) {
	dir := t.TempDir()
	s := startStore(t, dir)
	if err := put(t, s.client("secret"), "team/uid", "picture"); err != nil {
		t.Fatal(err)
	}
	s.stop()
	s = startStore(t, dir)
	text, mimeType, err := get(t, s.client("secret"), "team/uid")
	if err != nil || text != "picture" || mimeType != "image/png" {
		t.Errorf("after a restart: %q, %q, %v", text, mimeType, err)
	}
}

func TestOnlyTheRootKeyIsAccepted(t *testing.T) {
	s := startStore(t, t.TempDir())
	if err := put(t, s.client("wrong"), "team/uid", "x"); err == nil {
		t.Error("a wrong secret was accepted")
	}
	response, err := http.Get(s.url + "/herald-media/team/uid")
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("without a key: %s", response.Status)
	}
}

func TestBrowserUpload(t *testing.T) {
	s := startStore(t, t.TempDir())
	request, err := http.NewRequestWithContext(t.Context(), http.MethodOptions, s.url+"/herald-media/team/uid", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Origin", "http://127.0.0.1:8080")
	request.Header.Set("Access-Control-Request-Method", http.MethodPut)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil {
		t.Fatal(err)
	}
	if got := response.Header.Get("Access-Control-Allow-Origin"); got != "*" {
		t.Errorf("preflight: %s, allowed origin %q", response.Status, got)
	}
}

// TestConditionalCopy checks that a conditional copy either has the expected content or fails.
func TestConditionalCopy(t *testing.T) {
	c := startStore(t, t.TempDir()).client("secret")
	if err := put(t, c, "team/uid", "picture"); err != nil {
		t.Fatal(err)
	}
	head, err := c.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("herald-media"), Key: aws.String("team/uid")})
	if err != nil {
		t.Fatal(err)
	}
	copyTo := func(key string) error {
		_, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{
			Bucket: aws.String("herald-media"), Key: &key, CopySource: aws.String("herald-media/team/uid"), CopySourceIfMatch: head.ETag,
		})
		return err
	}
	if err := copyTo("team/uid.copy"); err != nil {
		t.Fatal(err)
	}
	if err := put(t, c, "team/uid", "another"); err != nil {
		t.Fatal(err)
	}
	if err := copyTo("team/uid.other"); err == nil {
		t.Error("a copy ignored its condition")
	}
	text, mimeType, err := get(t, c, "team/uid.copy")
	if err != nil || text != "picture" || mimeType != "image/png" {
		t.Errorf("the copy: %q, %q, %v", text, mimeType, err)
	}
}

func TestIncompleteBucketIsCompleted(t *testing.T) {
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "objects", "herald-media"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := startStore(t, dir)
	if err := put(t, s.client("secret"), "team/uid", "x"); err != nil {
		t.Errorf("the bucket cannot be used: %v", err)
	}
}

func TestParse(t *testing.T) {
	tests := map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"no folder":     {"the current folder is not a default", []string{"--credentials=k"}, "required"},
		"no key":        {"an unauthenticated store would be public", []string{"--data-dir=d"}, "required"},
		"all addresses": {"the store is for this machine only", []string{"--data-dir=d", "--credentials=k", "--listen=0.0.0.0:9000"}, "loopback"},
		"a name":        {"a name may resolve to another address", []string{"--data-dir=d", "--credentials=k", "--listen=localhost:9000"}, "loopback"},
		"a pod":         {"a Service cannot reach a loopback address", []string{"--data-dir=d", "--credentials=k", "--listen=:9000", "--allow-remote"}, ""},
		"no port":       {"the message names the missing port", []string{"--data-dir=d", "--credentials=k", "--listen=127.0.0.1"}, "HOST:PORT"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := parse(tc.args)
			if tc.want == "" && err != nil {
				t.Errorf("got %v: %s", err, tc.reason)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v, want %q: %s", err, tc.want, tc.reason)
			}
		})
	}
}

func TestReadCredentials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key.json")
	for _, text := range []string{"", "{", `{"accessKey":"a"}`} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if key, err := readCredentials(path); err == nil {
			t.Errorf("%q was parsed as %v", bytes.TrimSpace([]byte(text)), key)
		}
	}
}
