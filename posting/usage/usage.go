// Copyright The Herald Authors.
// SPDX-License-Identifier: Apache-2.0

// Package usage counts the use of limited resources, by the name of the post. It does no I/O; internal/quota stores the
// count.
//
// A post takes its share in two steps. The apiserver reserves by name before the post is created (Reserve). The manager
// confirms by UID when delivery starts (Confirm); from then on the entries count even if the object is deleted. Settle
// brings a post's entries in line with its state after a cancellation, when it is finished, and in the sweep, which
// repairs the entries after a crash. Orphan handles posts that do not exist.
package usage

import (
	"cmp"
	"math"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/herald-social/herald/api/v1alpha1"
)

const (
	// reservationTTL is the time for which a reservation is kept if its post is never created. No request takes that long.
	reservationTTL = 10 * time.Minute
	// monthRetention is the time for which a month's count is kept after its end, for later inspection.
	monthRetention = 62 * 24 * time.Hour
	// sameMoment is the maximum difference between the times of two requests for the same post. An immediate post has the
	// time of its request, so a repeated request is later.
	sameMoment = time.Minute

	monthLayout = "2006-01"
)

// Month returns the calendar month (UTC) of a time as a period.
func Month(at time.Time) string { return at.UTC().Format(monthLayout) }

// Use is one target's use of a Usage.
type Use struct {
	// Target is its index in the post.
	Target int
	// Count is the maximum amount that the target uses.
	Count int
	// At is the time when the target is meant to be published.
	At time.Time
	// Final means that the use will not change.
	Final bool
	// Assumed means that the target's platform is not known. The target keeps its entries but does not get new ones.
	Assumed bool
}

// Refusal describes a target that would exceed the limit.
type Refusal struct {
	Target int
	// Used is the usage without this target, in the period with the highest usage that contains its time.
	Used int
}

// Reservation is a request to reserve the usage of a post before it is created.
type Reservation struct {
	Post string
	// Request distinguishes concurrent requests for a post. It is empty if there can be only one.
	Request string
	Uses    []Use
}

// PostUses are a stored post's uses.
type PostUses struct {
	Name string
	UID  types.UID
	// Begun means that delivery has started.
	Begun bool
	// Uses has one element for each target that may use the resource.
	Uses []Use
}

// Reserve adds a request's uses. If any exceeds the limit, it does not add entries and returns the refused targets.
func Reserve(u *v1alpha1.Usage, r Reservation, limit int, now time.Time) []Refusal {
	others := without(u, r.Post, r.Request)
	next := slices.Clone(others)
	var refused []Refusal
	for _, use := range r.Uses {
		if use.Count == 0 || use.Assumed {
			continue
		}
		entry := newEntry(r.Post, use, now)
		entry.Request = r.Request
		var fits bool
		if next, fits = add(&u.Spec, next, &entry, limit); !fits {
			refused = append(refused, Refusal{use.Target, fullest(&u.Spec, others, use.At)})
		}
	}
	if len(refused) == 0 {
		set(u, next, limit)
	}
	return refused
}

// Release removes the reservation of a request whose post was not created.
func Release(u *v1alpha1.Usage, post, request string) {
	set(u, without(u, post, request), int(u.Status.Limit))
}

func without(u *v1alpha1.Usage, post, request string) []v1alpha1.UsageEntry {
	return slices.DeleteFunc(slices.Clone(u.Status.Entries), func(e v1alpha1.UsageEntry) bool {
		return e.Post == post && e.UID == "" && e.Request == request
	})
}

// Confirm adds a post's uses when its delivery starts, up to the limit, and returns the refused targets. It converts
// the post's reservations first. A target never gets more than it needs.
func Confirm(u *v1alpha1.Usage, post PostUses, limit int, now time.Time) []Refusal {
	next, own, reserved := split(u, &post)
	confirmed := slices.Concat(own, largestReservation(&u.Spec, reserved, post.Uses))
	sliding := window(&u.Spec) > 0
	var missing []Use
	for _, use := range post.Uses {
		i := slices.IndexFunc(confirmed, func(e v1alpha1.UsageEntry) bool {
			return int(e.Target) == use.Target &&
				(use.Final || use.Assumed || int(e.Count) >= use.Count && (!sliding || sameInstant(e.At, use.At)))
		})
		switch {
		case i >= 0:
			if e, left := reduced(confirmed[i], use); left {
				e.UID, e.Request, e.Settled = post.UID, "", use.Final
				next = append(next, e)
			}
		case !use.Final && !use.Assumed && use.Count > 0 && covers(&u.Spec, use.At):
			missing = append(missing, use)
		}
	}
	var refused []Refusal
	for _, use := range missing {
		entry := newEntry(post.Name, use, now)
		entry.UID = post.UID
		var fits bool
		if next, fits = add(&u.Spec, next, &entry, limit); !fits {
			refused = append(refused, Refusal{use.Target, fullest(&u.Spec, next, use.At)})
		}
	}
	set(u, next, limit)
	return refused
}

