// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"testing"

	clocktesting "k8s.io/utils/clock/testing"

	"github.com/herald-social/herald/apiserver/access"
	"github.com/herald-social/herald/apiserver/limits"
	"github.com/herald-social/herald/apiserver/oauth"
)

// TestHostileForms limits the memory for parsing any form of 2 MiB.
func TestHostileForms(t *testing.T) {
	fill := func(piece string) string { return strings.Repeat(piece, (maxForm-100)/len(piece)) }
	numbered := func(format string) string {
		var b strings.Builder
		for i := 0; b.Len() < maxForm-100; i++ {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	const multipart = "multipart/form-data; boundary=b"
	for name, tc := range map[string]struct {
		kind, body string
		refused    bool
	}{
		"fields":            {"", numbered("a%d=&"), true},
		"a repeated field":  {"", fill("target=a&"), true},
		"ampersands":        {"", fill("&"), true},
		"equals signs":      {"", fill("="), false},
		"escapes":           {"", "caption=" + fill("%41"), false},
		"an invalid escape": {"", "caption=" + fill("a") + "%z", true},
		"plus signs":        {"", "caption=" + fill("+"), false},
		"files":             {multipart, fill("--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"b\"\r\n\r\nx\r\n"), false},
		"parts":             {multipart, fill("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\r\n"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Site{Config: Config{Bodies: limits.NewBodyLimiter(limits.MaxBodyBytes)}}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(tc.body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			if tc.kind != "" {
				r.Header.Set("Content-Type", tc.kind)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			done, err := s.parseForm(httptest.NewRecorder(), r, "a")
			_ = r.PostFormValue("caption") // a parsed form must not be parsed again
			runtime.ReadMemStats(&after)
			done()
			if (err != nil) != tc.refused {
				t.Errorf("got %v", err)
			}
			allocated := after.TotalAlloc - before.TotalAlloc
			t.Logf("%d bytes used %.1f MiB", len(tc.body), float64(allocated)/(1<<20))
			if allocated > 16<<20 { // one parse takes 8 MiB
				t.Errorf("allocated %d bytes", allocated)
			}
		})
	}
}

// TestFullForms verifies that a form beyond the limit gets an error page, and is accepted once there is room.
func TestFullForms(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.site.Bodies = limits.NewBodyLimiter(limits.MaxBodyBytes)
	form := url.Values{"category": {"text"}, "caption": {"hi"}, "when": {"draft"}, "target": {"our-x"}, "key": {"k"}}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("a", maxForm)))
	_, done, err := w.site.Bodies.Read(httptest.NewRecorder(), r, acme, maxForm)
	if err != nil {
		t.Fatal(err)
	}
	if got := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form)); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "1" {
		t.Errorf("got %d %v", got.Code, got.Header())
	}
	done()
	if got := w.serve(newRequest(&editor, "/teams/"+acme+"/posts/new", form)); got.Code != http.StatusSeeOther {
		t.Errorf("got %d", got.Code)
	}
}

// TestNamesake verifies that a user with the name of a team's namespace does not use up its limit, and that the team
// does not use up the user's limit for consent forms, which belong to no team.
func TestNamesake(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.site.Bodies = limits.NewBodyLimiter(limits.MaxBodyBytes)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(strings.Repeat("a", maxForm)))
	_, done, err := w.site.Bodies.Read(httptest.NewRecorder(), r, acme, maxForm)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	namesake := access.Person{Name: acme}
	if got := w.serve(newRequest(&namesake, "/connect/x/choose", url.Values{"pending": {"a"}, "account": {"b"}})); got.Code == http.StatusTooManyRequests {
		t.Errorf("got %d", got.Code)
	}
}

// TestCostOfPages verifies that the cost of pages with many files counts only against the user who requests them.
func TestCostOfPages(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(now)
	w := newWorld(clock)
	withCountedFiles(w)
	w.site.Teams = limits.NewRateLimiter(10, clock)
	form := url.Values{"category": {"image"}, "caption": {"a"}, "target": {"our-facebook"}}
	for i := range 100 { // the cost of ten requests
		name := fmt.Sprint("m-", i)
		w.upload(name)
		form.Add("image", name)
	}
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		if got := w.serve(newRequest(&editor, "/teams/"+acme+"/compose/check", form)).Code; got != want {
			t.Errorf("a check of 100 files returned %d, want %d", got, want)
		}
	}
	if got := w.serve(newRequest(&administrator, "/teams/"+acme+"/posts", nil)).Code; got != http.StatusOK {
		t.Errorf("another user's page returned %d", got)
	}
}

