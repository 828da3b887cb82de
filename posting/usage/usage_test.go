// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

package usage

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// monthly returns a Usage for noon's month, and daily one with a sliding window of 24 hours.
func monthly(entries ...[]v1alpha1.UsageEntry) *v1alpha1.Usage { return newUsage("2026-11", entries) }
func daily(entries ...[]v1alpha1.UsageEntry) *v1alpha1.Usage   { return newUsage("24h", entries) }

func newUsage(period string, entries [][]v1alpha1.UsageEntry) *v1alpha1.Usage {
	u := &v1alpha1.Usage{Spec: v1alpha1.UsageSpec{Resource: "r", Period: period}}
	for _, some := range entries {
		u.Status.Entries = append(u.Status.Entries, some...)
	}
	return u
}

// uses returns the uses of the first targets of a post.
func uses(counts ...int) []Use {
	var all []Use
	for target, count := range counts {
		all = append(all, Use{Target: target, Count: count, At: noon})
	}
	return all
}

func final(uses []Use) []Use {
	for i := range uses {
		uses[i].Final = true
	}
	return uses
}

func assumed(uses []Use) []Use {
	for i := range uses {
		uses[i].Assumed = true
	}
	return uses
}

func at(uses []Use, times ...time.Time) []Use {
	for i := range uses {
		uses[i].At = times[i]
	}
	return uses
}

// reserved returns reservations for a post's first targets, delivered returns entries confirmed for the post with this
// UID, and by returns the reservations of one request.
func reserved(post string, counts ...int) []v1alpha1.UsageEntry { return by("", post, counts...) }

func by(request, post string, counts ...int) []v1alpha1.UsageEntry {
	var all []v1alpha1.UsageEntry
	for _, use := range uses(counts...) {
		if use.Count > 0 {
			entry := newEntry(post, use, noon)
			entry.Request = request
			all = append(all, entry)
		}
	}
	return all
}

func delivered(uid types.UID, post string, counts ...int) []v1alpha1.UsageEntry {
	all := reserved(post, counts...)
	for i := range all {
		all[i].UID = uid
	}
	return all
}

func settled(entries []v1alpha1.UsageEntry) []v1alpha1.UsageEntry {
	for i := range entries {
		entries[i].Settled = true
	}
	return entries
}

func moved(entries []v1alpha1.UsageEntry, to time.Time) []v1alpha1.UsageEntry {
	for i := range entries {
		entries[i].At = v1alpha1.NewTime(to)
	}
	return entries
}

// same compares a Usage with the expected one.
func same(t *testing.T, reason string, got, want *v1alpha1.Usage) {
	t.Helper()
	if diff := cmp.Diff(want.Status.Entries, got.Status.Entries, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s:\n%s", reason, diff)
	}
}

func TestReserve(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		before  *v1alpha1.Usage
		request string
		uses    []Use
		refused []Refusal
		used    int
	}{
		"First":        {"no count exists", monthly(), "", uses(1), nil, 1},
		"Last":         {"the plan has exactly enough", monthly(reserved("b", 3)), "", uses(2), nil, 5},
		"OneTooMany":   {"the total would be six of five", monthly(reserved("b", 4)), "", uses(2), []Refusal{{0, 4}}, 4},
		"AllOrNothing": {"one of two has no room, so neither is reserved", monthly(reserved("b", 4)), "", uses(1, 1), []Refusal{{1, 4}}, 4},
		"Nothing":      {"no target counts", monthly(reserved("b", 5)), "", uses(0), nil, 5},
		"NotKnown":     {"a target with an unknown connection does not reserve", monthly(), "", assumed(uses(1)), nil, 0},
		"Repeated":     {"another request for the same post does not add, even at the limit", monthly(by("r1", "a", 5)), "r2", uses(5), nil, 5},
		"RepeatedOver": {"the limit was lowered", monthly(by("r1", "a", 7)), "r2", uses(7), nil, 7},
		"Larger":       {"one of two requests for the same post creates it: the larger one counts", monthly(by("r1", "a", 2)), "r2", uses(4), nil, 4},
		"Smaller":      {"the larger request counts, in any order", monthly(by("r1", "a", 4)), "r2", uses(2), nil, 4},
		"OtherTargets": {"requests are compared as a whole", monthly(by("r1", "a", 0, 4)), "r2", uses(4), nil, 4},
		"TooLarge":     {"the larger request does not fit, and the smaller one keeps its reservations", monthly(by("r1", "a", 2), reserved("b", 2)), "r2", uses(4), []Refusal{{0, 4}}, 4},
		"FormerPost":   {"a post with this name was delivered and deleted: both count", monthly(delivered("1", "a", 2)), "r1", uses(3), nil, 5},
		"FormerFull":   {"the former one still counts", monthly(delivered("1", "a", 4)), "r1", uses(2), []Refusal{{0, 4}}, 4},
		"OverLimit":    {"the limit was lowered, so nothing is added", monthly(reserved("b", 9)), "", uses(1), []Refusal{{0, 9}}, 9},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := tc.before
			got := Reserve(u, Reservation{Post: "a", Request: tc.request, Uses: tc.uses}, 5, noon)
			if diff := cmp.Diff(tc.refused, got); diff != "" {
				t.Errorf("%s: refused:\n%s", tc.reason, diff)
			}
			if used := sum(u.Status.Entries, func(time.Time) bool { return true }); used != tc.used {
				t.Errorf("%s: %d are used, want %d", tc.reason, used, tc.used)
			}
			if len(tc.refused) == 0 && (int(u.Status.Used) != tc.used || u.Status.Limit != 5) {
				t.Errorf("%s: status %d of %d, want %d of 5", tc.reason, u.Status.Used, u.Status.Limit, tc.used)
			}
			once := u.DeepCopy()
			Reserve(u, Reservation{Post: "a", Request: tc.request, Uses: tc.uses}, 5, noon)
			same(t, tc.reason+": asked once more, it takes no more", u, once)
		})
	}
}

