// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package archive_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/herald-social/herald/internal/archive"
	"github.com/herald-social/herald/internal/media/store"
	"github.com/herald-social/herald/test/must"
	"github.com/herald-social/herald/test/storetest"
)

// keeps is a transport to a store that refuses to remove some documents, for example because of a retention rule.
type keeps struct {
	under http.Transport
	names []string
}

func (k *keeps) RoundTrip(req *http.Request) (*http.Response, error) {
	held := func(name string) bool { return strings.HasSuffix(req.URL.Path, "/"+name+".json") }
	if req.Method != http.MethodDelete || !slices.ContainsFunc(k.names, held) {
		return k.under.RoundTrip(req)
	}
	body := "<Error><Code>AccessDenied</Code><Message>the document is locked</Message></Error>"
	return &http.Response{
		StatusCode: http.StatusForbidden, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

// TestOneDocumentStays checks that a document that cannot be removed does not block the others, and is tried again.
func TestOneDocumentStays(t *testing.T) {
	config, link := storetest.Start(t), &keeps{names: []string{"b"}}
	config.Transport = link
	bucket, err := store.New(config)
	must.Succeed(t, err)
	a, ctx := archive.New(bucket), t.Context()
	fill := func() {
		t.Helper()
		for _, name := range []string{"a", "b", "c", "d"} {
			must.Succeed(t, a.Put(ctx, acme, name, to("x")))
			must.Succeed(t, a.PutRequest(ctx, acme, name, archive.Request{UID: "u"}))
		}
	}
	left := func(reason string, want ...string) {
		t.Helper()
		if got := names(t, a, acme); !slices.Equal(got, want) {
			t.Errorf("%s: left are %q, want %q", reason, got, want)
		}
	}
	fill()
	forget := func(after time.Duration) error {
		now := time.Now().Add(after)
		_, _, err := a.Prune(ctx, acme, archive.PruneOptions{Now: now, Before: now.Add(-time.Hour), GracePeriod: 48 * time.Hour, InUse: needs("d")})
		return err
	}
	must.Succeed(t, forget(2*time.Hour))
	if err := forget(52 * time.Hour); err == nil || !strings.Contains(err.Error(), "1 documents could not be removed") {
		t.Errorf("forgotten while one is locked: %v", err)
	}
	left("the others are forgotten", "b", "d")
	if removed, err := a.ExpireRequests(ctx, acme, time.Now().Add(time.Hour)); err == nil || removed != 3 {
		t.Errorf("%d requests are removed, want 3: %v", removed, err)
	}
	fill()
	if left, err := a.Clear(ctx, acme); err == nil || !left {
		t.Errorf("cleared while one is locked: something is left %t, %v", left, err)
	}
	left("the others are cleared", "b")

	link.names = nil
	if err := forget(53 * time.Hour); err != nil {
		t.Errorf("noted again: %v", err)
	}
	if left, err := a.Clear(ctx, acme); err != nil || left {
		t.Errorf("cleared: something is left %t, %v", left, err)
	}
	left("it is not locked any more")
}
