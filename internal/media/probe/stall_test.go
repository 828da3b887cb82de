// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package probe_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/internal/media/probe"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
)

// TestStalledStore has a store respond for one team's files, and then stall while their bytes are read, on connections
// that stay open, like a proxy that loses its backend. As many files are examined at a time as the manager has workers;
// another team's file waits behind them, and still gets its turn.
func TestStalledStore(t *testing.T) {
	const workers = 16
	picture := file(t, "picture.png")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("ETag", `"e"`)
		w.Header().Set("Last-Modified", "Fri, 20 Nov 2026 12:00:00 GMT")
		w.Header().Set("Content-Length", strconv.Itoa(len(picture)))
		if r.Method == http.MethodHead {
			return
		}
		if strings.Contains(r.URL.Path, "good") {
			w.Header().Del("Content-Length")
			http.ServeContent(w, r, "", time.Time{}, strings.NewReader(string(picture)))
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", len(picture)-1, len(picture)))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(picture[:10]) // The client may be gone.
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer server.Close()
	files, err := store.New(store.Config{
		Endpoint: strings.TrimPrefix(server.URL, "http://"), Bucket: "herald", AccessKey: "a", SecretKey: "b", PathStyle: true, Insecure: true,
		Stall: 100 * time.Millisecond,
	})
	must.Succeed(t, err)
	verifier := &probe.Verifier{Store: files, Clock: noon}
	queue := make(chan *v1alpha1.Media, workers+1)
	for i := range workers {
		queue <- media(fmt.Sprintf("stalled-%d", i), pngType, int64(len(picture)))
	}
	queue <- media("good", pngType, int64(len(picture)))
	close(queue)
	var examined sync.WaitGroup
	for range workers {
		examined.Go(func() {
			for m := range queue {
				status, err := verifier.Verify(t.Context(), m)
				if good := m.UID == "good"; good != (err == nil) || good && status.Phase != v1alpha1.MediaUploaded {
					t.Errorf("%s is %q: %v", m.UID, status.Phase, err)
				}
			}
		})
	}
	examined.Wait()
}
