// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestFetchSlots requests the four slots for namespaces: "a" requests a slot, and "A" releases one.
func TestFetchSlots(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		asked  string
		// after is how much time passes before the last request.
		after time.Duration
		// last is whether the last request gets a slot, and yield is the namespace that loses one.
		last  bool
		yield string
	}{
		"room":               {"everybody gets a place", "abcd", 0, true, ""},
		"two":                {"a namespace has two", "aa", 0, true, ""},
		"three":              {"and no third", "aaa", 0, false, ""},
		"one yields":         {"two namespaces hold all, and one place is given up", "aabbc", 0, false, "b"},
		"the latest":         {"it has the least to lose", "bbaac", 0, false, "a"},
		"one place each":     {"nobody has two, and somebody waits", "abcde", 0, false, ""},
		"one for each":       {"who waits again takes one away only once", "aabbccc", 0, false, "b"},
		"two wait":           {"and two are given up", "aabbcd", 0, false, "b a"},
		"three wait":         {"the third waits for the end of a fetch", "aabbcde", 0, false, "b a"},
		"given up":           {"who has waited gets the place", "aabbcBc", 0, true, "b"},
		"in order":           {"another does not", "abcdefAf", 0, false, ""},
		"the first":          {"who has waited the longest does", "abcdefAe", 0, true, ""},
		"no second":          {"while somebody has none", "abcdeAb", 0, false, ""},
		"again":              {"who has had a turn comes after those that wait", "abcdeAa", 0, false, ""},
		"gone":               {"who does not ask again is not waited for", "abcdeAb", waiterTTL + time.Second, true, ""},
		"place for a second": {"as long as there is one for each that waits", "abbBBcc", 0, true, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
			all := newFetchSlots(4, clk)
			type fetch struct {
				namespace string
				ctx       context.Context
				give      func()
			}
			var under []fetch
			var yield []string
			got := false
			for i, step := range strings.Split(tc.asked, "") {
				if i == len(tc.asked)-1 {
					clk.SetTime(clk.Now().Add(tc.after))
				}
				if namespace := strings.ToLower(step); namespace != step {
					at := slices.IndexFunc(under, func(f fetch) bool { return f.namespace == namespace })
					// A preempted fetch is released first.
					if asked := slices.IndexFunc(under, func(f fetch) bool { return f.namespace == namespace && f.ctx.Err() != nil }); asked >= 0 {
						at = asked
					}
					under[at].give()
					under = slices.Delete(under, at, at+1)
					continue
				}
				ctx, give, ok := all.acquire(t.Context(), step)
				if got = ok; ok {
					under = append(under, fetch{step, ctx, give})
				}
				for _, f := range under {
					if errors.Is(context.Cause(f.ctx), errPreempted) && !slices.Contains(yield, f.namespace) {
						yield = append(yield, f.namespace)
					}
				}
			}
			if got != tc.last || strings.Join(yield, " ") != tc.yield {
				t.Errorf("%s: the last of %q gets a place: %v, want %v; given up by %q, want %q", tc.reason, tc.asked, got, tc.last, yield, tc.yield)
			}
			if len(all.active) > all.most {
				t.Errorf("%s: %d places are held of %d", tc.reason, len(all.active), all.most)
			}
		})
	}
}

func TestCannotFetch(t *testing.T) {
	for name, tc := range map[string]struct{ reason, url, want string }{
		"plain":    {"it is told", "https://a.example/b.png", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"query":    {"it may hold a signature", "https://a.example/b.png?X-Amz-Signature=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"fragment": {"it may hold a token", "https://a.example/b.png#token=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"no path":  {"the query begins at once", "https://a.example?key=secret", "The source https://a.example cannot be fetched: it is empty."},
	} {
		if got := cannotFetch(tc.url, "it is empty"); got != tc.want {
			t.Errorf("%s: %s, but got %q", name, tc.reason, got)
		}
	}
}

// An event's message holds 1,000 bytes, and the reason follows the URL.
func TestLongAddresses(t *testing.T) {
	got := cannotFetch("https://a.example/"+strings.Repeat("é", 1015), "it is empty")
	if !strings.HasPrefix(got, "The source https://a.example/é") || !strings.HasSuffix(got, "é… cannot be fetched: it is empty.") || len(got) > 1000 {
		t.Errorf("a long address hides why: %q", got)
	}
}
