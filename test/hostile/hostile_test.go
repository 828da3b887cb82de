// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile_test attacks a running apiserver without credentials: at each entry point, at the metrics port, with
// connections, and with slow sources. It checks the process's memory, its requests to the Kubernetes API, its log, and
// whether it still serves other clients. test/perf (B-HOSTILE) covers how one team affects others.
package hostile_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/herald-social/herald/test/browser/stack"
	"github.com/herald-social/herald/test/must"
)

// maxResident limits the apiserver's resident memory during an attack, in bytes.
const maxResident = 200 << 20

// patience is the timeout for one step of an attack, so that a test ends whatever the process does.
const patience = 2 * time.Minute

// target is the apiserver under attack, with the limits of an installation.
type target struct {
	*stack.Replica

	running    *stack.Stack
	kubernetes *rest.Config
	log        string
}

// TestHostile runs the attacks against one process. -short uses fewer clients.
func TestHostile(t *testing.T) {
	under := start(t)
	for _, attack := range []struct {
		name string
		run  func(t *testing.T, under *target)
	}{
		{"connections", connections},
		{"metrics", metrics},
		{"doors", doors},
		{"sources", sources},
	} {
		t.Run(attack.name, func(t *testing.T) { attack.run(t, under) })
	}
}

// start starts Herald and an additional apiserver.
func start(t *testing.T) *target {
	t.Helper()
	checkout, err := filepath.Abs(filepath.Join("..", ".."))
	must.Succeed(t, err)
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		assets = filepath.Join(checkout, "bin")
	}
	dir, err := os.MkdirTemp("", "hostile") //nolint:usetesting // socket paths must be short
	must.Succeed(t, err)
	others, err := os.Create(filepath.Join(t.ArtifactDir(), "others.log"))
	must.Succeed(t, err)
	running, err := stack.Start(t.Context(), stack.Options{Checkout: checkout, Assets: assets, Dir: dir, Out: others})
	must.Succeed(t, err)
	under := &target{running: running, log: filepath.Join(t.ArtifactDir(), "apiserver.log")}
	log, err := os.Create(under.log)
	must.Succeed(t, err)
	t.Cleanup(func() { must.Succeed(t, errors.Join(running.Stop(), others.Close(), log.Close(), os.RemoveAll(dir))) })
	under.Replica, err = running.StartReplica(t.Context(), log, func(config map[string]any) {
		for _, own := range []string{"requestsPerMinute", "maxConnectionsPerAddress"} {
			delete(config, own)
		}
		config["metrics"].(map[string]any)["plain"] = false
	})
	must.Succeed(t, err)
	under.kubernetes, err = clientcmd.BuildConfigFromFlags("", running.Variable("KUBECONFIG"))
	must.Succeed(t, err)
	return under
}

// memory returns the process's resident memory and its peak since the last call, in bytes, and how many sockets and
// files it has open.
func (u *target) memory(t *testing.T) (now, peak int64, files int) {
	t.Helper()
	process, err := procfs.NewProc(u.PID())
	must.Succeed(t, err)
	status, err := process.NewStatus()
	must.Succeed(t, err)
	files, err = process.FileDescriptorsLen()
	must.Succeed(t, err)
	// 5 resets the peak of resident memory: see proc_pid_clear_refs(5).
	must.Succeed(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", u.PID()), []byte("5"), 0))
	return int64(status.VmRSS), int64(status.VmHWM), files
}

// logged returns the log lines after offset since, and the new offset.
func (u *target) logged(t *testing.T, since int64) (lines [][]byte, now int64) {
	t.Helper()
	text, err := os.ReadFile(u.log)
	must.Succeed(t, err)
	return bytes.Split(bytes.TrimSpace(text[since:]), []byte("\n")), int64(len(text))
}

// stranger returns a dialer for an unauthenticated client, with the nth loopback address of this machine.
func stranger(nth int) *net.Dialer {
	return &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 1, byte(nth>>8), byte(nth))}, Timeout: patience}
}

// client returns an HTTP client with the nth address.
func client(t *testing.T, nth int) *http.Client {
	t.Helper()
	transport := &http.Transport{DialContext: stranger(nth).DialContext, MaxIdleConnsPerHost: 4}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// answer is a response without its body.
type answer struct {
	status  int
	header  http.Header
	cookies []*http.Cookie
	// closed reports whether the server closes the connection.
	closed bool
}

// request sends a request and returns the response.
func request(ctx context.Context, by *http.Client, method, url string, header http.Header, body string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	maps.Copy(r.Header, header)
	response, err := by.Do(r)
	if err != nil {
		return answer{}, err
	}
	_, err = io.Copy(io.Discard, response.Body)
	return answer{response.StatusCode, response.Header, response.Cookies(), response.Close}, errors.Join(err, response.Body.Close())
}

// served expects that a client with a key and another address is served.
func (u *target) served(t *testing.T, nth int) {
	t.Helper()
	header := http.Header{"Authorization": {"Bearer " + u.running.Variable("HERALD_API_KEY")}}
	got, err := request(t.Context(), client(t, nth), http.MethodGet, "http://"+u.Site+"/api/v1/connections", header, "")
	must.Succeed(t, err)
	if got.status != http.StatusOK {
		t.Errorf("somebody with a key is answered %d", got.status)
	}
}

// sized returns short in a short run, and full otherwise.
func sized(short, full int) int {
	if testing.Short() {
		return short
	}
	return full
}

func mib(bytes int64) string { return strconv.FormatInt(bytes>>20, 10) + " MiB" }
