// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/herald-social/herald/hack/local/supervisor"
)

const (
	// startLimit is how long a process may take to answer after its start; generous, for a loaded machine.
	startLimit = 2 * time.Minute
	// probeEvery and probeLimit pace the questions whether it does.
	probeEvery = 50 * time.Millisecond
	probeLimit = 5 * time.Second
	// tooManyExits is how often a process may end before it answered for the first time. One or two can pass by
	// themselves, when what it needs comes up a moment later.
	tooManyExits = 5
	// shownLog is how much of the end of a log is shown when its process does not start, in bytes.
	shownLog = 2000
)

// probe asks once whether a process is ready.
type probe func(context.Context) error

// waitFor waits until the process answers. It fails, with the end of the process's log, when that takes too long or the
// process keeps ending.
func waitFor(ctx context.Context, child *supervisor.Child, ask probe) error {
	if child == nil {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		err := askOnce(ctx, ask)
		if err == nil {
			return nil
		}
		if child.Exits() >= tooManyExits {
			return fmt.Errorf("%s does not start; the end of %s:\n%s", child.Name(), child.LogPath(), endOf(child.LogPath()))
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("%s is not ready after %s: %w; the end of %s:\n%s",
					child.Name(), startLimit, err, child.LogPath(), endOf(child.LogPath()))
			}
			return ctx.Err()
		}
	}
}

func askOnce(ctx context.Context, ask probe) error {
	ctx, cancel := context.WithTimeout(ctx, probeLimit)
	defer cancel()
	return ask(ctx)
}

// accepts asks whether anybody listens.
func accepts(address string) probe {
	return func(ctx context.Context) error {
		var dialer net.Dialer
		connection, err := dialer.DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		return connection.Close()
	}
}

// answers asks for a page and wants status 200.
func answers(client *http.Client, url string) probe {
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
		if err != nil {
			return err
		}
		response, err := client.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", url, response.Status)
		}
		return nil
	}
}

// plainClient is for what is served without TLS. It keeps no connections: the servers it asks may be killed any time.
func plainClient() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12}}}
}

// adminClient asks the API server as the administrator.
func adminClient(kubeconfig string) (*http.Client, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	return rest.HTTPClientFor(config)
}

// endOf returns the last lines of a log, indented.
func endOf(path string) string {
	file, err := os.Open(path)
	if err != nil {
		return "  " + err.Error()
	}
	defer file.Close() //nolint:errcheck // it was only read
	if info, err := file.Stat(); err == nil && info.Size() > shownLog {
		if _, err := file.Seek(-shownLog, io.SeekEnd); err != nil {
			return "  " + err.Error()
		}
	}
	data, err := io.ReadAll(file)
	if err != nil {
		return "  " + err.Error()
	}
	text := strings.TrimSpace(string(data))
	if text == "" {
		return "  (it is empty)"
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}
