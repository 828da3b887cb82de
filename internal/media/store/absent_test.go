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
)

// TestAbsentDocument has something else respond in place of a store: only the store's own response counts as a missing
// document, since a post is sent because of it.
func TestAbsentDocument(t *testing.T) {
	for name, tc := range map[string]struct {
		reason, body string
		absent       bool
	}{
		"a store":                          {"it says which key it does not have", `<?xml version="1.0" encoding="UTF-8"?><Error><Code>NoSuchKey</Code><Message>none</Message></Error>`, true},
		"a store without the bucket":       {"nothing is known of the documents", `<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>`, false},
		"a store that misses other things": {"nothing is known of the documents", `<Error><Code>NoSuchTenant</Code><Message>none</Message></Error>`, false},
		"an ingress without a backend":     {"it knows nothing of documents", "default backend - 404", false},
		"a page":                           {"it knows nothing of documents", "<html><body>404 Not Found</body></html>", false},
		"nothing at all":                   {"it may be anybody's", "", false},
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
