// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/api/v1alpha1"
	"github.com/herald-social/herald/apiserver/postindex"
)

// maxWeight is the maximum transfer size of a page with its own scripts and styles, in bytes. The largest page shows a
// Notifier with as many deliveries as its status can hold.
const maxWeight = 46 << 10

// crowded has 10,000 posts, half of them in the current month, and ten accounts.
func crowded() *world {
	w := newWorld(clocktesting.NewFakeClock(now))
	for i := range 4 {
		w.connections[acme] = append(w.connections[acme], account(acme, fmt.Sprint("more-", i), v1alpha1.Platforms()[i]))
	}
	for i := range 10_000 {
		w.index.Upsert(acme, crowdedPost(i, now.Add(time.Duration(i-2000)*9*time.Minute)), uint64(i+1))
	}
	w.put(textPost("p-1", "text"))
	full := notifierOf("failures")
	for i := range v1alpha1.MaxPendingDeliveries + v1alpha1.MaxFinishedDeliveries {
		full.Status.Deliveries = append(full.Status.Deliveries, v1alpha1.NotifierDelivery{
			ID: "msg_" + idNumber(i)[2:], Event: v1alpha1.EventPostFailed, Kind: "Post", Name: idNumber(i), UID: "u", OccurredAt: v1alpha1.NewTime(now.Add(-time.Duration(i) * time.Minute)),
			State: v1alpha1.DeliveryPending, Attempts: 3, Message: "the receiver answered 503 Service Unavailable",
		})
	}
	w.notifiers[acme+"/failures"] = full
	return w
}

// crowdedPost returns one of many posts. Partly failed posts have the longest display.
func crowdedPost(i int, at time.Time) postindex.Summary {
	states := []v1alpha1.PostPhase{v1alpha1.PhaseScheduled, v1alpha1.PhasePosted, v1alpha1.PhaseScheduled, v1alpha1.PhaseFailed, v1alpha1.PhaseDraft}
	state := states[i%len(states)]
	return postindex.Summary{
		ID: idNumber(i), Title: fmt.Sprintf("Post %04d: what we have learnt ", i), Rest: "this week, and why it matters to all of you, wherever you read it…",
		Words:  strings.Repeat(fmt.Sprintf("post %04d: what we have learnt this week, and why it matters to all of you, ", i), 3),
		Author: "oidc:ada", Accounts: []string{"our-x", "our-threads", "our-facebook"}, Status: state, Category: v1alpha1.CategoryText,
		Platforms: []postindex.PlatformStatus{
			{Platform: v1alpha1.PlatformX, Status: v1alpha1.PhasePosted},
			{Platform: v1alpha1.PlatformThreads, Status: state},
			{Platform: v1alpha1.PlatformFacebook, Status: state},
		},
		DisplayAt: at,
	}
}

// idNumber returns an id in the format of post ids, which do not compress.
func idNumber(i int) string {
	sum := sha256.Sum256([]byte(strconv.Itoa(i)))
	return "p-" + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:26])
}

// crowdedPages are the pages that may be large.
var crowdedPages = map[string]string{
	"Overview": "", "List": "posts", "Later": "posts?status=scheduled&after=1797000000000.p", "Search": "posts?q=learnt+matters&by=person:oidc:ada",
	"Month": "calendar", "Week": "calendar?view=week", "Agenda": "calendar?view=agenda", "MonthOfSearch": "calendar?status=scheduled&q=learnt", "Composer": "posts/new",
	"Post": "posts/p-1", "Accounts": "connections", "Team": "team",
	"Schedules": "schedules", "Schedule": "schedules/new", "Notifier": "notifications/failures",
}

// onDemand are the scripts that no page loads at first: upload.js loads two with the first file, compose.js one with the first key.
var onDemand = []string{"transfer.js", "crop.js", "drafts.js"}

// TestWeight verifies that no page needs more than maxWeight over the wire, including the scripts and styles that it
// loads.
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
			if !slices.Contains(onDemand, file) && (name == "Composer" || name == "Schedule" || !slices.Contains([]string{"upload.js", "files.js", "compose.js"}, file)) {
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

// BenchmarkCheck measures the preview of a post to ten accounts, which is rendered again while the user writes.
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

// maxCalendar is the maximum size of a calendar's HTML, in bytes: browsers parse all of it.
const maxCalendar = 100_000

// TestCalendarsAreSmall verifies the size of full calendars: a month of six weeks, with scheduled posts from now on.
func TestCalendarsAreSmall(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	first := time.Date(2027, 7, 26, 0, 0, 0, 0, time.UTC)
	for i := range 42 * 24 {
		w.index.Upsert(acme, crowdedPost(i, first.Add(time.Duration(i)*time.Hour)), uint64(i+1))
	}
	for path, want := range map[string]int{"date=2027-08-01": 42 * perDay[spanMonth], "view=week&date=2027-08-01": 7 * perDay[spanWeek], "view=agenda&date=2027-08-01": agendaSize} {
		page := w.serve(newRequest(&administrator, "/teams/"+acme+"/calendar?"+path, nil)).Body.String()
		if got := strings.Count(page, `href="/teams/`+acme+`/posts/p-`); got != want {
			t.Errorf("%s shows %d posts, want %d", path, got, want)
		}
		t.Logf("%-27s %6d bytes", path, len(page))
		if len(page) > maxCalendar {
			t.Errorf("%s has %d bytes, want at most %d", path, len(page), maxCalendar)
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
