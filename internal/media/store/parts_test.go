// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package store_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// TestParts checks an upload in two parts that is interrupted after the first one.
func TestParts(t *testing.T) {
	files := open(t, storetest.Start(t))
	const key = "team/11111111-1111-1111-1111-111111111111"
	const size = store.PartSize + 5
	first := strings.Repeat("a", store.PartSize)
	upload, err := files.BeginParts(t.Context(), key, "video/mp4")
	must.Succeed(t, err)
	urls, expires, err := files.PresignParts(t.Context(), key, upload, size)
	must.Succeed(t, err)
	if len(urls) != 2 || urls[0] == "" || urls[1] == "" || time.Until(expires) < 14*time.Minute {
		t.Fatalf("two parts are missing: %d addresses until %s", len(urls), expires)
	}
	for name, tc := range map[string]struct{ reason, url, body string }{
		"longer":  {"quotas count the announced size", urls[1], "123456"},
		"shorter": {"a cut is no end", urls[1], "1234"},
	} {
		if status := put(t, tc.url, "", tc.body); status == http.StatusOK {
			t.Errorf("%s: %s: it was accepted", name, tc.reason)
		}
	}
	if status := put(t, urls[0], "", first); status != http.StatusOK {
		t.Fatalf("the first part: %d", status)
	}
	if err := files.JoinParts(t.Context(), key, upload, size); !errors.Is(err, store.ErrIncomplete) {
		t.Errorf("joined without the last part: %v", err)
	}
	if _, err := files.Stat(t.Context(), key); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("half a file is a file: %v", err)
	}

	again, _, err := files.PresignParts(t.Context(), key, upload, size)
	must.Succeed(t, err)
	if again[0] != "" || again[1] == "" {
		t.Errorf("after the cut only the last part is missing: %q", again)
	}
	if status := put(t, again[1], "", "12345"); status != http.StatusOK {
		t.Fatalf("the last part: %d", status)
	}
	for range 2 { // the first answer may get lost
		must.Succeed(t, files.JoinParts(t.Context(), key, upload, size))
	}
	object, err := files.Stat(t.Context(), key)
	must.Succeed(t, err)
	if object.Size != size || object.ContentType != "video/mp4" {
		t.Errorf("the file has %d bytes of %s", object.Size, object.ContentType)
	}
	if status := put(t, again[1], "", "54321"); status == http.StatusOK {
		t.Error("a part's address still works when the file is complete")
	}
	if _, _, err := files.PresignParts(t.Context(), key, upload, size); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the upload is not over: %v", err)
	}
	if err := files.JoinParts(t.Context(), key, upload, size+1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a file of another size counts as joined: %v", err)
	}
	// Platforms fetch a copy of it.
	if _, err := files.Verified(t.Context(), key, object.ETag, true); err != nil {
		t.Errorf("the file cannot be copied: %v", err)
	}
}

// TestAbandonParts checks that unfinished uploads are removed, and no others.
func TestAbandonParts(t *testing.T) {
	files := open(t, storetest.Start(t))
	uploads := map[string]string{}
	for _, key := range []string{"team/a", "team/b", "teams/c"} {
		var err error
		uploads[key], err = files.BeginParts(t.Context(), key, "video/mp4")
		must.Succeed(t, err)
	}
	var seen []string
	must.Succeed(t, files.AbandonParts(t.Context(), "team/", func(key string, started time.Time) bool {
		if age := time.Since(started); age < -time.Minute || age > time.Minute {
			t.Errorf("%s was started %s ago", key, age)
		}
		seen = append(seen, key)
		return key == "team/a"
	}))
	if strings.Join(seen, " ") != "team/a team/b" {
		t.Errorf("selected was called for %v", seen)
	}
	if _, _, err := files.PresignParts(t.Context(), "team/a", uploads["team/a"], 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the chosen one is still there: %v", err)
	}
	if _, _, err := files.PresignParts(t.Context(), "team/b", uploads["team/b"], 1); err != nil {
		t.Errorf("another upload was aborted: %v", err)
	}
	for range 2 { // a cancelled upload may be cancelled again
		must.Succeed(t, files.AbortParts(t.Context(), "team/b", uploads["team/b"]))
	}
	if _, _, err := files.PresignParts(t.Context(), "team/b", uploads["team/b"], 1); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a cancelled one is still there: %v", err)
	}
	if err := store.None().AbandonParts(t.Context(), "", nil); !errors.Is(err, store.ErrNone) {
		t.Errorf("without a store: %v", err)
	}
	if err := store.None().AbortParts(t.Context(), "team/b", uploads["team/b"]); !errors.Is(err, store.ErrNone) {
		t.Errorf("without a store: %v", err)
	}
}

// TestForeignUpload checks that an upload's id, which a client sends, gives no access to other files. Some stores use
// ids in folder names.
func TestForeignUpload(t *testing.T) {
	files := open(t, storetest.Start(t))
	const theirs, ours = "team-theirs/a", "team-ours/b"
	their, err := files.BeginParts(t.Context(), theirs, "video/mp4")
	must.Succeed(t, err)
	_, err = files.BeginParts(t.Context(), ours, "video/mp4")
	must.Succeed(t, err)
	_, err = files.Put(t.Context(), theirs, "text/plain", 1, strings.NewReader("x"))
	must.Succeed(t, err)
	folder := fmt.Sprintf("../%x/", sha256.Sum256([]byte(theirs)))
	for name, tc := range map[string]struct{ reason, upload string }{
		"another team's id":   {"an id is valid for its key only", their},
		"another team's path": {"an id is not a path", folder + their},
		"all uploads":         {"an id is no path", ".."},
		"a key's":             {"an id is no path", "."},
		"the bucket":          {"an id is no path", "../../.."},
		"empty":               {"an id is not empty", ""},
		"a query":             {"an id adds no parameters", "a&partNumber=1"},
		"a long one":          {"an id is not of any length", strings.Repeat("a", 1025)},
		"a header break":      {"an id is no header", "a\r\nb"},
	} {
		if _, _, err := files.PresignParts(t.Context(), ours, tc.upload, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %s: addresses: %v", name, tc.reason, err)
		}
		if err := files.JoinParts(t.Context(), ours, tc.upload, 1); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("%s: %s: joined: %v", name, tc.reason, err)
		}
		if err := files.AbortParts(t.Context(), ours, tc.upload); err != nil {
			t.Errorf("%s: %s: aborted: %v", name, tc.reason, err)
		}
	}
	if _, _, err := files.PresignParts(t.Context(), theirs, their, 1); err != nil {
		t.Errorf("the other team's upload was aborted: %v", err)
	}
	if _, err := files.Stat(t.Context(), theirs); err != nil {
		t.Errorf("the other team's file was deleted: %v", err)
	}
}