func TestSlidingWindow(t *testing.T) {
	t.Parallel()
	others := func(hours ...int) []v1alpha1.UsageEntry {
		var all []v1alpha1.UsageEntry
		for i, h := range hours {
			all = append(all, newEntry("other", Use{Target: i, Count: 1, At: noon.Add(time.Duration(h) * time.Hour)}, noon))
		}
		return all
	}
	for name, tc := range map[string]struct {
		reason string
		taken  []v1alpha1.UsageEntry
		ok     bool
	}{
		"Empty":      {"the team has no other drafts", nil, true},
		"OneBefore":  {"two within a day", others(-5), true},
		"TwoBefore":  {"three within the day that ends now", others(-5, -3), false},
		"TwoAfter":   {"three within the day that starts now", others(3, 5), false},
		"Between":    {"three within a day that started before and ends later", others(-10, 10), false},
		"Apart":      {"no day contains the others and this one", others(-13, 13), true},
		"ADayApart":  {"a day does not include its end", others(-24, -24), true},
		"ADayAfter":  {"no day contains the others and this one", others(24, 24), true},
		"JustWithin": {"an hour less than a day apart", others(-23, -23), false},
		"LongAgo":    {"the other drafts are out of range", others(-100, -100), true},
		"OverLongAgo": {
			"three within a day, even if the limit was lowered and another day has as many",
			others(-100, -100, -100, -5, -3), false,
		},
		"OverADayApart": {
			"three within a day, even if the limit was lowered and a day that ends now has more",
			others(-24, -24, -24, -5, -3), false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for delivers, count := range map[bool]func(*v1alpha1.Usage) []Refusal{
				false: func(u *v1alpha1.Usage) []Refusal {
					return Reserve(u, Reservation{Post: "new", Uses: uses(1)}, 2, noon)
				},
				true: func(u *v1alpha1.Usage) []Refusal {
					return Confirm(u, PostUses{Name: "new", UID: "1", Uses: uses(1)}, 2, noon)
				},
			} {
				if got := count(daily(tc.taken)); len(got) == 0 != tc.ok {
					t.Errorf("%s (it is delivered: %v): refused are %v", tc.reason, delivers, got)
				}
			}
		})
	}
	u := daily(moved(reserved("a", 3), noon.Add(-30*time.Hour)), reserved("b", 2), moved(reserved("c", 2), noon.Add(20*time.Hour)))
	Prune(u, noon)
	if u.Status.Used != 4 {
		t.Errorf("%d are shown as used, want the four of the fullest day", u.Status.Used)
	}
	for at, want := range map[time.Duration]int{-23 * time.Hour: 3, -5 * time.Hour: 2, 0: 4, 19 * time.Hour: 4, 45 * time.Hour: 0} {
		if got := Used(u, noon.Add(at)); got != want {
			t.Errorf("%d are used around %s, want %d", got, at, want)
		}
	}
}

func TestRelease(t *testing.T) {
	t.Parallel()
	u := monthly(by("r1", "a", 2), by("r2", "a", 4), delivered("1", "a", 1), by("r1", "b", 1))
	Release(u, "a", "r2")
	same(t, "entries of other requests, deliveries and posts stay", u, monthly(joined(by("r1", "a", 2), delivered("1", "a", 1)), by("r1", "b", 1)))
	if u.Status.Used != 4 {
		t.Errorf("%d are used, want 4", u.Status.Used)
	}
}

