// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/time/rate"
	clocktesting "k8s.io/utils/clock/testing"
)

// lines receives a log line by line.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- string(bytes.TrimSpace(p))
	return len(p), nil
}

func TestFailedHandshakesAreLogged(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		client func(t *testing.T, address string)
		want   string
	}{
		"plain HTTP": {"a client that was configured with http://", func(t *testing.T, address string) {
			resp, err := http.Get("http://" + address)
			if err == nil {
				resp.Body.Close()
				t.Error("the connection got a response")
			}
		}, "level=WARN msg=\"A TLS handshake failed\""},
		"unknown authority": {"a client that does not trust the certificate", func(t *testing.T, address string) {
			_, err := tls.Dial("tcp", address, &tls.Config{MinVersion: tls.VersionTLS12})
			if err == nil {
				t.Error("the client trusts every certificate")
			}
		}, "remote error: tls: bad certificate"},
		"old": {"an outdated client", func(t *testing.T, address string) {
			_, err := tls.Dial("tcp", address, &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11, InsecureSkipVerify: true})
			if err == nil {
				t.Error("TLS 1.1 was spoken")
			}
		}, "unsupported versions"},
		"silent": {"a load balancer that only checks the port", func(t *testing.T, address string) {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}, "level=DEBUG"},
	} {
		t.Run(name, func(t *testing.T) {
			logged := make(lines, 10)
			server := httptest.NewUnstartedServer(http.NotFoundHandler())
			server.StartTLS()
			config := server.TLS.Clone()
			server.Close()
			inner, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			config.NextProtos = []string{"http/1.1"}
			listener := envelopes{&handshakeListener{
				Listener: inner, config: config, clock: clocktesting.NewFakePassiveClock(time.Unix(0, 0)),
				log:   slog.New(slog.NewTextHandler(logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
				limit: rate.NewLimiter(rate.Every(handshakeLogEvery), handshakeLogBurst),
			}}
			api := &http.Server{Handler: http.NotFoundHandler(), ReadHeaderTimeout: headerTimeout}
			var served sync.WaitGroup
			served.Go(func() { _ = api.Serve(listener) })
			defer served.Wait()
			defer api.Close() //nolint:errcheck // the test is over
			tc.client(t, inner.Addr().String())
			if got := <-logged; !strings.Contains(got, tc.want) || !strings.Contains(got, "remote=127.0.0.1:") {
				t.Errorf("%s: %s", tc.reason, got)
			}
		})
	}
}

// TestFloodOfHandshakes makes many clients fail at once. The log stays short, and counts the suppressed lines.
func TestFloodOfHandshakes(t *testing.T) {
	var out bytes.Buffer
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	l := &handshakeListener{clock: clock, log: slog.New(slog.NewTextHandler(&out, nil)), limit: rate.NewLimiter(rate.Every(handshakeLogEvery), handshakeLogBurst)}
	fail := func(err error) { l.failed(&net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, err) }
	for range 1000 {
		fail(io.EOF) // below the log level, so it does not use up the limit
		fail(errors.New("bad certificate"))
	}
	if got := strings.Count(out.String(), "\n"); got != handshakeLogBurst {
		t.Errorf("%d lines", got)
	}
	clock.SetTime(clock.Now().Add(handshakeLogEvery))
	out.Reset()
	fail(errors.New("bad certificate"))
	if !strings.Contains(out.String(), "notLogged=995") {
		t.Errorf("got %s", &out)
	}
}

// TestEnvelopedCloseWrite closes a connection's write side. The client reads to the end, and data that it is still
// sending arrives.
func TestEnvelopedCloseWrite(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() //nolint:errcheck // the test is over
	client, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close() //nolint:errcheck // the test is over
	served, err := envelopes{listener}.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer served.Close() //nolint:errcheck // the test is over
	half, ok := served.(interface{ CloseWrite() error })
	if !ok {
		t.Fatal("net/http would close the whole connection, and a client that still sends could not read why")
	}
	if err := half.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if n, err := client.Read(make([]byte, 1)); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("the client read %d bytes, %v; want the end", n, err)
	}
	if _, err := client.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if n, err := served.Read(make([]byte, 1)); n != 1 {
		t.Errorf("read %d bytes, %v, of the client's request", n, err)
	}
}