// TestFormsAreCharged verifies that a form's bytes are charged even after an error: to the team and the user, or only
// to the user for a form outside a team.
func TestFormsAreCharged(t *testing.T) {
	t.Parallel()
	const perMinute = 100
	hostile := func(n int) url.Values { return url.Values{"x": {strings.Repeat("a", n-2)}} }
	for name, tc := range map[string]struct {
		reason, path string
		form         url.Values
		team, person int
	}{
		"a post":           {"2 MiB are 32 times 64 KiB", "/teams/" + acme + "/posts/new", hostile(maxForm), 33, 33},
		"too many":         {"a rejected form was parsed as well", "/teams/" + acme + "/posts/new", url.Values{"x": make([]string, maxForm/4)}, 24, 24},
		"a check":          {"a check costs as much as the post", "/teams/" + acme + "/compose/check", hostile(1 << 20), 17, 17},
		"an ordinary post": {"up to 64 KiB are included", "/teams/" + acme + "/posts/new", hostile(60 << 10), 1, 1},
		"a question":       {"a form for several posts reads each of them", bulkPath + "?act=cancel&post=p-1&post=p-2&post=p-3&post=p-1", nil, 3, 3},
		"a choice":         {"the account is not assigned to a team yet", "/connect/x/choose", hostile(maxForm), 0, 33},
		"a consent":        {"the user allows an agent", oauth.AuthorizePath, hostile(maxForm), 0, 33},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(clocktesting.NewFakeClock(now))
			w.site.Teams = limits.NewRateLimiter(perMinute, clocktesting.NewFakeClock(now))
			answer := w.serve(newRequest(&editor, tc.path, tc.form))
			own := shareOf(editor)
			if tc.team > 0 {
				own = "person\x00" + acme + "\x00" + editor.Name
			}
			for who, want := range map[string]int{acme: tc.team, own: tc.person} {
				left := http.Header{}
				w.site.Teams.Allow(who, left)
				if got := left.Get("RateLimit-Remaining"); got != strconv.Itoa(perMinute-want-1) {
					t.Errorf("%s: %d %.100s; %q has %s of %d remaining after another request, want a cost of %d", tc.reason, answer.Code, answer.Body, who, got, perMinute, want)
				}
			}
		})
	}
}

// TestOwnFormsAreLimited verifies that forms outside a team are limited too.
func TestOwnFormsAreLimited(t *testing.T) {
	t.Parallel()
	w := newWorld(clocktesting.NewFakeClock(now))
	w.site.Teams = limits.NewRateLimiter(1, clocktesting.NewFakeClock(now))
	form := url.Values{"pending": {"a"}, "account": {"b"}}
	if got := w.serve(newRequest(&editor, "/connect/x/choose", form)).Code; got == http.StatusTooManyRequests {
		t.Errorf("the first request returned %d", got)
	}
	if got := w.serve(newRequest(&editor, "/connect/x/choose", form)); got.Code != http.StatusTooManyRequests || got.Header().Get("Retry-After") != "60" {
		t.Errorf("a request above the limit returned %d %v", got.Code, got.Header())
	}
	if got := w.serve(newRequest(&administrator, "/connect/x/choose", form)).Code; got == http.StatusTooManyRequests {
		t.Errorf("another user got %d", got)
	}
}

// TestPagesReserveHalf verifies that a user with read access cannot block the team's programs.
func TestPagesReserveHalf(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(now)
	w := newWorld(clock)
	w.site.Teams = limits.NewRateLimiter(10, clock)
	for i := range 10 {
		if got := w.serve(newRequest(&viewer, "/teams/"+acme+"/posts", nil)).Code; got != http.StatusOK {
			t.Fatalf("page %d returned %d", i+1, got)
		}
	}
	for i := range 6 {
		if allowed, _ := w.site.Teams.Allow(acme, http.Header{}); allowed != (i < 5) {
			t.Errorf("request %d of a program: %t", i+1, allowed)
		}
	}
}

// TestPagesAreCounted verifies that pages count against the team's limit, and that the team's programs cannot block
// pages.
func TestPagesAreCounted(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakeClock(now)
	w := newWorld(clock)
	w.site.Teams = limits.NewRateLimiter(3, clock)
	page := func(path string) int { return w.serve(newRequest(&editor, path, nil)).Code }
	if got := page("/teams/" + acme + "/posts"); got != http.StatusOK {
		t.Fatalf("got %d", got)
	}
	left := http.Header{}
	w.site.Teams.Charge(acme, 1, left)
	if got := left.Get("RateLimit-Remaining"); got != "1" {
		t.Errorf("after a page and a request, %s remain for the team, want 1", got)
	}
	w.site.Teams.Charge(acme, 3, http.Header{})
	for _, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		if got := page("/teams/" + acme + "/posts"); got != want {
			t.Errorf("a page of a team in debt returned %d, want %d", got, want)
		}
	}
}