// joined returns entries in stored order.
func joined(some ...[]v1alpha1.UsageEntry) []v1alpha1.UsageEntry {
	var all []v1alpha1.UsageEntry
	for _, entries := range some {
		all = append(all, entries...)
	}
	return all
}

func TestConfirm(t *testing.T) {
	t.Parallel()
	hours := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
	for name, tc := range map[string]struct {
		reason  string
		before  *v1alpha1.Usage
		uses    []Use
		refused []Refusal
		want    *v1alpha1.Usage
	}{
		"Reserved":     {"the delivery uses the reservation", monthly(reserved("a", 1)), uses(1), nil, monthly(delivered("u", "a", 1))},
		"ByRequests":   {"whichever request created the post", monthly(by("r1", "a", 4), by("r2", "a", 1)), uses(1), nil, monthly(delivered("u", "a", 1))},
		"Full":         {"held reservations are not requested again", monthly(reserved("a", 1), reserved("b", 4)), uses(1), nil, monthly(delivered("u", "a", 1), reserved("b", 4))},
		"OverLimit":    {"the limit was lowered", monthly(reserved("a", 1), reserved("b", 7)), uses(1), nil, monthly(delivered("u", "a", 1), reserved("b", 7))},
		"Applied":      {"the post was not created through the apiserver", monthly(), uses(1), nil, monthly(delivered("u", "a", 1))},
		"Partly":       {"the delivery reserves the remainder", monthly(reserved("b", 4)), uses(1, 1), []Refusal{{1, 5}}, monthly(delivered("u", "a", 1), reserved("b", 4))},
		"SmallerFits":  {"a later target may fit if an earlier one does not", monthly(reserved("b", 4)), uses(2, 1), []Refusal{{0, 4}}, monthly(delivered("u", "a", 0, 1), reserved("b", 4))},
		"Twice":        {"a second attempt does not reserve again", monthly(delivered("u", "a", 1), reserved("b", 4)), uses(1), nil, monthly(delivered("u", "a", 1), reserved("b", 4))},
		"MoreTargets":  {"another target of the post joins", monthly(delivered("u", "a", 1)), uses(1, 1), nil, monthly(delivered("u", "a", 1, 1))},
		"HeldFirst":    {"held reservations come before new ones", monthly(delivered("u", "a", 0, 1), reserved("b", 4)), uses(1, 1), []Refusal{{0, 5}}, monthly(delivered("u", "a", 0, 1), reserved("b", 4))},
		"MoreCards":    {"the tree has grown", monthly(reserved("a", 2)), uses(4), nil, monthly(delivered("u", "a", 4))},
		"FewerCards":   {"the tree has shrunk", monthly(reserved("a", 4)), uses(2), nil, monthly(delivered("u", "a", 2))},
		"TooManyCards": {"the tree has grown too much", monthly(reserved("a", 2), reserved("b", 3)), uses(3), []Refusal{{0, 3}}, monthly(reserved("b", 3))},
		"Former":       {"another post of that name was delivered and deleted: both count", monthly(delivered("0", "a", 2)), uses(2), nil, monthly(delivered("0", "a", 2), delivered("u", "a", 2))},
		"FormerFull":   {"the former one still counts", monthly(delivered("0", "a", 4)), uses(2), []Refusal{{0, 4}}, monthly(delivered("0", "a", 4))},
		"Swapped": {
			"the first target was changed to another platform, the second to this one",
			monthly(reserved("a", 1), reserved("b", 4)), uses(0, 1), nil, monthly(delivered("u", "a", 0, 1), reserved("b", 4)),
		},
		"SwappedTooMany": {
			"the first target's excess is released, whether or not there is enough for the other",
			monthly(reserved("a", 1), reserved("b", 4)), uses(0, 2),
			[]Refusal{{1, 4}},
			monthly(reserved("b", 4)),
		},
		"MovedInMonth": {
			"a month is one count: a reservation for another day is used, even above the limit",
			monthly(moved(reserved("a", 1), hours(24)), reserved("b", 7)), uses(1), nil,
			monthly(moved(delivered("u", "a", 1), hours(24)), reserved("b", 7)),
		},
		"NotKnown":     {"a target that may have been counted keeps its count, and does not reserve", monthly(delivered("u", "a", 1)), assumed(uses(1, 1)), nil, monthly(delivered("u", "a", 1))},
		"NotKnownMore": {"the entry keeps its count even if the post needs more now", monthly(delivered("u", "a", 1)), assumed(uses(2)), nil, monthly(delivered("u", "a", 1))},
		"OutForLess":   {"a published target keeps its count, even if it is less than its cards", monthly(delivered("u", "a", 1)), final(uses(2)), nil, monthly(settled(delivered("u", "a", 1)))},
		"AlreadyOut":   {"a published target is never counted again", monthly(delivered("u", "a", 1)), final(uses(1, 1)), nil, monthly(settled(delivered("u", "a", 1)))},
		"OtherMonth":   {"another target is counted in another month", monthly(), at(uses(1, 1), noon, noon.AddDate(0, 1, 0)), nil, monthly(delivered("u", "a", 1))},
		"OnTheDay":     {"the time is that of the reservation", daily(reserved("a", 1), reserved("b", 4)), uses(1), nil, daily(delivered("u", "a", 1), reserved("b", 4))},
		"OnTheDayOver": {"reservations are not requested again if the limit was lowered", daily(reserved("a", 1), reserved("b", 7)), uses(1), nil, daily(delivered("u", "a", 1), reserved("b", 7))},
		"OnAnotherDay": {"the time was changed to a day that is full", daily(reserved("a", 1), moved(reserved("b", 5), hours(48))), at(uses(1), hours(48)), []Refusal{{0, 5}}, daily(moved(reserved("b", 5), hours(48)))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := tc.before
			post := PostUses{Name: "a", UID: "u", Uses: tc.uses}
			if diff := cmp.Diff(tc.refused, Confirm(u, post, 5, noon)); diff != "" {
				t.Errorf("%s: refused:\n%s", tc.reason, diff)
			}
			same(t, tc.reason, u, tc.want)
			Confirm(u, post, 5, noon)
			same(t, tc.reason+": a second time, nothing changes", u, tc.want)
		})
	}
}

