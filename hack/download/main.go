// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Command download puts released programs of the control plane into a folder if hack/controlplane/checksums.txt pins
// their SHA-256, and prints the names of the programs to build instead. An unreachable server costs seconds and is not
// a failure. A file with a different SHA-256 is.
//
//	download -into bin etcd kube-apiserver   downloads the programs, and prints those to build
//	download -checksums                      prints the published checksums as lines of checksums.txt
//
// It depends only on the standard library, so the first start compiles it within seconds.
package main

import (
	"context"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	into := flag.String("into", "bin", "folder of the programs")
	from := flag.String("mirror", "", "address that serves the paths of dl.k8s.io and github.com, in place of both")
	controlPlane := flag.String("pins", "hack/controlplane", "folder of go.mod and checksums.txt")
	checksums := flag.Bool("checksums", false, "print the published checksums as lines of checksums.txt")
	flag.Parse()
	mirror, err := parseMirror(*from)
	if err != nil {
		return err
	}
	pinned, err := readPins(*controlPlane)
	if err != nil {
		return err
	}
	d := &downloader{client: newClient(defaultTimeouts), timeouts: defaultTimeouts, mirror: mirror, platform: runtime.GOOS + "/" + runtime.GOARCH, log: os.Stderr}
	if *checksums {
		return d.printChecksums(ctx, pinned.versions, os.Stdout)
	}
	build, err := d.fetchAll(ctx, pinned, *into, flag.Args())
	if err != nil {
		return err
	}
	fmt.Println(strings.Join(build, " "))
	return nil
}

// parseMirror returns the base URL of a mirror without a trailing slash, or "" for the publishers themselves.
func parseMirror(from string) (string, error) {
	if from == "" {
		return "", nil
	}
	u, err := url.Parse(from)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return "", fmt.Errorf("DOWNLOADS=%s is neither off nor an http or https address", from)
	}
	return strings.TrimSuffix(from, "/"), nil
}

// pins are the versions and checksums that the repository pins.
type pins struct {
	// versions maps a module to its version in go.mod.
	versions map[string]string
	// sums maps a release's path to its SHA-256 in hexadecimal.
	sums map[string]string
}

// readPins reads go.mod and checksums.txt in a folder.
func readPins(dir string) (pins, error) {
	var p pins
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return p, err
	}
	p.versions = parseVersions(string(text))
	file := filepath.Join(dir, checksumsFile)
	if text, err = os.ReadFile(file); err != nil {
		return p, err
	}
	if p.sums, err = parseChecksums(string(text)); err != nil {
		return p, fmt.Errorf("%s: %w", file, err)
	}
	return p, nil
}
