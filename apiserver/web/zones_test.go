// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package web

import (
	"net/http"
	"net/url"
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
)

// TestTimesNameTheirZone verifies that a page without a script always shows a post's time with a zone: the team's or,
// if it has none, the viewer's.
func TestTimesNameTheirZone(t *testing.T) {
	t.Parallel()
	when := time.Date(2026, 12, 8, 8, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason, team, own string
		want              string
	}{
		"Nothing":     {"both zones are unknown", "", "", "8 Dec 2026, 08:00 UTC"},
		"Own":         {"the viewer's zone is used if the team has none", "", "Europe/Berlin", "8 Dec 2026, 09:00 Berlin"},
		"Team":        {"a new browser has not sent its zone", "Europe/Berlin", "", "8 Dec 2026, 09:00 Berlin"},
		"Same":        {"both zones have the same time", "Europe/Berlin", "Europe/Paris", "8 Dec 2026, 09:00 Berlin"},
		"Both":        {"a traveller sees both times", "Europe/Berlin", "America/Los_Angeles", "8 Dec 2026, 09:00 Berlin (00:00 for you)"},
		"OtherDay":    {"the day is named if it differs", "Europe/Berlin", "Pacific/Honolulu", "8 Dec 2026, 09:00 Berlin (7 Dec, 22:00 for you)"},
		"LongName":    {"users know the city", "", "America/Argentina/Buenos_Aires", "8 Dec 2026, 05:00 Buenos Aires"},
		"UnknownTeam": {"an unknown zone is ignored", "Europe/Atlantis", "Europe/Berlin", "8 Dec 2026, 09:00 Berlin"},
		"UnknownOwn":  {"a forged cookie is ignored", "", "../../etc/passwd", "8 Dec 2026, 08:00 UTC"},
		"LocalOwn":    {"the server's zone does not matter", "", "Local", "8 Dec 2026, 08:00 UTC"},
	} {
		w := newWorld(clocktesting.NewFakeClock(now))
		w.teams[0].Spec.TimeZone = tc.team
		w.put(textPost("p-1", "text", at(when)))
		r := newRequest(&viewer, "/teams/"+acme+"/posts", nil)
		if tc.own != "" {
			r.AddCookie(&http.Cookie{Name: zoneCookie, Value: url.QueryEscape(tc.own)})
		}
		page := parsed(t, w.serve(r).Body.String())
		times := elements(page, "time")
		if len(times) != 1 {
			t.Fatalf("%s: the list has %d times", name, len(times))
		}
		if got := textOf(times[0]); got != tc.want {
			t.Errorf("%s: %s: got %q, want %q", name, tc.reason, got, tc.want)
		}
		body, _ := attribute(elements(page, "body")[0], "data-team-zone")
		if want := tc.team; name != "UnknownTeam" && body != want || name == "UnknownTeam" && body != "" {
			t.Errorf("%s: %s: the script's zone is %q", name, tc.reason, body)
		}
	}
}