func TestSettle(t *testing.T) {
	t.Parallel()
	next := noon.AddDate(0, 0, 10) // in December
	begun := func(uses []Use) PostUses { return PostUses{Name: "a", UID: "u", Begun: true, Uses: uses} }
	waits := func(uses []Use) PostUses { return PostUses{Name: "a", UID: "u", Uses: uses} }
	for name, tc := range map[string]struct {
		reason string
		before *v1alpha1.Usage
		post   PostUses
		want   *v1alpha1.Usage
	}{
		"Waiting":      {"the post will be published", monthly(reserved("a", 1, 1)), waits(uses(1, 1)), monthly(reserved("a", 1, 1))},
		"Rescheduled":  {"the post counts in the new month", monthly(reserved("a", 1)), waits(at(uses(1), next)), monthly()},
		"Cancelled":    {"the apiserver could not release it", monthly(reserved("a", 1)), waits(final(uses(0))), monthly()},
		"Less":         {"an edit moved one of two targets", monthly(reserved("a", 1, 1)), waits(uses(1, 0)), monthly(reserved("a", 1))},
		"FewerNow":     {"an edit removed a target", monthly(reserved("a", 1, 1)), waits(uses(1)), monthly(reserved("a", 1))},
		"NotKnown":     {"the connection was deleted, so it may be on X", monthly(reserved("a", 1)), waits(assumed(uses(1))), monthly(reserved("a", 1))},
		"MovedUnknown": {"the post is published in another month, on any platform", monthly(reserved("a", 1)), waits(at(assumed(uses(1)), next)), monthly()},
		"Requests":     {"only one of the requests created it", monthly(by("r1", "a", 5), by("r2", "a", 1)), waits(uses(1)), monthly(reserved("a", 1))},
		"BestRequest":  {"the reservation that covers most of its need", monthly(by("r1", "a", 1), by("r2", "a", 1, 2)), waits(uses(1, 2)), monthly(reserved("a", 1, 2))},
		"AsGoodAs":     {"the first of two equal reservations remains", monthly(by("r1", "a", 1), by("r2", "a", 0, 1)), waits(uses(1, 1)), monthly(reserved("a", 1))},
		"OneMoment":    {"a repeated immediate request is later", daily(moved(reserved("a", 1), noon.Add(30*time.Second))), waits(uses(1)), daily(moved(reserved("a", 1), noon.Add(30*time.Second)))},
		"StillOne":     {"times up to a minute apart are equal", daily(moved(reserved("a", 1), noon.Add(time.Minute))), waits(uses(1)), daily(moved(reserved("a", 1), noon.Add(time.Minute)))},
		"OtherTime":    {"a request for another time did not create it", daily(moved(reserved("a", 1), noon.Add(2*time.Minute))), waits(uses(1)), daily()},
		"Elsewhere":    {"its delivery has started with another Usage", monthly(reserved("a", 1)), begun(uses(1)), monthly()},
		"After":        {"a request reserved after the delivery had counted", monthly(delivered("u", "a", 1), by("r1", "a", 1)), waits(uses(1)), monthly(delivered("u", "a", 1))},
		"Sending":      {"the post may be published", monthly(delivered("u", "a", 1)), begun(uses(1)), monthly(delivered("u", "a", 1))},
		"Posted":       {"a publication is permanent", monthly(delivered("u", "a", 1)), begun(final(uses(1))), monthly(settled(delivered("u", "a", 1)))},
		"PostedLate":   {"the post counts in its original month", monthly(delivered("u", "a", 1)), begun(at(final(uses(1)), next)), monthly(settled(delivered("u", "a", 1)))},
		"HalfFailed":   {"one of two was rejected", monthly(delivered("u", "a", 1, 1)), begun(final(uses(1, 0))), monthly(settled(delivered("u", "a", 1)))},
		"Claimless":    {"the post was counted, its claim failed, and it was cancelled", monthly(delivered("u", "a", 1)), waits(final(uses(0))), monthly()},
		"OtherPost":    {"the counted post was deleted and its name reused", monthly(delivered("0", "a", 1)), waits(uses(1)), monthly(settled(delivered("0", "a", 1)))},
		"Others":       {"other posts are unaffected", monthly(reserved("b", 3)), waits(uses(1)), monthly(reserved("b", 3))},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := tc.before
			for range 2 {
				Settle(u, tc.post)
				same(t, tc.reason, u, tc.want)
			}
		})
	}
}

