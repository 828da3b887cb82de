// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestFixedResponsesAreCompressed(t *testing.T) {
	t.Parallel()
	long, short := strings.Repeat("The same again. ", 1000), "ok"
	tests := map[string]struct {
		reason, body, accepts string
		compressed            bool
	}{
		"a browser":        {"browsers send these names", long, "gzip, deflate, br, zstd", true},
		"in capitals":      {"names of encodings are case-insensitive (RFC 9110, 8.4.1)", long, "GZIP", true},
		"with a weight":    {"a weight above 0 accepts", long, "br;q=1.0, gzip;q=0.5", true},
		"refused":          {"a weight of 0 rejects (RFC 9110, 12.4.2)", long, "gzip;q=0", false},
		"not understood":   {"an invalid weight rejects", long, "gzip;q=much", false},
		"another encoding": {"gzip is not among them", long, "br", false},
		"part of a name":   {"xgzip is a different encoding", long, "xgzip", false},
		"no encodings":     {"curl without --compressed", long, "", false},
		"too short":        {"compression would make the response longer", short, "gzip", false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			request := httptest.NewRequest(http.MethodGet, "/docs", http.NoBody)
			if tc.accepts != "" {
				request.Header.Set("Accept-Encoding", tc.accepts)
			}
			recorder := httptest.NewRecorder()
			p := fixed("docs", "text/html; charset=utf-8", []byte(tc.body), "default-src 'none'")
			p.serve(recorder, request)
			header, body := recorder.Header(), io.Reader(recorder.Body)
			if got := header.Get("Content-Encoding") == "gzip"; got != tc.compressed {
				t.Fatalf("%s: compressed is %t", tc.reason, got)
			}
			if tc.compressed {
				if recorder.Body.Len() > len(tc.body)/10 {
					t.Errorf("got %d of %d bytes", recorder.Body.Len(), len(tc.body))
				}
				var err error
				if body, err = gzip.NewReader(body); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := io.ReadAll(body); string(got) != tc.body || err != nil {
				t.Errorf("the body differs (%v)", err)
			}
			if varies := header.Get("Vary") == "Accept-Encoding"; varies != (tc.body == long) {
				t.Errorf("Vary is %q: a cache must not return the compressed body to other clients", header.Get("Vary"))
			}
			if header.Get("Content-Security-Policy") == "" || header.Get("Content-Type") != "text/html; charset=utf-8" {
				t.Errorf("the headers are %v", header)
			}
		})
	}
}
