// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package kubeclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/kubeclient"
	"github.com/herald-social/herald/test/must"
)

// server lists objects with the given sizes in pages, like the Kubernetes API.
type server struct {
	sizes []int
	// limits are the limits of the requested pages, and largest is the size in bytes of the largest page that was read to
	// its end.
	limits  []int64
	largest int
	seen    []int
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	end := min(at+limit, len(s.sizes))
	bytes := 0
	for _, size := range s.sizes[at:end] {
		bytes += size
	}
	w.Header().Set("Next", strconv.Itoa(end%len(s.sizes)))
	_, _ = io.Copy(w, io.LimitReader(zeros{}, int64(bytes)))
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// read lists all objects with a client whose transport may be wrapped.
func (s *server) read(t *testing.T, wrap func(http.RoundTripper) http.RoundTripper) error {
	t.Helper()
	served := httptest.NewServer(s)
	t.Cleanup(served.Close)
	client := &http.Client{Transport: wrap(&http.Transport{})}
	return kubeclient.EachPage(t.Context(), func(ctx context.Context, page kubeclient.Page) (string, error) {
		s.limits = append(s.limits, page.Limit)
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("%s?limit=%d&continue=%s", served.URL, page.Limit, page.Continue), http.NoBody)
		if err != nil {
			return "", err
		}
		resp, err := client.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = resp.Body.Close() }()
		n, err := io.Copy(io.Discard, resp.Body)
		if err != nil {
			return "", err
		}
		s.largest = max(s.largest, int(n))
		at, _ := strconv.Atoi(page.Continue)
		for i := at; i < min(at+int(page.Limit), len(s.sizes)); i++ {
			s.seen = append(s.seen, i)
		}
		next := resp.Header.Get("Next")
		return strings.TrimPrefix(next, "0"), nil
	})
}

func objects(count, size int) []int {
	sizes := make([]int, count)
	for i := range sizes {
		sizes[i] = size
	}
	return sizes
}

func TestEach(t *testing.T) {
	for _, tt := range []struct {
		reason  string
		sizes   []int
		largest int
		pages   int
	}{
		{"twenty thousand small objects need few requests", objects(20_000, 1_000), kubeclient.MaxPageBytes, 15},
		{"large objects need several pages", objects(100, 300<<10), kubeclient.MaxPageBytes, 10},
		{"objects from an older version may exceed the limit", objects(30, 1_300<<10), kubeclient.MaxPageBytes, 14},
		{"large objects after two thousand small ones are split over several pages", append(objects(3_000, 500), objects(60, 300<<10)...), kubeclient.MaxPageBytes, 20},
		{"an object larger than a page is read alone", append(objects(60, 100), 9<<20, 100), 9 << 20, 16},
		{"no objects", []int{0}, 0, 1},
	} {
		s := &server{sizes: tt.sizes}
		if err := s.read(t, kubeclient.WrapTransport); err != nil {
			t.Fatalf("%s: %v", tt.reason, err)
		}
		if len(s.seen) != len(tt.sizes) {
			t.Errorf("%s: %d objects of %d were read", tt.reason, len(s.seen), len(tt.sizes))
		}
		for i, at := range s.seen {
			if i != at {
				t.Fatalf("%s: object %d is at index %d", tt.reason, at, i)
			}
		}
		if s.largest > tt.largest {
			t.Errorf("%s: a page of %d bytes was read, want at most %d", tt.reason, s.largest, tt.largest)
		}
		if len(s.limits) > tt.pages {
			t.Errorf("%s: %d requests, want at most %d: %v", tt.reason, len(s.limits), tt.pages, s.limits)
		}
	}
}

// TestEachWithoutCount uses a client without the wrapped transport: pages stay as small as the first.
func TestEachWithoutCount(t *testing.T) {
	s := &server{sizes: objects(500, 10)}
	must.Succeed(t, s.read(t, func(next http.RoundTripper) http.RoundTripper { return next }))
	if len(s.limits) != 10 || s.limits[9] != 50 {
		t.Errorf("got pages of %v, want ten of 50", s.limits)
	}
}

func TestEachFails(t *testing.T) {
	want := errors.New("no list today")
	got := kubeclient.EachPage(t.Context(), func(context.Context, kubeclient.Page) (string, error) { return "", want })
	if !errors.Is(got, want) {
		t.Errorf("got %v, want the client's error", got)
	}
}

// TestCountIgnoresWatches reads a response that is not one of EachPage's pages: a watch, whose body never ends,
// must not be read ahead.
func TestCountIgnoresWatches(t *testing.T) {
	release := make(chan struct{})
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "event")
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer served.Close()
	defer close(release)
	resp, err := (&http.Client{Transport: kubeclient.WrapTransport(&http.Transport{})}).Get(served.URL)
	must.Succeed(t, err)
	defer func() { _ = resp.Body.Close() }()
	got := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != "event" {
		t.Errorf("got %q, %v", got, err)
	}
}
