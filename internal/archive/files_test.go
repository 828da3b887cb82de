// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"crypto/md5"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

// oddNames are names that Kubernetes accepts for a Post.
func oddNames() []string {
	digits := strings.Repeat("0123456789", 26)
	return []string{
		"0", "7", "a.b", "a.b.c-d", "posts", "index.json", "unneeded.json", "xl.meta", "requests",
		digits[:200], digits[:200] + ".json", digits[:200] + ".a", digits[:201], digits[:235], digits[:236],
		digits[:249], digits[:250], digits[:251], digits[:252], digits[:253],
		strings.Repeat("a.", 126) + "a", strings.Repeat("a", 199) + "." + strings.Repeat("b", 53), strings.Repeat("a", 253),
	}
}

// TestOddNames stores a record and a request for each name in the real store, which keeps files on a disk.
func TestOddNames(t *testing.T) {
	a, bucket := open(t)
	ctx := t.Context()
	for _, name := range oddNames() {
		for _, text := range []string{"one", ",two"} {
			if err := a.Put(ctx, acme, name, adding(text)); err != nil {
				t.Errorf("the record of a post with the name %q, of %d characters: %v", name, len(name), err)
			}
		}
		if got, err := a.Get(ctx, acme, name); err != nil || string(got) != "one,two" {
			t.Errorf("the record of %q reads %q, %v", name, got, err)
		}
		if err := a.PutRequest(ctx, acme, name, archive.Request{UID: "u", Fingerprint: "f"}); err != nil {
			t.Errorf("the request of %q: %v", name, err)
		}
		if r, err := a.Request(ctx, acme, name); err != nil || r.UID != "u" {
			t.Errorf("the request of %q reads %+v, %v", name, r, err)
		}
	}
	want := oddNames()
	slices.SortFunc(want, archive.CompareKeys)
	if got := names(t, a, acme); !slices.Equal(got, want) {
		t.Errorf("List returned %q, want %q", got, want)
	}
	for _, name := range oddNames() {
		if err := a.Delete(ctx, acme, name); err != nil {
			t.Errorf("the removal of %q: %v", name, err)
		}
	}
	for object, err := range bucket.List(ctx, acme.Prefix()+"posts/") {
		t.Errorf("%q remains, %v", object.Key, err)
	}
}

// TestLongNameOfAnEarlierVersion covers stores that accept long keys, such as Amazon S3: there, records of such posts
// are at the keys that earlier versions used. The store in the tests rejects such keys.
func TestLongNameOfAnEarlierVersion(t *testing.T) {
	bucket := longKeys(t)
	a, name := archive.New(bucket), strings.Repeat("n", 253)
	flat := acme.Prefix() + "posts/" + name + ".json"
	if _, err := bucket.PutDocument(t.Context(), flat, "application/json", []byte("old"), ""); err != nil {
		t.Fatal(err)
	}
	if got, err := a.Get(t.Context(), acme, name); err != nil || string(got) != "old" {
		t.Errorf("the archive reads %q, %v", got, err)
	}
	if got := names(t, a, acme); !slices.Equal(got, []string{name}) {
		t.Errorf("List returned %q", got)
	}
	must.Succeed(t, a.Put(t.Context(), acme, name, adding(",new")))
	if got, err := a.Get(t.Context(), acme, name); err != nil || string(got) != "old,new" {
		t.Errorf("joined, it reads %q, %v", got, err)
	}
	must.Succeed(t, a.Delete(t.Context(), acme, name))
	if got, err := a.Get(t.Context(), acme, name); !errors.Is(err, archive.ErrNotFound) {
		t.Errorf("removed, it reads %q, %v", got, err)
	}
	if _, _, err := bucket.ReadDocument(t.Context(), flat, "", 1<<10); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the old record: %v", err)
	}
}

// longKeys returns a bucket of a store that accepts every key.
func longKeys(t *testing.T) *store.Store {
	t.Helper()
	files := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/media"), "/")
		body, there := files[key]
		w.Header().Set("ETag", fmt.Sprintf("%q", fmt.Sprintf("%x", md5.Sum([]byte(body)))))
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		switch {
		case key == "":
			list(w, files, r.URL.Query().Get("prefix"))
		case r.Method == http.MethodPut && there && r.Header.Get("If-None-Match") == "*":
			w.WriteHeader(http.StatusPreconditionFailed)
		case r.Method == http.MethodPut:
			// The body consists of one signed chunk: its size, its signature, and its bytes.
			data, _ := io.ReadAll(r.Body)
			_, chunk, _ := strings.Cut(string(data), "\r\n")
			files[key] = chunk[:strings.LastIndex(chunk, "\r\n0;")]
		case r.Method == http.MethodDelete:
			delete(files, key)
			w.WriteHeader(http.StatusNoContent)
		case !there:
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			_, _ = io.WriteString(w, body)
		}
	}))
	t.Cleanup(server.Close)
	bucket, err := store.New(store.Config{
		Endpoint: strings.TrimPrefix(server.URL, "http://"), Insecure: true, Bucket: "media", PathStyle: true, AccessKey: "a", SecretKey: "b",
	})
	must.Succeed(t, err)
	return bucket
}

func list(w io.Writer, files map[string]string, prefix string) {
	type contents struct {
		Key          string `xml:"Key"`
		LastModified string `xml:"LastModified"`
		ETag         string `xml:"ETag"`
	}
	var found struct {
		XMLName  xml.Name   `xml:"ListBucketResult"`
		Contents []contents `xml:"Contents"`
	}
	for _, key := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(key, prefix) {
			found.Contents = append(found.Contents, contents{key, time.Now().UTC().Format(time.RFC3339), "e"})
		}
	}
	_ = xml.NewEncoder(w).Encode(found)
}
