// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package hostile_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/herald-social/herald/internal/media/fetch"
)

// sources fetches files from servers that send a byte now and then, or nothing at all. The manager connects only to
// public addresses, so the test uses just its client, with a shorter timeout. TestTurns in controllers/media covers how
// the sources of teams affect each other.
func sources(t *testing.T, _ *target) {
	for _, tc := range []struct {
		name, reason string
		pause        time.Duration
	}{
		{"a byte now and then", "so that no read waits for long", 10 * time.Millisecond},
		{"silence after the header", "so that one read waits for ever", time.Hour},
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
						return errors.Join(errors.New("the download does not end as one whose server is too slow"), err)
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
