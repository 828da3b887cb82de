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
		"room":           {"each fetch gets a slot", "abcd", 0, true, ""},
		"two":            {"a namespace may use two slots", "aa", 0, true, ""},
		"three":          {"a namespace cannot use a third slot", "aaa", 0, false, ""},
		"one yields":     {"two namespaces use all slots, so one fetch is preempted", "aabbc", 0, false, "b"},
		"the latest":     {"the latest fetch has made the least progress", "bbaac", 0, false, "a"},
		"one place each": {"no namespace has a second slot", "abcde", 0, false, ""},
		"one for each":   {"a waiting namespace preempts one fetch only", "aabbccc", 0, false, "b"},
		"two wait":       {"two fetches are preempted", "aabbcd", 0, false, "b a"},
		"three wait":     {"the third one waits for a fetch to end", "aabbcde", 0, false, "b a"},
		"given up":       {"the waiting namespace gets the slot", "aabbcBc", 0, true, "b"},
		"in order":       {"a namespace behind others in the queue does not get the slot", "abcdefAf", 0, false, ""},
		"the first":      {"the namespace that has waited longest gets it", "abcdefAe", 0, true, ""},
		"no second":      {"another namespace has no slot", "abcdeAb", 0, false, ""},
		"again":          {"a namespace that had a slot is last in the queue", "abcdeAa", 0, false, ""},
		"gone":           {"a namespace that stopped requesting loses its turn", "abcdeAb", waiterTTL + time.Second, true, ""},
		"a second slot":  {"each waiting namespace has a slot", "abbBBcc", 0, true, ""},
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
				t.Errorf("%s: %q got a slot: %v, want %v; released by %q, want %q", tc.reason, tc.asked, got, tc.last, yield, tc.yield)
			}
			if len(all.active) > all.most {
				t.Errorf("%s: %d slots are used of %d", tc.reason, len(all.active), all.most)
			}
		})
	}
}

func TestCannotFetch(t *testing.T) {
	for name, tc := range map[string]struct{ reason, url, want string }{
		"plain":    {"the URL is shown", "https://a.example/b.png", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"query":    {"the query may contain a signature", "https://a.example/b.png?X-Amz-Signature=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"fragment": {"the fragment may contain a token", "https://a.example/b.png#token=secret", "The source https://a.example/b.png cannot be fetched: it is empty."},
		"no path":  {"the query may follow the host", "https://a.example?key=secret", "The source https://a.example cannot be fetched: it is empty."},
	} {
		if got := cannotFetch(tc.url, "it is empty"); got != tc.want {
			t.Errorf("%s: %s, but got %q", name, tc.reason, got)
		}
	}
}

// An event's message can hold 1,000 bytes, and the reason comes after the URL.
func TestLongAddresses(t *testing.T) {
	got := cannotFetch("https://a.example/"+strings.Repeat("é", 1015), "it is empty")
	if !strings.HasPrefix(got, "The source https://a.example/é") || !strings.HasSuffix(got, "é… cannot be fetched: it is empty.") || len(got) > 1000 {
		t.Errorf("a long address hides why: %q", got)
	}
}
