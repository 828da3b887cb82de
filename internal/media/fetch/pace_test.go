// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// chunks is a server that sends the given number of bytes after each pause.
type chunks struct {
	ctx   context.Context
	pause time.Duration
	size  int
	left  int
}

func (c *chunks) Read(b []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	select {
	case <-time.After(c.pause):
	case <-c.ctx.Done():
		return 0, c.ctx.Err()
	}
	n := min(c.size, c.left, len(b))
	c.left -= n
	return n, nil
}

func TestPace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason       string
		pause, store time.Duration
		size, whole  int
		// ends is the time until the download is aborted, or zero for never.
		ends time.Duration
	}{
		"quick":          {"ten megabytes in ten seconds", time.Second, 0, 1 << 20, 10 << 20, 0},
		"just as quick":  {"the minimum speed suffices, for ten minutes", time.Second, 0, MinSpeed, 600 * MinSpeed, 0},
		"a byte a time":  {"every second, for a day", time.Second, 0, 1, 86_400, 31 * time.Second},
		"half as quick":  {"half of the time is refunded", time.Second, 0, MinSpeed / 2, 600 * MinSpeed, time.Minute},
		"silent":         {"no bytes follow the header", time.Hour, 0, 1, 1, DefaultStallTimeout},
		"with pauses":    {"each pause of 29 s is followed by 29 s worth of bytes", 29 * time.Second, 0, 29 * MinSpeed, 290 * MinSpeed, 0},
		"a slow store":   {"waits are its own, and the server is quick", 0, time.Minute, MinSpeed, 10 * MinSpeed, 0},
		"small and slow": {"complete before the timeout", time.Second, 0, 1, 29, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				body := &paced{
					from: &chunks{ctx: ctx, pause: tc.pause, size: tc.size, left: tc.whole}, clock: clock.RealClock{}, full: DefaultStallTimeout, left: DefaultStallTimeout, end: end,
				}
				began, read, buffer := time.Now(), 0, make([]byte, 64<<20)
				for {
					n, err := body.Read(buffer)
					read += n
					if errors.Is(err, io.EOF) {
						err = nil
						if tc.ends > 0 || read != tc.whole {
							t.Errorf("%s: %d of %d bytes were read, %v", tc.reason, read, tc.whole, err)
						}
						return
					}
					if err != nil {
						if took := time.Since(began); tc.ends == 0 || took > tc.ends+time.Second || took < tc.ends-2*time.Second || !errors.Is(err, errSlow) {
							t.Errorf("%s: stopped after %s, want %s: %v", tc.reason, took, tc.ends, err)
						}
						return
					}
					time.Sleep(tc.store) //nolint:forbidigo // in a bubble
				}
			})
		})
	}
}

// TestTrickle checks that a download is aborted if the server sends a byte and then nothing.
func TestTrickle(t *testing.T) {
	t.Parallel()
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, "0")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	client := trusting(s, Options{Allow: anywhere, StallTimeout: 50 * time.Millisecond})
	err := client.Get(t.Context(), s.URL, Expected{MIMEType: "image/png", MaxSize: 1 << 20}, func(_ context.Context, _ int64, body io.Reader) error {
		_, err := io.Copy(io.Discard, body)
		return err
	})
	problem, ok := errors.AsType[*DownloadError](err)
	if !ok || problem.Final || problem.Message != "the server sends less than 16 KiB per second" {
		t.Errorf("the download ends with %v (%+v)", err, problem)
	}
}
