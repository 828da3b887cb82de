// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// upper rewrites a file in upper case.
type upper struct{ io.ReadCloser }

func (u upper) Read(p []byte) (int, error) {
	n, err := u.ReadCloser.Read(p)
	copy(p[:n], strings.ToUpper(string(p[:n])))
	return n, err
}

// rewriting counts the reads of a file.
func rewriting(reads *atomic.Int64, size int) store.Rewriting {
	return store.Rewriting{Name: "upper", MIMEType: "image/png", Size: int64(size), Through: func(body io.ReadCloser) io.ReadCloser {
		reads.Add(1)
		return upper{body}
	}}
}

// A URL serves the verified file, rewritten once.
func TestRewritten(t *testing.T) {
	files := open(t, storetest.Start(t))
	const content = "a picture"
	var reads atomic.Int64
	file, err := files.Put(t.Context(), "team/a", "image/png", int64(len(content)), strings.NewReader(content))
	must.Succeed(t, err)
	keys := make([]string, 8)
	var all sync.WaitGroup
	for i := range keys {
		all.Go(func() {
			key, err := files.Rewritten(t.Context(), file.Key, file.ETag, rewriting(&reads, len(content)))
			if err != nil {
				t.Error(err)
			}
			keys[i] = key
		})
	}
	all.Wait()
	if n := reads.Load(); n != 1 {
		t.Errorf("the file was read %d times for %d who wanted it", n, len(keys))
	}
	if body, mimeType := fetched(t, files, keys[0]); body != "A PICTURE" || mimeType != "image/png" {
		t.Errorf("the copy is %q, %s", body, mimeType)
	}
	another := open(t, storetest.Start(t))
	if _, err := another.Rewritten(t.Context(), file.Key, file.ETag, rewriting(&reads, len(content))); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("in a store without the file: %v", err)
	}
	must.Succeed(t, files.DeleteAll(t.Context(), file.Key))
	if object, err := files.Stat(t.Context(), keys[0]); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the copy is not deleted with the file: %+v, %v", object, err)
	}
}

// Another process finds the rewritten copy, even if the file has been overwritten since.
func TestRewrittenCopyIsReused(t *testing.T) {
	config := storetest.Start(t)
	files := open(t, config)
	const content = "a picture"
	var reads atomic.Int64
	file, err := files.Put(t.Context(), "team/a", "image/png", int64(len(content)), strings.NewReader(content))
	must.Succeed(t, err)
	key, err := files.Rewritten(t.Context(), file.Key, file.ETag, rewriting(&reads, len(content)))
	must.Succeed(t, err)
	address, _, err := files.PresignPut(t.Context(), file.Key, "image/png", int64(len("others")))
	must.Succeed(t, err)
	if status := put(t, address, "image/png", "others"); status != http.StatusOK {
		t.Fatalf("overwritten: %d", status)
	}
	again, err := open(t, config).Rewritten(t.Context(), file.Key, file.ETag, rewriting(&reads, len(content)))
	if err != nil || again != key || reads.Load() != 1 {
		t.Errorf("%q, %v after %d reads, want %q after one", again, err, reads.Load(), key)
	}
	must.Succeed(t, files.Delete(t.Context(), key))
	if _, err := open(t, config).Rewritten(t.Context(), file.Key, file.ETag, rewriting(&reads, len(content))); !errors.Is(err, store.ErrChanged) {
		t.Errorf("an overwritten file: %v", err)
	}
}
