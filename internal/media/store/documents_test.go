// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/storetest"
)

// TestDocuments checks that a document is written only if its condition holds, in the real store.
func TestDocuments(t *testing.T) {
	files := open(t, storetest.Start(t))
	const key, text = "_herald/archive/team/acme/index", "application/json"
	put := func(data, etag string) (string, error) {
		t.Helper()
		return files.PutDocument(t.Context(), key, text, []byte(data), etag)
	}
	if _, err := put("0", "0123456789abcdef0123456789abcdef"); !errors.Is(err, store.ErrChanged) {
		t.Errorf("replacing a missing document: %v", err)
	}
	first, err := put("1", "")
	if err != nil || first == "" {
		t.Fatalf("in an empty bucket: %q, %v", first, err)
	}
	if _, err := put("2", ""); !errors.Is(err, store.ErrChanged) {
		t.Errorf("creating an existing document: %v", err)
	}
	second, err := put("22", first)
	if err != nil || second == first {
		t.Fatalf("in the place of the first: %q, %v", second, err)
	}
	if _, err := put("3", first); !errors.Is(err, store.ErrChanged) {
		t.Errorf("replacing a changed document: %v", err)
	}
	if data, etag, err := files.ReadDocument(t.Context(), key, "", 2); string(data) != "22" || etag != second || err != nil {
		t.Errorf("read %q, etag %q, %v; want the second", data, etag, err)
	}
	if data, etag, err := files.ReadDocument(t.Context(), key, first, 2); string(data) != "22" || etag != second || err != nil {
		t.Errorf("knowing the first, read %q, etag %q, %v; want the second", data, etag, err)
	}
	if _, etag, err := files.ReadDocument(t.Context(), key, second, 2); !errors.Is(err, store.ErrSame) || etag != second {
		t.Errorf("knowing the second: etag %q, %v", etag, err)
	}
	if _, _, err := files.ReadDocument(t.Context(), key, "", 1); !errors.Is(err, store.ErrTooLarge) {
		t.Errorf("a document that is too large: %v", err)
	}
	if _, _, err := files.ReadDocument(t.Context(), key+"-none", "", 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("reading a missing document: %v", err)
	}
	third, err := put("3", store.Any)
	if err != nil || third == second {
		t.Errorf("without a condition: %q, %v", third, err)
	}
	none := store.None()
	if _, err := none.PutDocument(t.Context(), key, text, nil, ""); !errors.Is(err, store.ErrNone) {
		t.Errorf("put into no store: %v", err)
	}
	if _, _, err := none.ReadDocument(t.Context(), key, "", 1); !errors.Is(err, store.ErrNone) {
		t.Errorf("read in no store: %v", err)
	}
}

// TestAbsentDocument checks that only the store's own response counts as a missing document, and not, for example, a
// proxy's: a post is sent because of it.
func TestAbsentDocument(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, body string
		absent       bool
	}{
		"a store":                      {"the response names the missing key", `<?xml version="1.0" encoding="UTF-8"?><Error><Code>NoSuchKey</Code><Message>none</Message></Error>`, true},
		"a store without the bucket":   {"the documents' state is unknown", `<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>`, false},
		"a missing tenant":             {"other records may exist", `<Error><Code>NoSuchTenant</Code><Message>none</Message></Error>`, false},
		"an ingress without a backend": {"an ingress does not store documents", "default backend - 404", false},
		"a page":                       {"a web server does not store documents", "<html><body>404 Not Found</body></html>", false},
		"no body":                      {"any server could have responded", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusNotFound)
				_, _ = io.WriteString(w, tc.body)
			}))
			defer server.Close()
			files := open(t, store.Config{
				Endpoint: strings.TrimPrefix(server.URL, "http://"), Insecure: true, Bucket: "media", PathStyle: true, AccessKey: "a", SecretKey: "b",
			})
			_, _, err := files.ReadDocument(t.Context(), "_herald/archive/team/acme/posts/p.json", "", 1<<10)
			if err == nil || errors.Is(err, store.ErrNotFound) != tc.absent {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
