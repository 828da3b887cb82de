// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package rest

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"k8s.io/utils/clock"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/bridge"
	"github.com/herald-social/herald/apiserver/postindex"
	"github.com/herald-social/herald/apiserver/request"
	"github.com/herald-social/herald/apiserver/strictjson"
)

// maxAllocated limits the allocations for one body of 1 MiB, in bytes.
const maxAllocated = 8 << 20

type activeTeam struct{}

func (activeTeam) Owner(string) *v1alpha1.Team {
	return &v1alpha1.Team{Spec: v1alpha1.TeamSpec{Subscription: v1alpha1.Subscription{State: v1alpha1.SubscriptionActive}}}
}

// full returns a body of 1 MiB that repeats an item.
func full(prefix, item, suffix string) string {
	n := (maxBody - len(prefix) - len(suffix) - len(item)) / (len(item) + 1)
	return prefix + strings.Repeat(item+",", n) + item + suffix
}

// names returns an object with the maximum number of members.
func names() string {
	var b strings.Builder
	for i := range strictjson.MaxNames {
		fmt.Fprintf(&b, `"%061d":0,`, i)
	}
	return "{" + strings.TrimSuffix(b.String(), ",") + "}"
}

// TestHostileBodies limits the cost of a body of 1 MiB, whatever it contains.
func TestHostileBodies(t *testing.T) {
	handler := NewHandler(bridge.New(bridge.Config{
		Key: anyKey{}.Authenticate, Used: func(*v1alpha1.APIKey) {}, Index: postindex.New(), Owner: activeTeam{}.Owner,
		Clock: clock.RealClock{}, Log: slog.New(slog.DiscardHandler),
	}), Limits{})
	const tree, text = `{"category":"tree","targets":[{"connection_id":"a"}],"tree_cards":[`, `{"category":"text","targets":[`
	tooMany := "the body holds more than 16384 values"
	for name, tc := range map[string]struct{ body, want string }{
		"empty cards":     {full(tree, `{}`, `]}`), tooMany},
		"cards of 1":      {full(tree, `1`, `]}`), tooMany},
		"targets":         {full(text, `{"connection_id":"a"}`, `]}`), tooMany},
		"empty targets":   {full(`{"category":"tree","tree_cards":[{}],"targets":[`, `{}`, `]}`), tooMany},
		"media ids":       {full(`{"category":"image","targets":[{"connection_id":"a"}],"media_ids":[`, `"a"`, `]}`), tooMany},
		"no media ids":    {full(`{"category":"image","targets":[{"connection_id":"a"}],"media_ids":[`, `1`, `]}`), tooMany},
		"arrays":          {full(`{"x":[`, `[]`, `]}`), tooMany},
		"objects":         {full(`{"x":[`, `{}`, `]}`), tooMany},
		"names":           {full(`{"x":[`, names(), `]}`), "category: is missing"},
		"names, all else": {full(`{"x":[`, `{"a":0,"b":0,"c":0,"d":0}`, `]}`), tooMany},
		"nearly all":      {full(text, `{"connection_id":1,"caption":1,"x":"`+strings.Repeat("a", 220)+`"}`, `]}`), "targets: must have at most 100 items"},
		"depth":           {strings.Repeat("[", maxBody), "the body nests deeper than 64 levels"},
		"escapes":         {full(`{"x":["`, strings.Repeat(`\u00e4`, 100), `"]}`), "category: is missing"},
		"escaped names":   {full(`{"`, strings.Repeat(`\u00e4`, 100), `":1}`), "category: is missing"},
		"bad at the end":  {full(`{"x":"`, "a", `"`), "the body is not valid JSON"},
		"bad UTF-8":       {full(`{"x":"`, "a", "\xff\"}"), "the body is not valid UTF-8"},
		"100 bad targets": {text + strings.Repeat(`{"`+strings.Repeat("x", 10_000)+`":1},`, 99) + `1]}`, "targets[0].connection_id: is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := request.With(t.Context(), &request.Info{Header: http.Header{}})
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, Prefix+"/posts", strings.NewReader(tc.body))
			r.Header.Set("Authorization", "Bearer t")
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			handler.ServeHTTP(w, r)
			runtime.ReadMemStats(&after)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), tc.want) {
				t.Errorf("answered %d %s, want %q", w.Code, w.Body, tc.want)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes took %.1f MiB", len(tc.body), float64(allocated)/(1<<20))
			if allocated > maxAllocated {
				t.Errorf("allocated %d bytes, want at most %d", allocated, maxAllocated)
			}
		})
	}
}
