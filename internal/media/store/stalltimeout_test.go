// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/herald-social/herald/internal/media/store"
)

// roundTrip is a transport without a network, so it uses the test bubble's time.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// flow is a body that returns left bytes, with a pause before each, and then ends. An endless pause is a stall.
type flow struct {
	ctx   context.Context
	left  int
	pause time.Duration
}

func (f *flow) Read(p []byte) (int, error) {
	if f.left == 0 {
		return 0, io.EOF
	}
	if f.pause < 0 {
		<-f.ctx.Done()
		return 0, f.ctx.Err()
	}
	timer := time.NewTimer(f.pause)
	defer timer.Stop()
	select {
	case <-f.ctx.Done():
		return 0, f.ctx.Err()
	case <-timer.C:
		f.left--
		p[0] = 'a'
		return 1, nil
	}
}

func (*flow) Close() error { return nil }

const forever = -1

// answer returns a store's response with this flow.
func answer(r *http.Request, size int, pause time.Duration) *http.Response {
	header := http.Header{"Etag": {`"e"`}, "Last-Modified": {"Fri, 20 Nov 2026 12:00:00 GMT"}}
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: header,
		ContentLength: int64(size), Body: &flow{ctx: r.Context(), left: size, pause: pause}, Request: r,
	}
}

// readSlowly reads a request body, with a pause after each part.
func readSlowly(r *http.Request, pause time.Duration) error {
	part := make([]byte, 1)
	for {
		if _, err := r.Body.Read(part); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := rest(r.Context(), pause); err != nil {
			return err
		}
	}
}

// rest waits for the pause, or until ctx is done.
func rest(ctx context.Context, pause time.Duration) error {
	if pause < 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// TestStallTimeout checks when a request to a stalled store is aborted, and that one with a slow caller is not.
func TestStallTimeout(t *testing.T) {
	read := func(pause time.Duration) func(context.Context, *store.Store) error {
		return func(ctx context.Context, files *store.Store) error {
			body, err := files.Open(ctx, "team/a", "e", 0, 64)
			if err != nil {
				return err
			}
			defer func() { _ = body.Close() }() // Close errors do not affect the data read.
			for part := make([]byte, 1); ; {
				if _, err := body.Read(part); errors.Is(err, io.EOF) {
					return nil
				} else if err != nil {
					return err
				}
				if err := rest(ctx, pause); err != nil {
					return err
				}
			}
		}
	}
	put := func(size int, pause time.Duration) func(context.Context, *store.Store) error {
		return func(ctx context.Context, files *store.Store) error {
			_, err := files.Put(ctx, "team/a", "image/png", int64(size), &flow{ctx: ctx, left: size, pause: pause})
			return err
		}
	}
	serves := func(size int, pause time.Duration) roundTrip {
		return func(r *http.Request) (*http.Response, error) { return answer(r, size, pause), nil }
	}
	takes := func(pause time.Duration) roundTrip {
		return func(r *http.Request) (*http.Response, error) {
			if err := readSlowly(r, pause); err != nil {
				return nil, err
			}
			return answer(r, 0, 0), nil
		}
	}
	silent := roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	swallows := roundTrip(func(r *http.Request) (*http.Response, error) {
		if err := readSlowly(r, 0); err != nil {
			return nil, err
		}
		return silent(r)
	})
	stat := func(ctx context.Context, files *store.Store) error {
		_, err := files.Stat(ctx, "team/a")
		return err
	}
	for name, tc := range map[string]struct {
		reason string
		way    roundTrip
		do     func(context.Context, *store.Store) error
		// after is the time until the abort, or zero if there is none.
		after time.Duration
	}{
		"sends nothing":        {"the bytes stop after the header", serves(64, forever), read(0), store.DefaultStall},
		"dribbles":             {"single bytes are not progress", serves(64, 20*time.Second), read(0), store.TimeoutFor(64)},
		"is slow":              {"a slow store is not stalled", serves(5, 20*time.Second), read(0), 0},
		"has a slow reader":    {"a platform may read each part slowly", serves(64, 0), read(time.Hour), 0},
		"accepts no bytes":     {"uploads need progress", takes(forever), put(64, 0), store.DefaultStall},
		"accepts bytes slowly": {"an upload has a total time limit", takes(20 * time.Second), put(64, 0), store.TimeoutFor(64)},
		"has a slow source":    {"a source has its own limits", takes(0), put(8, time.Hour), 0},
		"sends no response":    {"requests without a body have a time limit", silent, stat, store.TimeoutFor(0)},
		"does not delete":      {"a deletion has a time limit", silent, func(ctx context.Context, files *store.Store) error { return files.Delete(ctx, "team/a") }, store.TimeoutFor(0)},
		"answers no PUT":       {"a missing response after the body has a time limit", swallows, put(8, 0), store.TimeoutFor(0)},
		"lists without end":    {"a listing needs progress", serves(64, forever), firstError, store.DefaultStall},
		"lists and is silent":  {"a missing response header has a time limit", silent, firstError, 3 * store.TimeoutFor(0)},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				files := open(t, store.Config{Endpoint: "s.example", Bucket: "herald", AccessKey: "a", SecretKey: "b", PathStyle: true, Insecure: true, Transport: tc.way})
				started := time.Now()
				err := tc.do(t.Context(), files)
				switch took := time.Since(started); {
				case tc.after == 0 && err != nil:
					t.Errorf("%s: stopped after %s: %v", tc.reason, took, err)
				case tc.after > 0 && (err == nil || took < tc.after || took > tc.after+10*time.Second):
					t.Errorf("%s: %v after %s, want an error after %s and the pauses between tries", tc.reason, err, took, tc.after)
				}
			})
		})
	}
}

// firstError lists the files, and returns the first error.
func firstError(ctx context.Context, files *store.Store) error {
	for _, err := range files.List(ctx, "") {
		if err != nil {
			return err
		}
	}
	return nil
}

// TestTimeoutGrowsWithSize checks that a large file has a longer timeout.
func TestTimeoutGrowsWithSize(t *testing.T) {
	if small, large := store.TimeoutFor(1), store.TimeoutFor(1<<30); small != 2*time.Minute || large != small+8192*time.Second {
		t.Errorf("a byte has %s, and 1 GiB %s, want 128 KiB a second", small, large)
	}
}
