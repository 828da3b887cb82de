// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/rest"
)

// maxAllocated limits the allocations for one message, in bytes.
const maxAllocated = 8 << 20

// TestHostileMessages limits the cost of a message of the maximum size, regardless of its content.
func TestHostileMessages(t *testing.T) {
	handler := newWorld().handler(t)
	const mib = 1 << 20
	fill := func(item string) string { return strings.Repeat(item, (maxMessage-400)/len(item)) }
	list := func(item string) string { return `[` + fill(item+`,`) + item + `]` }
	message := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + `}`
	}
	for name, tc := range map[string]struct {
		body   string
		status int
		want   string
	}{
		"1 MiB":                {callTool("get_post", `{"id":"`+fill("a")+fill("a")+`"}`), 413, "larger than 524288 bytes"},
		"a batch":              {`[` + strings.TrimSuffix(fill(`{"jsonrpc":"2.0","id":1,"method":"ping"},`), ",") + `]`, 400, "batches are not supported"},
		"cards":                {callTool("create_post", `{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":`+list(`{}`)+`}`), 400, "more than 16384 values"},
		"a caption":            {callTool("create_post", `{"category":"text","targets":[{"connection_id":"acme-x","caption":"`+fill("a")+`"}]}`), 200, "at most 65536 characters"},
		"an escaped caption":   {callTool("create_post", `{"category":"text","targets":[{"connection_id":"acme-x","caption":"`+fill(`\u00e4`)+`"}]}`), 200, "at most 65536 characters"},
		"the name of a tool":   {callTool(fill("a"), `{}`), 413, "larger than 65536 bytes"},
		"an argument":          {callTool("get_post", `{"id":"`+fill("a")+`"}`), 200, "NOT_FOUND"},
		"a method":             {message(fill("a"), `{}`), 413, "larger than 65536 bytes"},
		"initialize":           {message("initialize", `{"capabilities":{},"clientInfo":{"name":"`+fill("a")+`","version":"1"}}`), 413, "larger than 65536 bytes"},
		"an ignored field":     {message("ping", `{"x":"`+fill("a")+`"}`), 413, "larger than 65536 bytes"},
		"meta":                 {message("tools/call", `{"name":"list_posts","arguments":{},"_meta":{"x":"`+fill("a")+`"}}`), 200, "pagination"},
		"depth":                {strings.Repeat(`{"a":`, maxMessage/5), 400, "is nested deeper"},
		"not UTF-8":            {`{"a":"` + fill("\xff") + `"}`, 400, "not valid UTF-8"},
		"a truncated message":  {`{"a":"` + fill("a"), 400, "ends unexpectedly"},
		"names, 256 an object": {message("ping", `{"a":[`+fill(`{"a":1,"b":2,"c":3},`)+`{}]}`), 400, "more than 16384 values"},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, Path, strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Authorization", "Bearer key")
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			handler.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			if w.Code != tc.status || !strings.Contains(w.Body.String(), tc.want) || w.Body.Len() > 16<<10 {
				t.Errorf("got %d, %d bytes, %.300s; want %d with %q", w.Code, w.Body.Len(), w.Body, tc.status, tc.want)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes used %.1f MiB", len(tc.body), float64(allocated)/mib)
			if allocated > maxAllocated {
				t.Errorf("allocated %d bytes, want at most %d", allocated, maxAllocated)
			}
		})
	}
}

// TestMessagesAreCharged verifies that a message's bytes are charged once, regardless of the result.
func TestMessagesAreCharged(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason, body string
		status, cost int
	}{
		"NoMessage": {"parsing it costs as much as a valid message", strings.Repeat("[", maxMessage), 400, 9},
		"TooMany":   {"half a MiB is 8 times 64 KiB", `{"x":[` + strings.Repeat("1,", maxMessage/2-8) + "1]}", 400, 8},
		"NotPassed": {"the SDK does not get the message", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":"` + strings.Repeat("a", 200<<10) + `"}}`, 413, 4},
		"ATool":     {"arguments are part of the message", callTool("create_post", `{"category":"text","x":"`+strings.Repeat("a", 200<<10)+`"}`), 200, 4},
		"NoSubject": {"tools that do not create objects parse arguments too", callTool("get_post", `{"id":"`+strings.Repeat("a", 200<<10)+`"}`), 200, 4},
		"Unread":    {"the client declared that it is too large", strings.Repeat("a", maxMessage+1), 413, 1},
		"Small":     {"up to 64 KiB are included", ping, 200, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := newWorld().serve(t, func(o *Options) {
				o.REST = rest.NewHandler(o.Service, rest.Limits{Teams: limits.NewRateLimiter(100, clocktesting.NewFakePassiveClock(time.Unix(1_000_000, 0))), Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)})
			})
			r := send(t, "POST", address, "key", tc.body)
			if left := r.header.Get("RateLimit-Remaining"); r.status != tc.status || left != strconv.Itoa(100-tc.cost) {
				t.Errorf("%s: got %d %.200s with %s of 100 remaining; want %d, and a cost of %d", tc.reason, r.status, r.body, left, tc.status, tc.cost)
			}
		})
	}
}
