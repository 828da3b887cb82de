// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// maxWeight is the maximum transfer size of a page with its own scripts and styles, in bytes.
const maxWeight = 50 << 10

// crowded has 10,000 posts, half of them in the month of now, and ten accounts.
func crowded() *world {
	w := newWorld(clocktesting.NewFakeClock(now))
	for i := range 4 {
		w.connections[acme] = append(w.connections[acme], account(acme, fmt.Sprint("more-", i), platformOrder[i]))
	}
	states := []v1alpha1.PostPhase{v1alpha1.PhaseScheduled, v1alpha1.PhasePosted, v1alpha1.PhaseScheduled, v1alpha1.PhaseFailed, v1alpha1.PhaseDraft}
	for i := range 10_000 {
		w.index.Upsert(acme, postindex.Summary{
			ID: idNumber(i), Title: fmt.Sprintf("Post %d: what we have learnt this week, and why it matters to all of you", i),
			Status: states[i%len(states)], Category: v1alpha1.CategoryText,
			// Partly failed posts have the longest display.
			Platforms: []postindex.PlatformStatus{
				{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhasePosted},
				{Platform: v1alpha1.PlatformThreads, Status: states[i%len(states)]},
				{Platform: v1alpha1.PlatformFacebook, Status: states[i%len(states)]},
			},
			DisplayAt: now.Add(time.Duration(i-2000) * 9 * time.Minute),
		}, uint64(i+1))
	}
	w.put(textPost("p-1", "text"))
	return w
}

// idNumber returns an id in the format of posts, which does not compress.
func idNumber(i int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	return "p-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// crowdedPages are the pages that may be large.
var crowdedPages = map[string]string{
	"Overview": "", "List": "posts", "LastPage": "posts?page=401", "Calendar": "calendar", "Scheduled": "calendar?status=scheduled", "Composer": "posts/new",
	"Post": "posts/p-1", "Accounts": "connections", "Team": "team",
}

// TestWeight verifies that no page needs more than 50 KB over the wire, including the scripts and styles that it loads.
func TestWeight(t *testing.T) {
	t.Parallel()
	w := crowded()
	for name, path := range crowdedPages {
		r := newRequest(&administrator, "/teams/"+acme+"/"+path, nil)
		r.Header.Set("Accept-Encoding", "gzip")
		answer := w.serve(r)
		if answer.Code != http.StatusOK {
			t.Fatal(name, answer.Code)
		}
		page, assets := answer.Body.Len(), 0
		for file := range w.site.assets.paths {
			if name == "Composer" || file != "upload.js" && file != "compose.js" {
				assets += w.site.assets.byName[w.site.assets.path(file)[len("/assets/"):]].body.PackedSize()
			}
		}
		t.Logf("%-9s %6d bytes and %d of assets", name, page, assets)
		if page+assets > maxWeight {
			t.Errorf("%s weighs %d bytes, %d of them the page, want at most %d", name, page+assets, page, maxWeight)
		}
	}
}

// BenchmarkPages measures the pages of a team with 10,000 posts.
func BenchmarkPages(b *testing.B) {
	w := crowded()
	for name, path := range crowdedPages {
		b.Run(name, func(b *testing.B) {
			r := newRequest(&administrator, "/teams/"+acme+"/"+path, nil)
			r.Header.Set("Accept-Encoding", "gzip")
			for b.Loop() {
				w.serve(r)
			}
		})
	}
}

// BenchmarkCheck measures the preview of a post to ten accounts, which is rendered again while the person writes.
func BenchmarkCheck(b *testing.B) {
	w := crowded()
	form := url.Values{"category": {"text"}, "caption": {"What we have learnt this week"}, "when": {"now"}}
	for _, c := range w.connections[acme] {
		form.Add("target", c.Name)
	}
	for b.Loop() {
		if answer := w.serve(newRequest(&administrator, "/teams/"+acme+"/compose/check", form)); answer.Code != http.StatusOK {
			b.Fatal(answer.Code)
		}
	}
}

// TestPagesWithoutGzip verifies that a client without gzip gets the same page.
func TestPagesWithoutGzip(t *testing.T) {
	t.Parallel()
	w := newWorld(clock.RealClock{})
	answer := w.serve(newRequest(&viewer, "/teams/"+acme+"/team", nil))
	if answer.Header().Get("Content-Encoding") != "" || len(elements(parsed(t, answer.Body.String()), "h1")) != 1 {
		t.Errorf("the page is not readable: %v", answer.Header())
	}
}
