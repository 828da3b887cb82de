// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// counted counts requests to the store, by method.
type counted struct {
	http.Transport

	mu   sync.Mutex
	seen map[string]int
}

func (c *counted) RoundTrip(req *http.Request) (*http.Response, error) {
	c.mu.Lock()
	c.seen[req.Method]++
	c.mu.Unlock()
	return c.Transport.RoundTrip(req)
}

// drain returns the counts since the last call.
func (c *counted) drain() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	seen := c.seen
	c.seen = map[string]int{}
	return seen
}

// fetched reads a file from a URL, as a platform does.
func fetched(t *testing.T, files *store.Store, key string) (body, mimeType string) {
	t.Helper()
	address, err := files.PresignGet(t.Context(), key, time.Hour)
	must.Succeed(t, err)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	must.Succeed(t, err)
	response, err := new(http.Client).Do(req)
	must.Succeed(t, err)
	defer func() { _ = response.Body.Close() }() // close errors do not affect the data read
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("fetched %q, status %d, %v", data, response.StatusCode, err)
	}
	return string(data), response.Header.Get("Content-Type")
}

// A missing bucket must not look like a changed or missing file.
func TestVerifiedInAMissingBucket(t *testing.T) {
	config := storetest.Start(t)
	config.Bucket = "another"
	files := open(t, config)
	for _, overwritable := range []bool{true, false} {
		_, err := files.Verified(t.Context(), "team/a", "e", overwritable)
		if err == nil || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrChanged) {
			t.Errorf("overwritable %v: %v", overwritable, err)
		}
	}
}

// A URL for a later fetch serves the verified file, regardless of what its client does in the meantime.
func TestVerified(t *testing.T) {
	files := open(t, storetest.Start(t))
	uploaded := func(t *testing.T, key, content string) store.Object {
		t.Helper()
		object, err := files.Put(t.Context(), key, "image/png", int64(len(content)), strings.NewReader(content))
		must.Succeed(t, err)
		return object
	}
	overwrite := func(t *testing.T, key string) {
		t.Helper()
		address, _, err := files.PresignPut(t.Context(), key, "image/png", int64(len("others")))
		must.Succeed(t, err)
		if status := put(t, address, "image/png", "others"); status != http.StatusOK {
			t.Fatalf("overwritten: %d", status)
		}
	}

	t.Run("a file that may be overwritten, afterwards", func(t *testing.T) {
		file := uploaded(t, "team/after", "a picture")
		key, err := files.Verified(t.Context(), file.Key, file.ETag, true)
		must.Succeed(t, err)
		overwrite(t, file.Key)
		if body, mimeType := fetched(t, files, key); body != "a picture" || mimeType != "image/png" {
			t.Errorf("%s contains %q, %s", key, body, mimeType)
		}
		if again, err := files.Verified(t.Context(), file.Key, file.ETag, false); again != key || err != nil {
			t.Errorf("later %q, %v; the copy exists already", again, err)
		}
		must.Succeed(t, files.DeleteAll(t.Context(), file.Key))
		if object, err := files.Stat(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("the copy is not deleted with the file: %+v, %v", object, err)
		}
	})

	t.Run("another of the same key", func(t *testing.T) {
		one := uploaded(t, "team/two", "one")
		first, err := files.Verified(t.Context(), one.Key, one.ETag, true)
		must.Succeed(t, err)
		two := uploaded(t, "team/two", "two")
		second, err := files.Verified(t.Context(), two.Key, two.ETag, true)
		if err != nil || first == second {
			t.Fatalf("%q and %q, %v", first, second, err)
		}
		for key, want := range map[string]string{first: "one", second: "two"} {
			if body, _ := fetched(t, files, key); body != want {
				t.Errorf("%s contains %q, want %q", key, body, want)
			}
		}
	})

	t.Run("a file that cannot be overwritten", func(t *testing.T) {
		file := uploaded(t, "team/kept", "a picture")
		if key, err := files.Verified(t.Context(), file.Key, file.ETag, false); key != file.Key || err != nil {
			t.Errorf("got %q, %v; it needs no copy", key, err)
		}
	})

	for _, overwritable := range []bool{true, false} {
		t.Run(fmt.Sprintf("one that is not there, overwritable %v", overwritable), func(t *testing.T) {
			file := uploaded(t, fmt.Sprintf("team/changed-%v", overwritable), "a picture")
			overwrite(t, file.Key)
			if key, err := files.Verified(t.Context(), file.Key, file.ETag, overwritable); !errors.Is(err, store.ErrChanged) {
				t.Errorf("overwritten before: %q, %v", key, err)
			}
			if key, err := files.Verified(t.Context(), "team/none", file.ETag, overwritable); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("a deleted file: %q, %v", key, err)
			}
			for object, err := range files.List(t.Context(), store.Derived(file.Key, "")) {
				t.Errorf("%+v remains, %v", object, err)
			}
		})
	}
}

