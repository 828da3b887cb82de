// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hostile_test attacks a running apiserver without credentials: at each entry point, at the metrics port, with
// connections, and with slow sources. It checks the process's memory, its requests to the Kubernetes API, its log, and
// whether it still serves other clients. test/perf (B-HOSTILE) covers the effect of one team on others.
package hostile_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	configv1alpha1 "github.com/herald-social/herald/api/config/v1alpha1"
	"github.com/herald-social/herald/internal/media/fetch"
	"github.com/herald-social/herald/test/browser/stack"
	"github.com/herald-social/herald/test/must"
)

// maxResident limits the apiserver's resident memory during an attack, in bytes.
const maxResident = 200 << 20

// patience is the timeout for one step of an attack, so a test ends regardless of the process's behavior.
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

// memory returns the process's resident memory and its peak since the last call, in bytes, and the number of its open
// sockets and files.
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
		t.Errorf("a client with a valid key got %d", got.status)
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

// sources fetches files from servers that send a byte now and then, or nothing at all. The manager connects only to
// public addresses, so the test uses only the manager's HTTP client, with a shorter timeout. TestTurns in
// controllers/media covers the effect of one team's sources on another team's.
func sources(t *testing.T, _ *target) {
	for _, tc := range []struct {
		name, reason string
		pause        time.Duration
	}{
		{"a byte every 10 ms", "no single read waits for long", 10 * time.Millisecond},
		{"silence after the header", "one read waits indefinitely", time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { trickle(w, r, tc.pause) }))
			defer server.Close()
			roots := x509.NewCertPool()
			roots.AddCert(server.Certificate())
			client := fetch.New(fetch.Options{Allow: func(netip.Addr) error { return nil }, Roots: roots, StallTimeout: time.Second})
			var under errgroup.Group
			for range sized(8, 64) {
				under.Go(func() error {
					err := client.Get(t.Context(), server.URL, fetch.Expected{MIMEType: "video/mp4", MaxSize: 1 << 30},
						func(_ context.Context, _ int64, body io.Reader) error {
							_, err := io.Copy(io.Discard, body)
							return err
						})
					if problem, ok := errors.AsType[*fetch.DownloadError](err); !ok || problem.Final {
						return errors.Join(errors.New("the download's error does not name a slow server"), err)
					}
					return nil
				})
			}
			if err := under.Wait(); err != nil {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// trickle writes one byte after each pause until the client disconnects.
func trickle(w http.ResponseWriter, r *http.Request, pause time.Duration) {
	w.Header().Set("Content-Length", "1000000000")
	ticker := time.NewTicker(pause)
	defer ticker.Stop()
	for {
		if _, err := io.WriteString(w, "0"); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-r.Context().Done():
			return
		}
	}
}

// ownFiles is the number of files and sockets that the process has besides client connections.
const ownFiles = 100

// connections attacks the apiserver with connections that stay open. The server rejects headers of 20 KiB; the test's
// headers are shorter and never end.
func connections(t *testing.T, under *target) {
	limits := configv1alpha1.DefaultAPIServer()
	for _, tc := range []struct {
		name, reason    string
		addresses, each int
		say             string
		// most is the maximum number of connections that remain.
		most int
	}{
		{"idle", "one address sends a request on each, and stays connected", 1, sized(2000, 15_000), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", limits.MaxConnectionsPerAddress},
		{"idle from many addresses", "all connections are in use", 300, sized(10, 50), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", limits.MaxConnections},
		{"silent", "no bytes are sent", 300, sized(10, 50), "", limits.MaxConnections},
		{"unfinished headers", "15 KB of each header are sent", 300, sized(10, 50), "GET /health HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 15_000), limits.MaxConnections},
		{"unfinished short headers", "just below the limit for long headers", 300, sized(10, 50), "GET /health HTTP/1.1\r\nHost: x\r\nX: " + strings.Repeat("a", 4000), limits.MaxConnections},
		{"incomplete bodies", "each request is in progress", 100, sized(20, 60), "POST /oauth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 10\r\n\r\n", limits.MaxConnections},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before, _, _ := under.memory(t)
			open := 0
			for i := range tc.addresses * tc.each {
				c, err := stranger(i%tc.addresses).DialContext(t.Context(), "tcp", under.Site)
				if err != nil {
					t.Fatalf("%s: connection %d: %v", tc.reason, i, err)
				}
				t.Cleanup(func() { _ = c.Close() })
				if send(c, tc.say) == nil {
					open++
				}
			}
			under.served(t, 10_000)
			after, peak, files := under.memory(t)
			t.Logf("%s: %d of %d connections were accepted at first; resident memory %s -> %s, at most %s; %d files and sockets",
				tc.reason, open, tc.addresses*tc.each, mib(before), mib(after), mib(peak), files)
			if peak > maxResident {
				t.Errorf("the process used %s, more than %s", mib(peak), mib(maxResident))
			}
			if files > tc.most+ownFiles {
				t.Errorf("%d files and sockets are open, more than the %d allowed connections and %d others", files, tc.most, ownFiles)
			}
		})
	}
}

// send writes to a connection, and reads the start of the response if the request is complete.
func send(c net.Conn, say string) error {
	if _, err := io.WriteString(c, say); err != nil {
		return err
	}
	if !strings.HasSuffix(say, "\r\n\r\n") || strings.HasPrefix(say, "POST") {
		return nil
	}
	_, err := io.ReadFull(c, make([]byte, len("HTTP/1.1 200")))
	return err
}