// Settle brings a post's entries in line with its state: no entry exceeds what its target uses. Entries of an earlier
// post with that name are kept permanently. Once delivery has started, the post's reservations are removed, because
// Confirm has added its uses, here or in another Usage.
func Settle(u *v1alpha1.Usage, post PostUses) {
	next, own, reserved := split(u, &post)
	for i := range next {
		next[i].Settled = next[i].Settled || next[i].Post == post.Name
	}
	if !post.Begun && len(own) == 0 {
		next = append(next, largestReservation(&u.Spec, reserved, post.Uses)...)
	}
	for _, e := range own {
		use := useOf(post.Uses, e)
		if e, left := reduced(e, use); left {
			e.Settled = use.Final
			next = append(next, e)
		}
	}
	set(u, next, int(u.Status.Limit))
}

// Orphan settles the entries of a post that does not exist. A reservation is removed after its TTL, when no request can
// create the post. Delivered uses still count.
func Orphan(u *v1alpha1.Usage, post string, now time.Time) {
	next := slices.DeleteFunc(slices.Clone(u.Status.Entries), func(e v1alpha1.UsageEntry) bool {
		return e.Post == post && e.UID == "" && now.Sub(e.Since.Time) >= reservationTTL
	})
	for i := range next {
		next[i].Settled = next[i].Settled || next[i].Post == post && next[i].UID != ""
	}
	set(u, next, int(u.Status.Limit))
}

// Prune drops entries of a sliding window that cannot be in the same window as a new entry.
func Prune(u *v1alpha1.Usage, now time.Time) {
	span := window(&u.Spec)
	if span == 0 {
		return
	}
	set(u, slices.DeleteFunc(slices.Clone(u.Status.Entries), func(e v1alpha1.UsageEntry) bool {
		return now.Sub(e.At.Time) > 2*span
	}), int(u.Status.Limit))
}

// OpenPosts returns the names of posts whose entries may change.
func OpenPosts(u *v1alpha1.Usage) []string {
	var names []string
	for i := range u.Status.Entries {
		if e := &u.Status.Entries[i]; !e.Settled && !slices.Contains(names, e.Post) {
			names = append(names, e.Post)
		}
	}
	return names
}

// Expired reports whether a Usage is for a month that is no longer kept.
func Expired(spec *v1alpha1.UsageSpec, now time.Time) bool {
	month, err := time.Parse(monthLayout, spec.Period)
	return err == nil && now.Sub(month.AddDate(0, 1, 0)) > monthRetention
}

func split(u *v1alpha1.Usage, post *PostUses) (others, own, reserved []v1alpha1.UsageEntry) {
	for _, e := range u.Status.Entries {
		switch {
		case e.Post != post.Name, e.UID != "" && e.UID != post.UID:
			others = append(others, e)
		case e.UID != "":
			own = append(own, e)
		default:
			reserved = append(reserved, e)
		}
	}
	return others, own, reserved
}

// largestReservation returns the reservation, among those of several requests, that covers most of the post's usage. It
// then belongs to the post, whichever request made it.
func largestReservation(spec *v1alpha1.UsageSpec, reserved []v1alpha1.UsageEntry, uses []Use) []v1alpha1.UsageEntry {
	sums, kept := map[string]int32{}, map[string][]v1alpha1.UsageEntry{}
	best := ""
	for _, e := range reserved {
		use := useOf(uses, e)
		request := e.Request
		e, left := reduced(e, use)
		if !left || !sameTime(spec, e.At.Time, use.At) {
			continue
		}
		e.Request = ""
		kept[request] = append(kept[request], e)
		if sums[request] += e.Count; sums[request] > sums[best] {
			best = request
		}
	}
	return kept[best]
}