// The store is called only once for each file, even if many posts show it at once, and again after a long time, since
// the copy may have been deleted.
func TestVerifiedCallsTheStoreOnce(t *testing.T) {
	config := storetest.Start(t)
	requests := &counted{seen: map[string]int{}}
	now := clocktesting.NewFakePassiveClock(time.Now())
	config.Transport, config.Clock = requests, now
	files := open(t, config)
	for name, tc := range map[string]struct {
		reason       string
		overwritable bool
		first, later map[string]int
	}{
		"copied":     {"a look for the copy, and the copy", true, map[string]int{http.MethodHead: 1, http.MethodPut: 1}, map[string]int{http.MethodHead: 1}},
		"not copied": {"a check of the file", false, map[string]int{http.MethodHead: 1}, map[string]int{http.MethodHead: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			key := "team/" + strings.ReplaceAll(name, " ", "-")
			file, err := files.Put(t.Context(), key, "image/png", 1, strings.NewReader("a"))
			must.Succeed(t, err)
			requests.drain()
			ask := func() {
				if _, err := files.Verified(t.Context(), key, file.ETag, tc.overwritable); err != nil {
					t.Error(err)
				}
			}
			ask()
			var posts sync.WaitGroup
			for range 5 {
				posts.Go(ask)
			}
			posts.Wait()
			if diff := cmp.Diff(tc.first, requests.drain()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			now.SetTime(now.Now().Add(2 * time.Hour))
			ask()
			if diff := cmp.Diff(tc.later, requests.drain()); diff != "" {
				t.Errorf("later (-want +got):\n%s", diff)
			}
		})
	}
}

// otherStore responds like a store that copies without checking the condition, or that gives copies their own etags.
type otherStore struct {
	mu sync.Mutex
	// source is the file's etag, and copied is its copy's, or empty if there is none. gives is the etag of a new copy.
	source, copied, gives string
}

func (o *otherStore) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	etag := &o.source
	if strings.Contains(r.URL.Path, ".") {
		etag = &o.copied
	}
	switch {
	case r.Method == http.MethodPut:
		o.copied = o.gives
		_, _ = fmt.Fprintf(w, `<CopyObjectResult><ETag>%q</ETag><LastModified>2026-11-20T12:00:00Z</LastModified></CopyObjectResult>`, o.gives)
	case r.Method == http.MethodDelete:
		*etag = ""
		w.WriteHeader(http.StatusNoContent)
	case *etag == "":
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `<Error><Code>NoSuchKey</Code></Error>`)
	default:
		w.Header().Set("ETag", fmt.Sprintf("%q", *etag))
		w.Header().Set("Last-Modified", "Fri, 20 Nov 2026 12:00:00 GMT")
	}
}

func TestVerifiedOnOtherStores(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		server *otherStore
		err    error
		copied string
	}{
		"no conditions, as verified": {"the copy has the right etag", &otherStore{source: "good", gives: "good"}, nil, "good"},
		"no conditions, overwritten": {"the copied content was not verified", &otherStore{source: "bad", gives: "bad"}, store.ErrChanged, ""},
		"other etags":                {"the file is unchanged", &otherStore{source: "good", gives: "own"}, nil, "own"},
		"left by a crash":            {"the copy may differ from the verified file", &otherStore{source: "good", copied: "bad", gives: "good"}, nil, "good"},
	} {
		t.Run(name, func(t *testing.T) {
			site := httptest.NewServer(tc.server)
			defer site.Close()
			files := open(t, store.Config{
				Endpoint: strings.TrimPrefix(site.URL, "http://"), Bucket: "herald", AccessKey: "a", SecretKey: "b", PathStyle: true, Insecure: true,
			})
			if _, err := files.Verified(t.Context(), "team/a", "good", true); !errors.Is(err, tc.err) {
				t.Errorf("%s: %v", tc.reason, err)
			}
			if tc.server.copied != tc.copied {
				t.Errorf("%s: the copy has the etag %q", tc.reason, tc.server.copied)
			}
		})
	}
}

// A caller that stops waiting for a copy gets an error, but the copy is still made.
func TestVerifiedOutlivesItsCaller(t *testing.T) {
	config := storetest.Start(t)
	files := open(t, config)
	file, err := files.Put(t.Context(), "team/a", "image/png", 1, strings.NewReader("a"))
	must.Succeed(t, err)
	way := &blocked{counted: counted{seen: map[string]int{}}, arrived: make(chan struct{}), open: make(chan struct{})}
	config.Transport = way
	slow := open(t, config)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		_, err := slow.Verified(ctx, file.Key, file.ETag, true)
		left <- err
	}()
	<-way.arrived
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the cancelled caller got %v", err)
	}
	close(way.open)
	key, err := slow.Verified(t.Context(), file.Key, file.ETag, true)
	must.Succeed(t, err)
	if body, _ := fetched(t, files, key); body != "a" {
		t.Errorf("copied %q", body)
	}
	if diff := cmp.Diff(map[string]int{http.MethodHead: 1, http.MethodPut: 1}, way.drain()); diff != "" {
		t.Errorf("unexpected requests (-want +got):\n%s", diff)
	}
}

// blocked is a transport that blocks until it is opened.
type blocked struct {
	counted

	once          sync.Once
	arrived, open chan struct{}
}

func (b *blocked) RoundTrip(req *http.Request) (*http.Response, error) {
	b.once.Do(func() { close(b.arrived) })
	<-b.open
	return b.counted.RoundTrip(req)
}
