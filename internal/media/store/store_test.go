// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// put sends a body only once the store accepts it. If the store rejected it midway, the connection would be cut and the
// response lost.
func put(t *testing.T, address, mimeType, body string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, strings.NewReader(body))
	must.Succeed(t, err)
	if mimeType != "" {
		req.Header.Set("Content-Type", mimeType)
	}
	req.Header.Set("Expect", "100-continue")
	patient := http.Client{Transport: &http.Transport{ExpectContinueTimeout: time.Minute}}
	defer patient.CloseIdleConnections()
	response, err := patient.Do(req)
	if errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) {
		return cut
	}
	must.Succeed(t, err)
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

// cut is the status of a request whose connection was closed before the response was read: a store need not read a body
// that it rejects.
const cut = 0

// putUnsized sends a body in chunks, without its length.
func putUnsized(t *testing.T, address string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, address, io.LimitReader(strings.NewReader(strings.Repeat("a", 1<<20)), 1<<20))
	must.Succeed(t, err)
	req.Header.Set("Content-Type", "image/png")
	response, err := new(http.Client).Do(req)
	if err != nil {
		return http.StatusBadRequest // the store cut the connection
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

func TestStore(t *testing.T) {
	files := open(t, storetest.Start(t))

	t.Run("a presigned URL accepts exactly its type and size", func(t *testing.T) {
		address, _, err := files.PresignPut(t.Context(), "team/a", "image/png", 10)
		must.Succeed(t, err)
		for mimeType, want := range map[string]int{"image/jpeg": http.StatusForbidden, "": http.StatusForbidden, "image/png": http.StatusOK} {
			if got := put(t, address, mimeType, "0123456789"); got != want {
				t.Errorf("type %q: status %d, want %d", mimeType, got, want)
			}
		}
		for _, body := range []string{"", "012345678", "0123456789a", strings.Repeat("a", 1<<20)} {
			if got := put(t, address, "image/png", body); got != http.StatusForbidden && got != cut {
				t.Errorf("%d bytes: status %d, want 403", len(body), got)
			}
		}
		if got := putUnsized(t, address); got < 400 {
			t.Errorf("a body without a length: status %d", got)
		}
		object, err := files.Stat(t.Context(), "team/a")
		if err != nil || object.Size != 10 || object.ContentType != "image/png" || object.ETag == "" || object.ModifiedAt.IsZero() {
			t.Errorf("found %+v, %v", object, err)
		}
	})

	t.Run("a missing file", func(t *testing.T) {
		if _, err := files.Stat(t.Context(), "team/none"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
		if err := files.Delete(t.Context(), "team/none"); err != nil {
			t.Errorf("removed: %v", err)
		}
		if _, err := files.ReaderAt(t.Context(), "team/none", "e", 1).ReadAt(make([]byte, 1), 0); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("read: %v", err)
		}
	})

	t.Run("parts", func(t *testing.T) {
		object, err := files.Put(t.Context(), "team/parts", "video/mp4", 10, strings.NewReader("0123456789"))
		must.Succeed(t, err)
		reader := files.ReaderAt(t.Context(), "team/parts", object.ETag, 10)
		all, err := io.ReadAll(io.NewSectionReader(reader, 0, 10))
		if err != nil || string(all) != "0123456789" {
			t.Errorf("the whole file: %q, %v", all, err)
		}
		for name, tc := range map[string]struct {
			off  int64
			n    int
			want string
			err  error
		}{
			"middle":     {3, 4, "3456", nil},
			"end":        {8, 2, "89", nil},
			"past it":    {8, 4, "89", io.EOF},
			"beyond":     {10, 1, "", io.EOF},
			"far beyond": {1 << 40, 1, "", io.EOF},
			"empty":      {3, 0, "", nil},
		} {
			p := make([]byte, tc.n)
			n, err := reader.ReadAt(p, tc.off)
			if string(p[:n]) != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("%s: %q, %v", name, p[:n], err)
			}
		}
		if _, err := reader.ReadAt(make([]byte, 1), -1); err == nil {
			t.Error("before the start")
		}
	})

	t.Run("a replaced file under the same key", func(t *testing.T) {
		first, err := files.Put(t.Context(), "team/changed", "image/png", 1, strings.NewReader("a"))
		must.Succeed(t, err)
		if _, err := files.Put(t.Context(), "team/changed", "image/png", 1, strings.NewReader("b")); err != nil {
			t.Fatal(err)
		}
		if _, err := files.ReaderAt(t.Context(), "team/changed", first.ETag, 1).ReadAt(make([]byte, 1), 0); !errors.Is(err, store.ErrChanged) {
			t.Errorf("read: %v", err)
		}
	})

	t.Run("a file that ends early is not stored", func(t *testing.T) {
		boom := errors.New("boom")
		_, err := files.Put(t.Context(), "team/cut", "image/png", 10, io.MultiReader(strings.NewReader("01234"), failing{boom}))
		if err == nil {
			t.Error("no error")
		}
		if _, err := files.Stat(t.Context(), "team/cut"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("got %v", err)
		}
	})

	t.Run("a large file", func(t *testing.T) {
		const size = 40 << 20
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		object, err := files.Put(t.Context(), "team/large", "video/mp4", size, io.LimitReader(zeros{}, size))
		runtime.ReadMemStats(&after)
		if allocated := after.TotalAlloc - before.TotalAlloc; allocated > size/8 {
			t.Errorf("%d bytes were allocated: the file is not streamed", allocated)
		}
		if err != nil || object.Size != size {
			t.Fatalf("stored %+v, %v", object, err)
		}
		tail := make([]byte, 3)
		if _, err := files.ReaderAt(t.Context(), "team/large", object.ETag, size).ReadAt(tail, size-3); err != nil || !bytes.Equal(tail, make([]byte, 3)) {
			t.Errorf("read %v, %v", tail, err)
		}
	})

	t.Run("tags", func(t *testing.T) {
		tags := map[string]string{"width": "64", "height": "48"}
		for key, want := range map[string]map[string]string{"team/tagged": tags, "team/untagged": nil} {
			if _, err := files.PutTagged(t.Context(), key, "image/png", 1, strings.NewReader("x"), want); err != nil {
				t.Fatal(err)
			}
			object, err := files.Stat(t.Context(), key)
			if diff := cmp.Diff(want, object.Tags); diff != "" || err != nil {
				t.Errorf("%s: %v (-want +got):\n%s", key, err, diff)
			}
		}
	})

	t.Run("derived files", func(t *testing.T) {
		all := []string{"made/a", store.Derived("made/a", "one"), store.Derived("made/a", "two"), "made/ab", store.Derived("made/ab", "one")}
		for _, key := range all {
			if _, err := files.Put(t.Context(), key, "image/png", 1, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 { // The second time there is nothing left.
			must.Succeed(t, files.DeleteAll(t.Context(), "made/a"))
		}
		var left []string
		for object, err := range files.List(t.Context(), "made/") {
			must.Succeed(t, err)
			left = append(left, object.Key)
		}
		if diff := cmp.Diff(all[3:], left); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})

	t.Run("a listing", func(t *testing.T) {
		for _, key := range []string{"list/b", "list/a", "lists/c"} {
			if _, err := files.Put(t.Context(), key, "image/png", 1, strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		var keys []string
		for object, err := range files.List(t.Context(), "list/") {
			if err != nil || object.Size != 1 || object.ETag == "" || object.ModifiedAt.IsZero() {
				t.Fatalf("listed %+v, %v", object, err)
			}
			keys = append(keys, object.Key)
		}
		if diff := cmp.Diff([]string{"list/a", "list/b"}, keys); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, err := range files.List(t.Context(), "list/") {
			must.Succeed(t, err)
			break // A caller may stop early.
		}
		must.Succeed(t, files.Delete(t.Context(), "list/a"))
		if _, err := files.Stat(t.Context(), "list/a"); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("removed, but: %v", err)
		}
	})
}

// A missing bucket must not look like missing files: otherwise a typo would reject all media.
func TestMissingBucketIsNotAMissingFile(t *testing.T) {
	config := storetest.Start(t)
	config.Bucket = "another"
	files := open(t, config)
	if _, err := files.ReaderAt(t.Context(), "team/a", "e", 1).ReadAt(make([]byte, 1), 0); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("read: %v", err)
	}
	if _, err := files.Stat(t.Context(), "team/a"); err == nil || errors.Is(err, store.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func TestPresignedURLsArePublic(t *testing.T) {
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	files := open(t, store.Config{
		Endpoint: "store.internal:9000", PublicEndpoint: "media.example.com", Region: "eu-central-1", Bucket: "herald", Insecure: true,
		AccessKey: "key", SecretKey: "secret", Clock: clocktesting.NewFakePassiveClock(noon),
	})
	address, expires, err := files.PresignPut(t.Context(), "team/a", "image/png", 10)
	must.Succeed(t, err)
	u, err := url.Parse(address)
	must.Succeed(t, err)
	query := u.Query()
	got := []string{u.Scheme, u.Host, u.Path, query.Get("X-Amz-Expires"), query.Get("X-Amz-SignedHeaders")}
	if diff := cmp.Diff([]string{"https", "herald.media.example.com", "/team/a", "900", "content-length;content-type;host"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !expires.Equal(noon.Add(15 * time.Minute)) {
		t.Errorf("ends at %s", expires)
	}
	if strings.Contains(address, "secret") || !strings.Contains(address, "eu-central-1") {
		t.Errorf("address %s", address)
	}
}

func TestNewRequiresFields(t *testing.T) {
	for _, c := range []store.Config{
		{}, {Endpoint: "a", Bucket: "b", AccessKey: "c"}, {Endpoint: "https://a", Bucket: "b", AccessKey: "c", SecretKey: "d"},
	} {
		if _, err := store.New(c); err == nil {
			t.Errorf("accepted: %+v", c)
		}
	}
}

func open(t *testing.T, c store.Config) *store.Store {
	t.Helper()
	files, err := store.New(c)
	must.Succeed(t, err)
	return files
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
