// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/herald-social/herald/internal/media/store"
)

// answering returns a store that responds to each request with the given status and body.
func answering(t *testing.T, status int, body string) *store.Store {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return open(t, store.Config{
		Endpoint: strings.TrimPrefix(server.URL, "http://"), Insecure: true, Bucket: "media", PathStyle: true, AccessKey: "a", SecretKey: "b",
	})
}

func errorOf(code string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code + `</Code><Message>no</Message></Error>`
}

// TestErrorsOfOneFile has a store refuse a file, and checks whether the refusal concerns only that file.
func TestErrorsOfOneFile(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		status int
		body   string
		one    bool
	}{
		"a key that is too long":      {"shorter keys are accepted", http.StatusBadRequest, errorOf("KeyTooLongError"), true},
		"a name that a disk refuses":  {"other names are valid", http.StatusBadRequest, errorOf("XMinioInvalidObjectName"), true},
		"a folder of that name":       {"other names are not folders", http.StatusConflict, errorOf("ExistingObjectIsDirectory"), true},
		"a document that is too big":  {"other records are smaller", http.StatusBadRequest, errorOf("EntityTooLarge"), true},
		"a document in cold storage":  {"other records are available", http.StatusForbidden, errorOf("InvalidObjectState"), true},
		"a document that is not here": {"other records may exist", http.StatusNotFound, errorOf("NoSuchKey"), true},
		"a right that is missing":     {"the right may be missing for all files", http.StatusForbidden, errorOf("AccessDenied"), false},
		"a key that was revoked":      {"all access is denied", http.StatusForbidden, errorOf("InvalidAccessKeyId"), false},
		"a clock that is off":         {"all access is denied", http.StatusForbidden, errorOf("RequestTimeTooSkewed"), false},
		"a missing bucket":            {"all records are missing", http.StatusNotFound, errorOf("NoSuchBucket"), false},
		"a disk that is full":         {"the disk is full for all files", http.StatusInsufficientStorage, errorOf("XMinioStorageFull"), false},
		"a proxy's 400":               {"its origin is unknown", http.StatusBadRequest, "bad request", false},
		"a page that names a code":    {"only the store's own errors count", http.StatusBadRequest, "<html><Code>KeyTooLongError</Code></html>", false},
	} {
		t.Run(name, func(t *testing.T) {
			files := answering(t, tc.status, tc.body)
			if _, _, err := files.ReadDocument(t.Context(), "k", "", 1<<10); err == nil || store.IsFileError(err) != tc.one {
				t.Errorf("%s: read: of one file %v, want %v: %v", tc.reason, store.IsFileError(err), tc.one, err)
			}
			if tc.status == http.StatusNotFound || tc.status == http.StatusConflict {
				return // For a write, these mean something else.
			}
			if _, err := files.PutDocument(t.Context(), "k", "text/plain", []byte("x"), store.Any); err == nil || store.IsFileError(err) != tc.one {
				t.Errorf("%s: written: of one file %v, want %v: %v", tc.reason, store.IsFileError(err), tc.one, err)
			}
		})
	}
	for _, err := range []error{store.ErrTooLarge, store.ErrChanged, store.ErrNotFound} {
		if !store.IsFileError(fmt.Errorf("cannot read: %w", err)) {
			t.Errorf("%v is about one file", err)
		}
	}
	for _, err := range []error{nil, store.ErrNone, io.ErrUnexpectedEOF, errors.New("connection refused")} {
		if store.IsFileError(err) {
			t.Errorf("%v is not about one file", err)
		}
	}
}

// TestConditionalWrite checks that a 409 is not treated as a failure of the store. Amazon S3 sends it in response to
// one of two simultaneous conditional writes, and the caller reads again.
func TestConditionalWrite(t *testing.T) {
	files := answering(t, http.StatusConflict, errorOf("ConditionalRequestConflict"))
	if _, err := files.PutDocument(t.Context(), "k", "text/plain", []byte("x"), ""); !errors.Is(err, store.ErrChanged) {
		t.Errorf("a conditional write: %v, want ErrChanged", err)
	}
	if _, err := files.PutDocument(t.Context(), "k", "text/plain", []byte("x"), store.Any); err == nil || errors.Is(err, store.ErrChanged) {
		t.Errorf("a write without a condition: %v", err)
	}
}