// useOf returns the use of an entry's target. It is zero if an edit removed the target.
func useOf(uses []Use, e v1alpha1.UsageEntry) Use {
	if i := slices.IndexFunc(uses, func(u Use) bool { return u.Target == int(e.Target) }); i >= 0 {
		return uses[i]
	}
	return Use{Target: int(e.Target)}
}

func reduced(e v1alpha1.UsageEntry, use Use) (v1alpha1.UsageEntry, bool) {
	e.Count = min(e.Count, narrow(use.Count))
	return e, e.Count > 0
}

func newEntry(post string, use Use, now time.Time) v1alpha1.UsageEntry {
	return v1alpha1.UsageEntry{
		Post: post, Target: narrow(use.Target), Count: narrow(use.Count), At: v1alpha1.NewTime(use.At), Since: v1alpha1.NewTime(now),
	}
}

func set(u *v1alpha1.Usage, entries []v1alpha1.UsageEntry, limit int) {
	slices.SortFunc(entries, func(a, b v1alpha1.UsageEntry) int {
		return cmp.Or(cmp.Compare(a.Post, b.Post), cmp.Compare(a.UID, b.UID), cmp.Compare(a.Request, b.Request), cmp.Compare(a.Target, b.Target))
	})
	used := 0
	for i := range entries {
		used = max(used, from(&u.Spec, entries, entries[i].At.Time))
	}
	u.Status = v1alpha1.UsageStatus{Limit: narrow(limit), Used: narrow(used), Entries: entries}
}

// add appends an entry if the limit allows it. An entry that does not increase the amount used always fits, such as one
// equal to a reservation from another request for the same post.
func add(spec *v1alpha1.UsageSpec, entries []v1alpha1.UsageEntry, entry *v1alpha1.UsageEntry, limit int) (next []v1alpha1.UsageEntry, fits bool) {
	with := slices.Concat(entries, []v1alpha1.UsageEntry{*entry})
	used := fullest(spec, with, entry.At.Time)
	if used > limit && used > fullest(spec, entries, entry.At.Time) {
		return entries, false
	}
	return with, true
}

// Used returns the usage in the period with the highest usage that contains a time, or in the calendar month. Unlike
// the stored number, the result depends on that time.
func Used(u *v1alpha1.Usage, at time.Time) int { return fullest(&u.Spec, u.Status.Entries, at) }

func fullest(spec *v1alpha1.UsageSpec, entries []v1alpha1.UsageEntry, at time.Time) int {
	most := from(spec, entries, at)
	for i := range entries {
		if before := at.Sub(entries[i].At.Time); before > 0 && before < window(spec) {
			most = max(most, from(spec, entries, entries[i].At.Time))
		}
	}
	return most
}

// from returns the usage in the period that starts at the given time, or in the whole month. A sliding window excludes
// its end, so entries exactly one window apart are never in the same one.
func from(spec *v1alpha1.UsageSpec, entries []v1alpha1.UsageEntry, start time.Time) int {
	span := window(spec)
	return sum(entries, func(t time.Time) bool { return span == 0 || !t.Before(start) && t.Sub(start) < span })
}

// sum adds up a period's entries. Of several reservations for a post, only the largest counts.
func sum(entries []v1alpha1.UsageEntry, within func(time.Time) bool) int {
	type key struct{ post, request string }
	total := 0
	requests, largest := map[key]int{}, map[string]int{}
	for i := range entries {
		switch e := &entries[i]; {
		case !within(e.At.Time):
		case e.UID != "":
			total += int(e.Count)
		default:
			k := key{e.Post, e.Request}
			requests[k] += int(e.Count)
			total += max(requests[k]-largest[e.Post], 0)
			largest[e.Post] = max(largest[e.Post], requests[k])
		}
	}
	return total
}

// window returns the length of a sliding window, or zero for a calendar month.
func window(spec *v1alpha1.UsageSpec) time.Duration {
	span, err := time.ParseDuration(spec.Period)
	if err != nil {
		return 0
	}
	return span
}

func covers(spec *v1alpha1.UsageSpec, at time.Time) bool {
	return window(spec) > 0 || Month(at) == spec.Period
}

func sameTime(spec *v1alpha1.UsageSpec, reserved, wanted time.Time) bool {
	return covers(spec, wanted) && (window(spec) == 0 || reserved.Sub(wanted).Abs() <= sameMoment)
}

func sameInstant(e v1alpha1.Time, at time.Time) bool { return e.Equal(v1alpha1.NewTimePtr(at)) }

func narrow(n int) int32 { return int32(max(0, min(n, math.MaxInt32))) }