func TestOrphan(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		before *v1alpha1.Usage
		age    time.Duration
		want   *v1alpha1.Usage
	}{
		"JustReserved": {"its request may be about to create the post", monthly(reserved("a", 1)), reservationTTL - time.Second, monthly(reserved("a", 1))},
		"Forgotten":    {"no request lasts that long, so the post was never created", monthly(reserved("a", 1)), reservationTTL, monthly()},
		"Delivered":    {"the post was delivered and deleted; it still counts", monthly(delivered("u", "a", 1)), 1000 * time.Hour, monthly(settled(delivered("u", "a", 1)))},
		"Others":       {"other posts are unaffected", monthly(reserved("b", 1)), 1000 * time.Hour, monthly(reserved("b", 1))},
	} {
		Orphan(tc.before, "a", noon.Add(tc.age))
		same(t, name+": "+tc.reason, tc.before, tc.want)
	}
}

func TestForgetAndOver(t *testing.T) {
	t.Parallel()
	old := moved(reserved("a", 1), noon.Add(-49*time.Hour))
	u := daily(old, moved(reserved("b", 1), noon.Add(-47*time.Hour)))
	Prune(u, noon)
	same(t, "entries of more than two days are not needed for new drafts", u, daily(moved(reserved("b", 1), noon.Add(-47*time.Hour))))
	u = daily(moved(reserved("a", 1), noon.Add(-48*time.Hour)))
	Prune(u, noon)
	same(t, "an entry of exactly two days stays", u, daily(moved(reserved("a", 1), noon.Add(-48*time.Hour))))
	u = monthly(old)
	Prune(u, noon)
	same(t, "a month is kept whole", u, monthly(old))

	end := time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason string
		usage  *v1alpha1.Usage
		now    time.Time
		want   bool
	}{
		"Kept":   {"users may want to read the entry", monthly(), end.Add(monthRetention), false},
		"Over":   {"its retention has ended", monthly(), end.Add(monthRetention + time.Second), true},
		"Window": {"a sliding window is never over", daily(), end.AddDate(5, 0, 0), false},
	} {
		if got := Expired(&tc.usage.Spec, tc.now); got != tc.want {
			t.Errorf("%s: %s: over is %v", name, tc.reason, got)
		}
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	u := monthly(reserved("a", 1, 1), settled(delivered("1", "b", 1)), delivered("2", "c", 1))
	if diff := cmp.Diff([]string{"a", "c"}, OpenPosts(u)); diff != "" {
		t.Errorf("posts are listed once, and settled ones are not:\n%s", diff)
	}
}

func TestMonth(t *testing.T) {
	t.Parallel()
	last := time.Date(2026, 11, 30, 23, 59, 59, 999e6, time.UTC)
	tokyo := time.FixedZone("JST", 9*3600)
	for at, want := range map[time.Time]string{last: "2026-11", last.In(tokyo): "2026-11", last.Add(time.Millisecond): "2026-12"} {
		if got := Month(at); got != want {
			t.Errorf("%s is counted in %s, want %s in UTC", at, got, want)
		}
	}
}
